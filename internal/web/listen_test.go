package web

import (
	"context"
	"testing"
)

func TestOnlyLoopback(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:0": true, "127.0.0.2:80": true, "[::1]:0": true, "localhost:7878": true,
		"0.0.0.0:7878": false, ":7878": false, "[::]:0": false, "192.168.1.5:80": false, "10.0.0.1:0": false, "example.org:80": false,
		"127.0.0.1": false, "": false, "localhost.example.org:1": false, "[::1%lo]:0": false, "[::ffff:10.0.0.1]:0": false,
	} {
		err := CheckListen(addr)
		if (err == nil) != ok {
			t.Errorf("listen on %q: %v", addr, err)
		}
		if err != nil && !ok && len(err.Error()) < 30 {
			t.Errorf("listen on %q: %q does not say what to do", addr, err)
		}
	}
	s, err := New(Deps{Now: testNow, Runs: noRuns{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(context.Background(), Options{Listen: "0.0.0.0:0"}); err == nil {
		t.Error("it listened where other machines can reach it")
	}
}
