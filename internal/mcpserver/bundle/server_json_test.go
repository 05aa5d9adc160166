//go:build unix

package bundle

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const serverJSON = "../../../script/release/server-json"

// What the registry of MCP servers is told of a release fits the release: its version is
// that of the bundles' own manifests, each bundle is named with the sum of its bytes, and all
// of it is as the registry's schema of 2025-12-11 wants it. Of that the rules stand here that
// a package of this kind has: the schema itself is not ours to copy.
func TestServerJSON(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not here")
	}
	const version = "1.2.4-next+0abc123" // as a snapshot's
	dir := t.TempDir()
	sums := map[string]string{} // of files
	var list strings.Builder
	for _, goos := range []string{"linux", "darwin", "windows"} {
		var b bytes.Buffer
		if err := Write(&b, Options{Version: "v" + version, GOOS: goos, Programs: []Program{{Name: "reprise", Data: strings.NewReader("a program for " + goos)}}}); err != nil {
			t.Fatal(err)
		}
		file := "reprise_" + version + "_" + goos + "_amd64.mcpb"
		if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b.Bytes())
		sums[file] = hex.EncodeToString(sum[:])
		list.WriteString(sums[file] + "  " + file + "\n")
	}
	checksums := filepath.Join(dir, "checksums.txt")
	others := strings.Repeat("0", 64) + "  reprise_" + version + "_linux_amd64.tar.gz\n"
	if err := os.WriteFile(checksums, []byte(others+list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bash, serverJSON, version, "io.github.somebody/reprise", "https://example.org/releases/", checksums).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var doc struct {
		Schema      string `json:"$schema"`
		Name        string `json:"name"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Version     string `json:"version"`
		Packages    []struct {
			RegistryType string `json:"registryType"`
			Identifier   string `json:"identifier"`
			FileSHA256   string `json:"fileSha256"`
			Transport    struct {
				Type string `json:"type"`
			} `json:"transport"`
		} `json:"packages"`
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.DisallowUnknownFields() // a package has none that the schema does not know
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	switch {
	case !strings.HasSuffix(doc.Schema, "/2025-12-11/server.schema.json"):
		t.Errorf("schema %q", doc.Schema)
	case !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(doc.Name) || len(doc.Name) < 3 || len(doc.Name) > 200:
		t.Errorf("name %q", doc.Name)
	case len(doc.Description) < 1 || len(doc.Description) > 100 || len(doc.Title) < 1 || len(doc.Title) > 100:
		t.Errorf("title %q, description %q", doc.Title, doc.Description)
	case doc.Version != version || len(doc.Version) > 255:
		t.Errorf("version %q", doc.Version)
	case len(doc.Packages) != len(sums):
		t.Errorf("%d packages of %d bundles", len(doc.Packages), len(sums))
	}
	var seen []string
	for _, p := range doc.Packages {
		u, err := url.Parse(p.Identifier)
		if err != nil || u.Scheme != "https" || !strings.HasPrefix(u.Path, "/releases/") || !strings.Contains(p.Identifier, "mcp") {
			t.Errorf("identifier %q (%v)", p.Identifier, err)
			continue
		}
		file := filepath.Base(u.Path)
		seen = append(seen, file)
		if p.RegistryType != "mcpb" || p.Transport.Type != "stdio" || p.FileSHA256 != sums[file] || !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(p.FileSHA256) {
			t.Errorf("%+v", p)
		}
		if got := manifestVersion(t, filepath.Join(dir, file)); got != doc.Version {
			t.Errorf("the manifest of %s says %s, server.json %s", file, got, doc.Version)
		}
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != len(sums) {
		t.Errorf("bundles %q", seen)
	}

	// What is no such thing is refused, and nothing printed.
	for what, args := range map[string][]string{
		"a name without a slash":  {version, "reprise", "https://example.org", checksums},
		"a name with two":         {version, "a/b/c", "https://example.org", checksums},
		"a version range":         {"^1.2.3", "io.github.a/b", "https://example.org", checksums},
		"latest":                  {"latest", "io.github.a/b", "https://example.org", checksums},
		"an address with a quote": {version, "io.github.a/b", `https://example.org/"`, checksums},
		"no encryption":           {version, "io.github.a/b", "http://example.org", checksums},
		"no bundle":               {version, "io.github.a/b", "https://example.org", os.DevNull},
		"too few words":           {version},
	} {
		if out, err := exec.Command(bash, append([]string{serverJSON}, args...)...).Output(); err == nil || len(out) > 0 {
			t.Errorf("%s: %v, %s", what, err, out)
		}
	}
}

func manifestVersion(t *testing.T, bundle string) string {
	t.Helper()
	z, err := zip.OpenReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var m manifest
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m.Version
}
