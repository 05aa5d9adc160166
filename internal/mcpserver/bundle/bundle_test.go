package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func programs(names ...string) []Program {
	var out []Program
	for _, name := range names {
		out = append(out, Program{Name: name, Data: strings.NewReader("the program " + name)})
	}
	return out
}

func pack(t *testing.T, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBundleHoldsManifestAndPrograms(t *testing.T) {
	data := pack(t, Options{Version: "v1.2.3", GOOS: "windows", Programs: programs("reprise.exe", "reprise-supervise.exe")})
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		if run := f.Mode()&0o111 != 0; run != strings.HasPrefix(f.Name, "server/") {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	if len(files) != 3 || files["server/reprise-supervise.exe"] != "the program reprise-supervise.exe" {
		t.Fatalf("the bundle holds %v", files)
	}
	var m struct {
		Name, Version string
		Server        struct {
			EntryPoint string `json:"entry_point"`
			Config     struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		Compatibility struct{ Platforms []string }
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3" || m.Server.EntryPoint != "server/reprise.exe" || m.Server.Config.Command != "${__dirname}/server/reprise.exe" ||
		len(m.Server.Config.Args) != 1 || m.Server.Config.Args[0] != "mcp" || m.Compatibility.Platforms[0] != "win32" {
		t.Errorf("manifest: %+v", m)
	}
}

func TestTwoBundlesAreEqual(t *testing.T) {
	o := func() Options { return Options{Version: "dev", GOOS: "linux", Programs: programs("reprise")} }
	if !bytes.Equal(pack(t, o()), pack(t, o())) {
		t.Error("the same programs give other bytes")
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "dev": "0.0.0-dev", "dev-0123abc+changes": "0.0.0-dev-0123abc-changes", "": "0.0.0", "v1.2": "0.0.0-v1-2",
	} {
		if got := semver(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	if err := Write(io.Discard, Options{GOOS: "plan9", Programs: programs("reprise")}); err == nil || !strings.Contains(err.Error(), "darwin, linux or windows") {
		t.Errorf("a system without a word: %v", err)
	}
	if err := Write(io.Discard, Options{GOOS: "linux"}); err == nil {
		t.Error("no program, and no error")
	}
}
