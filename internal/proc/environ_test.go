package proc

import (
	"bytes"
	"strings"
	"testing"
)

func TestMarkerIn(t *testing.T) {
	for _, tc := range []struct{ environ, want string }{
		{"", ""},
		{"A=b\x00" + RunIDVar + "=run-1\x00C=d\x00", "run-1"},
		{RunIDVar + "=run-1", "run-1"},
		{"X" + RunIDVar + "=run-1\x00", ""},
		{"A=" + RunIDVar + "=run-1\x00", ""},
		{"A=b\n" + RunIDVar + "=run-1\x00", ""},
		{RunIDVar + "=\x00", ""},
		{RunIDVar + "=a=b\x00", "a=b"},
		{RunIDVar + "=one\x00" + RunIDVar + "=two\x00", "one"},
		{RunIDVar, ""},
	} {
		if got := markerIn([]byte(tc.environ)); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.environ, got, tc.want)
		}
	}
}

func TestEnvironAfterArgs(t *testing.T) {
	for _, tc := range []struct {
		name string
		argc int
		in   string
		want string
	}{
		{"plain", 2, "/bin/sh\x00\x00\x00\x00sh\x00-c\x00A=b\x00C=d\x00", "A=b\x00C=d\x00"},
		{"empty argument", 3, "/bin/sh\x00\x00sh\x00\x00x\x00A=b\x00", "A=b\x00"},
		{"marker among the arguments", 2, "/bin/sh\x00sh\x00" + RunIDVar + "=run-1\x00A=b\x00", "A=b\x00"},
		{"no environment", 1, "/bin/sh\x00\x00sh\x00", ""},
		{"cut in the arguments", 5, "/bin/sh\x00\x00sh\x00-c", ""},
		{"no path", 0, "abc", ""},
		{"nothing", 1, "", ""},
	} {
		if got := environAfterArgs(tc.argc, []byte(tc.in)); string(got) != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func FuzzEnviron(f *testing.F) {
	f.Add(2, []byte("/bin/sh\x00\x00sh\x00-c\x00"+RunIDVar+"=run-1\x00"))
	f.Fuzz(func(t *testing.T, argc int, b []byte) {
		env := environAfterArgs(argc%64, b)
		if !bytes.HasSuffix(b, env) {
			t.Errorf("%q is not the end of %q", env, b)
		}
		if m := markerIn(env); m != "" && !strings.Contains(string(env), RunIDVar+"="+m) {
			t.Errorf("marker %q is not in %q", m, env)
		}
	})
}

func TestEnvValue(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3", "C"}
	for name, want := range map[string]string{"A": "3", "AB": "2", "B": "", "C": ""} {
		if got := EnvValue(env, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
