// Command packages opens the deb and rpm packages of a release and says what is not as it
// should be in them: packages FILE...
//
// Names, modes and owners of what is in them; the programs, a manual page for each command,
// completions and the licence; that what is packed is there to its last byte. It installs
// nothing.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: packages FILE...")
		os.Exit(2)
	}
	bad := false
	for _, name := range os.Args[1:] {
		p, err := open(name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "packages: %s: %v\n", name, err)
			bad = true
			continue
		}
		wrong := p.check(filepath.Ext(name))
		for _, w := range wrong {
			fmt.Fprintf(os.Stderr, "packages: %s: %s\n", name, w)
		}
		bad = bad || len(wrong) > 0
		fmt.Printf("%s: %s %s, %s, %d files, %d manual pages\n", filepath.Base(name), p.name, p.version, p.license, len(p.files), p.pages())
	}
	if bad {
		os.Exit(1)
	}
}

// pack is what a package says of itself and holds.
type pack struct {
	name, version, license string
	needs                  []string
	files                  map[string]file
}

type file struct {
	mode, size   int64 // mode: the permissions
	owner, group string
	begins       string // its first bytes
}

func open(name string) (*pack, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch filepath.Ext(name) {
	case ".deb":
		return openDeb(f)
	case ".rpm":
		return openRPM(f)
	}
	return nil, errors.New("is neither a deb nor an rpm")
}

func openDeb(f io.Reader) (*pack, error) {
	p := &pack{files: map[string]file{}}
	r := ar.NewReader(f)
	var parts []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		part := strings.TrimSuffix(h.Name, "/")
		parts = append(parts, part)
		if part == "debian-binary" {
			continue
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		for t := tar.NewReader(z); ; {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", part, err)
			}
			head, n, err := begin(t)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", part, h.Name, err)
			}
			switch {
			case part == "control.tar.gz" && filepath.Base(h.Name) == "control":
				p.control(head)
			case part == "data.tar.gz" && h.Typeflag == tar.TypeReg:
				p.files[strings.TrimPrefix(h.Name, ".")] = file{h.Mode & 0o7777, n, h.Uname, h.Gname, head}
			case part == "data.tar.gz" && h.Typeflag != tar.TypeDir:
				return nil, fmt.Errorf("%s is neither a file nor a directory", h.Name)
			}
		}
	}
	if !slices.Equal(parts, []string{"debian-binary", "control.tar.gz", "data.tar.gz"}) {
		return nil, fmt.Errorf("its parts are %q", parts)
	}
	if f, ok := p.files["/usr/share/doc/reprise/copyright"]; ok && strings.Contains(f.begins, "Apache License") {
		p.license = "Apache-2.0" // where Debian has it
	}
	return p, nil
}

func (p *pack) control(text string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Package":
			p.name = value
		case "Version":
			p.version = value
		case "Depends":
			p.needs = strings.Split(value, ", ")
		}
	}
}

func openRPM(f io.Reader) (*pack, error) {
	r, err := rpmutils.ReadRpm(f)
	if err != nil {
		return nil, err
	}
	p := &pack{files: map[string]file{}}
	n, err := r.Header.GetNEVRA()
	if err != nil {
		return nil, err
	}
	p.name, p.version = n.Name, n.Version
	if p.license, err = r.Header.GetString(rpmutils.LICENSE); err != nil {
		return nil, err
	}
	if p.needs, err = r.Header.GetStrings(rpmutils.REQUIRENAME); err != nil {
		return nil, err
	}
	payload, err := r.PayloadReaderExtended()
	if err != nil {
		return nil, err
	}
	for {
		h, err := payload.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		const kind, directory, regular = 0o170000, 0o040000, 0o100000
		if h.Mode()&kind == directory {
			continue
		}
		if h.Mode()&kind != regular {
			return nil, fmt.Errorf("%s is neither a file nor a directory", h.Name())
		}
		head, n, err := begin(payload)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name(), err)
		}
		if n != h.Size() {
			return nil, fmt.Errorf("%s has %d bytes, and says %d", h.Name(), n, h.Size())
		}
		p.files[h.Name()] = file{int64(h.Mode() & 0o7777), n, h.UserName(), h.GroupName(), head}
	}
}

// begin reads a file to its end, and gives its first 4 KiB and its length.
func begin(r io.Reader) (string, int64, error) {
	head, err := io.ReadAll(io.LimitReader(r, 4096))
	if err != nil {
		return "", 0, err
	}
	n, err := io.Copy(io.Discard, r)
	return string(head), int64(len(head)) + n, err
}

const manuals = "/usr/share/man/man1/"

func (p *pack) pages() (n int) {
	for name := range p.files {
		if strings.HasPrefix(name, manuals) {
			n++
		}
	}
	return n
}

// check is what is wrong with a package whose name ends so.
func (p *pack) check(ext string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if p.name != "reprise" || p.version == "" || p.license != "Apache-2.0" || !slices.Contains(p.needs, "git") {
		say("it says that it is %q %q under %q, and needs %q", p.name, p.version, p.license, p.needs)
	}
	texts := map[string]string{
		"/usr/share/bash-completion/completions/reprise":    "bash completion",
		"/usr/share/fish/vendor_completions.d/reprise.fish": "fish completion",
		"/usr/share/doc/reprise/copyright":                  "Apache License",
		"/usr/share/zsh/vendor-completions/_reprise":        "#compdef reprise",
		manuals + "reprise.1":                               ".TH",
		manuals + "reprise-init.1":                          ".TH",
		manuals + "reprise-loop-run.1":                      ".TH",
	}
	if ext == ".rpm" { // which knows another place of zsh's, and one of licences
		delete(texts, "/usr/share/zsh/vendor-completions/_reprise")
		delete(texts, "/usr/share/doc/reprise/copyright")
		texts["/usr/share/zsh/site-functions/_reprise"] = "#compdef reprise"
		texts["/usr/share/licenses/reprise/LICENSE"] = "Apache License"
	}
	programs := []string{"/usr/bin/reprise", "/usr/bin/reprise-hook", "/usr/bin/reprise-recall", "/usr/bin/reprise-supervise"}
	for _, name := range programs {
		if f, ok := p.files[name]; !ok || f.mode != 0o755 || !strings.HasPrefix(f.begins, "\x7fELF") {
			say("%s: there %t, mode %o, no program of Linux or not to be run", name, ok, f.mode)
		}
	}
	for name, has := range texts {
		if f, ok := p.files[name]; !ok || !strings.Contains(f.begins, has) {
			say("%s: there %t, without %q at its beginning", name, ok, has)
		}
	}
	for name, f := range p.files {
		_, text := texts[name]
		switch {
		case f.owner != "root" || f.group != "root":
			say("%s belongs to %s:%s", name, f.owner, f.group)
		case !slices.Contains(programs, name) && f.mode != 0o644:
			say("%s has mode %o", name, f.mode)
		case f.size == 0:
			say("%s is empty", name)
		case !text && !slices.Contains(programs, name) && !strings.HasPrefix(name, manuals+"reprise"):
			say("%s is not known here", name)
		}
	}
	if n := p.pages(); n < 100 {
		say("%d manual pages: one for each command is wanted", n)
	}
	slices.Sort(wrong)
	return wrong
}
