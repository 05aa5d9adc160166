package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/internal/config"
)

// A build without a number knows of no release whether it is newer, and says so.
func TestUpgradeUnnumbered(t *testing.T) {
	old := release
	release = ""
	defer func() { release = old }()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "metadata.json"), []byte(`{"version":"9.1.0"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if aVersion().MatchString(Version()) {
		t.Skipf("this build has a number, %s", Version())
	}
	var out bytes.Buffer
	app := &App{In: strings.NewReader(""), Out: &out, Err: &out, Env: config.Env{Vars: map[string]string{"HOME": dir}, Dir: dir, GOOS: "linux", Now: time.Now}}
	if code := Main(t.Context(), []string{"upgrade", "--check", "metadata.json"}, app); code != ExitOK || !strings.Contains(out.String(), "whether that is newer cannot be told") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}

// A release is looked at where the user says, in a file or at an address, and nowhere else.
func TestUpgradeCheck(t *testing.T) {
	old := release
	release = "v1.2.3"
	defer func() { release = old }()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sum := strings.Repeat("a", 64)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metadata.json" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"version":"1.10.0"}`))
	}))
	defer served.Close()
	for name, test := range map[string]struct {
		from string
		code int
		says string
	}{
		"older":       {write("older.json", `{"version":"1.2.2"}`), ExitOK, "is not newer"},
		"the same":    {write("same.json", `{"version":"v1.2.3"}`), ExitOK, "is not newer"},
		"before it":   {write("pre.json", `{"version":"1.2.3-rc.1"}`), ExitOK, "is not newer"},
		"newer":       {write("newer.json", `{"version":"1.2.10"}`), ExitConflict, "v1.2.10 is newer"},
		"checksums":   {write("checksums.txt", sum+"  reprise_1.3.0_linux_amd64.tar.gz\n"), ExitConflict, "v1.3.0 is newer"},
		"address":     {served.URL + "/metadata.json", ExitConflict, "v1.10.0 is newer"},
		"not there":   {filepath.Join(dir, "gone"), ExitNotFound, "gone"},
		"not served":  {served.URL + "/gone", ExitFailure, "404"},
		"no release":  {write("text", "hello"), ExitFailure, "no version is in it"},
		"no version":  {write("words.json", `{"version":"soon"}`), ExitFailure, "no version is in it"},
		"far too big": {write("big", strings.Repeat("x", maxRelease+1)), ExitFailure, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			app := &App{In: strings.NewReader(""), Out: &out, Err: &out, Env: config.Env{Vars: map[string]string{"HOME": dir}, Dir: dir, GOOS: "linux", Now: time.Now}}
			code := Main(t.Context(), []string{"upgrade", "--check", test.from}, app)
			if code != test.code || !strings.Contains(out.String(), test.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, test.says, out.String())
			}
		})
	}
}
