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
	if err := os.WriteFile(filepath.Join(dir, "metadata.json"), []byte(`{"project_name":"reprise","version":"9.1.0"}`), 0o644); err != nil {
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
		_, _ = w.Write([]byte(`{"project_name":"reprise","version":"1.10.0"}`))
	}))
	defer served.Close()
	for name, test := range map[string]struct {
		from string
		code int
		says string
	}{
		"older":              {write("older.json", `{"project_name":"reprise","version":"1.2.2"}`), ExitOK, "is not newer"},
		"the same":           {write("same.json", `{"project_name":"reprise","version":"v1.2.3"}`), ExitOK, "is not newer"},
		"before it":          {write("pre.json", `{"project_name":"reprise","version":"1.2.3-rc.1"}`), ExitOK, "is not newer"},
		"newer":              {write("newer.json", `{"project_name":"reprise","version":"1.2.10"}`), ExitConflict, "v1.2.10 is newer"},
		"checksums":          {write("checksums.txt", sum+"  reprise_1.3.0_linux_amd64.tar.gz\n"), ExitConflict, "v1.3.0 is newer"},
		"address":            {served.URL + "/metadata.json", ExitConflict, "v1.10.0 is newer"},
		"not there":          {filepath.Join(dir, "gone"), ExitNotFound, "gone"},
		"not served":         {served.URL + "/gone", ExitFailure, "404"},
		"no release":         {write("text", "hello"), ExitFailure, "no version is in it"},
		"no version":         {write("words.json", `{"project_name":"reprise","version":"soon"}`), ExitFailure, "no version is in it"},
		"another program's":  {write("pkg.json", `{"name":"left-pad","version":"9.9.9"}`), ExitFailure, "does not say that it is of reprise"},
		"no name":            {write("bare.json", `{"version":"9.9.9"}`), ExitFailure, "does not say that it is of reprise"},
		"for the registry":   {write("server.json", `{"name":"io.github.somebody/mine","title":"reprise","version":"1.3.0"}`), ExitConflict, "v1.3.0 is newer"},
		"cut off":            {write("cut.json", `{"project_name":"reprise","version":`), ExitFailure, "damaged or cut off"},
		"leading zeros":      {write("zeros.json", `{"project_name":"reprise","version":"01.9.9"}`), ExitFailure, "no version is in it"},
		"byte order mark":    {write("bom.json", "\ufeff"+`{"project_name":"reprise","version":"1.3.0"}`+"\r\n"), ExitConflict, "v1.3.0 is newer"},
		"lines of Windows":   {write("crlf.txt", "\ufeff"+sum+" *reprise_1.3.0_windows_amd64.zip\r\n"), ExitConflict, "v1.3.0 is newer"},
		"several versions":   {write("both.txt", sum+"  reprise_1.2.0_linux_amd64.tar.gz\n"+sum+"  reprise_1.10.0_linux_amd64.tar.gz\n"+sum+"  reprise_1.9.0_linux_arm64.tar.gz\n"), ExitConflict, "v1.10.0 is newer"},
		"UTF-16":             {write("utf16", "\xff\xfe{\x00"), ExitFailure, "no UTF-8"},
		"in capitals":        {strings.Replace(served.URL, "http", "HTTP", 1) + "/metadata.json", ExitConflict, "v1.10.0 is newer"},
		"another scheme":     {"ftp://example.invalid/metadata.json", ExitUsage, "begins with http:// or https://"},
		"another, capitals":  {"FTP://example.invalid/metadata.json", ExitUsage, "begins with http:// or https://"},
		"a file's address":   {"file:///etc/metadata.json", ExitUsage, "without file://"},
		"no address":         {"http://somebody:hunter2pass@[::1/metadata.json", ExitUsage, "that is no address"},
		"a password":         {strings.Replace(served.URL, "http://", "http://somebody:hunter2pass@", 1) + "/gone?sig=hunter2pass", ExitFailure, "***@127.0.0.1"},
		"a password, closed": {"http://hunter2pass@127.0.0.1:1/metadata.json", ExitFailure, "ask for the release at http://***@127.0.0.1:1/metadata.json"},
		"a password, served": {strings.Replace(served.URL, "http://", "http://hunter2pass:x@", 1) + "/metadata.json", ExitConflict, "v1.10.0 is newer"},
		"far too big":        {write("big", strings.Repeat("x", maxRelease+1)), ExitFailure, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			app := &App{In: strings.NewReader(""), Out: &out, Err: &out, Env: config.Env{Vars: map[string]string{"HOME": dir}, Dir: dir, GOOS: "linux", Now: time.Now}}
			code := Main(t.Context(), []string{"upgrade", "--check", test.from}, app)
			said := out.String()
			if code != test.code || !strings.Contains(said, test.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, test.says, said)
			}
			out.Reset()
			Main(t.Context(), []string{"upgrade", "--check", "--json", test.from}, app)
			if strings.Contains(said+out.String(), "hunter2pass") {
				t.Errorf("the password of the address is printed:\n%s%s", said, out.String())
			}
		})
	}
}
