// Package bundle packs the server for Claude Desktop, which installs it by a double
// click: an MCP bundle, a zip with a manifest and the programs. The form is that of
// version 0.3 of the manifest (github.com/anthropics/mcpb, MANIFEST.md). It writes no
// file itself and takes no lock.
package bundle

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A Program is a file of the bundle that can be run.
type Program struct {
	Name string // without a directory, such as reprise or reprise.exe
	Data io.Reader
}

// Options say what is packed.
type Options struct {
	// Version of reprise, as `reprise version` says it. What is no version of
	// semver.org, such as that of a build between releases, goes behind 0.0.0.
	Version string
	// GOOS is the system that the programs are for, in Go's words.
	GOOS string
	// Programs of the bundle. The first is the server.
	Programs []Program
}

// platforms are the manifest's words for systems.
var platforms = map[string]string{"darwin": "darwin", "windows": "win32", "linux": "linux"}

type manifest struct {
	ManifestVersion string   `json:"manifest_version"`
	Name            string   `json:"name"`
	DisplayName     string   `json:"display_name"`
	Version         string   `json:"version"`
	Description     string   `json:"description"`
	LongDescription string   `json:"long_description"`
	Author          author   `json:"author"`
	License         string   `json:"license"`
	Keywords        []string `json:"keywords"`
	Server          server   `json:"server"`
	ToolsGenerated  bool     `json:"tools_generated"`
	Compatibility   struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
}

type author struct {
	Name string `json:"name"`
}

type server struct {
	Type       string  `json:"type"`
	EntryPoint string  `json:"entry_point"`
	Config     command `json:"mcp_config"`
}

type command struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// dir is where the programs lie in the bundle.
const dir = "server"

// day is the time of each file: the first that a zip can hold, so that two bundles of
// the same programs are equal.
var day = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Write packs a bundle. The same programs, packed by programs of one Go version, give
// the same bytes. It fails for a system that the form has no word for, and when there
// is no program.
func Write(w io.Writer, o Options) error {
	platform, ok := platforms[o.GOOS]
	if !ok {
		return fmt.Errorf("pack bundle: %q is no system that bundles are made for: give darwin, linux or windows", o.GOOS)
	}
	if len(o.Programs) == 0 {
		return errors.New("pack bundle: there is no program")
	}
	entry := path.Join(dir, o.Programs[0].Name)
	m := manifest{
		ManifestVersion: "0.3",
		Name:            "reprise",
		DisplayName:     "reprise",
		Version:         semver(o.Version),
		Description:     "A working memory for coding agents, and agents that run in the background.",
		LongDescription: "Memory in plain markdown that every session and every client shares, search over what past sessions learnt, and coding agents that are started, watched and stopped as background runs. Everything stays on this machine.",
		Author:          author{Name: "The reprise authors"},
		License:         "Apache-2.0",
		Keywords:        []string{"memory", "agents", "coding"},
		Server: server{
			Type: "binary", EntryPoint: entry,
			// The client replaces this by where it unpacked the bundle.
			Config: command{Command: "${__dirname}/" + entry, Args: []string{"mcp"}},
		},
		ToolsGenerated: true,
	}
	m.Compatibility.Platforms = []string{platform}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("pack bundle: %w", err)
	}
	z := zip.NewWriter(w)
	if err := add(z, "manifest.json", 0o644, strings.NewReader(string(text)+"\n")); err != nil {
		return err
	}
	for _, p := range o.Programs {
		if err := add(z, path.Join(dir, p.Name), 0o755, p.Data); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("pack bundle: %w", err)
	}
	return nil
}

func add(z *zip.Writer, name string, mode uint32, data io.Reader) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: day}
	// What the client unpacks on Unix is run as it stands.
	h.ExternalAttrs = (0o100000 | mode) << 16
	h.CreatorVersion = 3 << 8 // Unix
	f, err := z.CreateHeader(h)
	if err == nil {
		_, err = io.Copy(f, data)
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

var (
	// release is a version of semver.org: three numbers, and what may follow.
	release = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?(\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?)$`) })
	strange = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^0-9A-Za-z-]+`) })
)

func semver(version string) string {
	if m := release().FindStringSubmatch(version); m != nil {
		return m[1]
	}
	rest := strings.Trim(strange().ReplaceAllString(version, "-"), "-")
	if rest == "" {
		return "0.0.0"
	}
	return "0.0.0-" + rest
}
