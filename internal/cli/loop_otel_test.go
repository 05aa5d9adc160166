package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLoopTells: a loop that ends has told the collector of what it did, and one whose
// collector is not there or not to be understood does its work, or says so before it
// begins.
func TestLoopTells(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, r.Header.Get("X-Key")+" "+r.URL.Path+" "+string(body))
	}))
	defer server.Close()
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	if err := os.Mkdir(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(env string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir = shop
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "REPRISE_HOME=" + filepath.Join(dir, "data")}, strings.Fields(env)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(env string, args ...string) {
		t.Helper()
		if out, err := run(env, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	must("", "init", "--yes", "--name", "shop")
	must("", "queue", "add", "Say hello", "--id", "one")
	loop := []string{"loop", "run", "--agent", "script", "--until-empty", "--delay", "0s"}
	if out, err := run("OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317", loop...); err == nil || !strings.Contains(out, "no http or https address") {
		t.Fatalf("%v: %s", err, out)
	}
	must("OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL+" OTEL_EXPORTER_OTLP_HEADERS=x-key=secret OTEL_SERVICE_NAME=night", loop...)
	all := strings.Join(bodies, "\n")
	for _, want := range []string{"secret /v1/traces", `"night"`, `"iteration one"`, `"invoke_agent script"`, `"gen_ai.operation.name"`, `"reprise.fate","value":{"stringValue":"done"}`} {
		if !strings.Contains(all, want) {
			t.Errorf("it was not told %s:\n%s", want, all)
		}
	}
	if strings.Contains(all, "Say hello") {
		t.Error("it was told what the item says")
	}
	must("", "queue", "add", "Say hello", "--id", "two")
	server.Close()
	must("OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, loop...)
	if out, _ := run("", "queue", "list", "--state", "done"); !strings.Contains(out, "two") {
		t.Errorf("without a collector the work was not done:\n%s", out)
	}
}
