package guard

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

// Bounds of looking for repositories inside one.
const (
	maxIndex              = 32 << 20 // bytes of an index; a larger one is not looked through
	maxNestedRepositories = 64       // repositories in one
)

// allRepositories are directories with those of repositories that git goes into from
// there: what their settings name it runs as well, in them.
func (a *analysis) allRepositories(dirs []string, given []word) []string {
	out := dirs
	for _, dir := range dirs {
		git, _ := gitDirs(dir)
		if git == "" {
			continue
		}
		top := gitTop(dir)
		for _, p := range a.gitlinks(filepath.Join(git, "index")) {
			if top != "" && len(out) < len(dirs)+maxNestedRepositories {
				out = append(out[:len(out):len(out)], a.physical(top, p))
			}
		}
		for _, w := range given {
			if p := a.physical(dir, w.text); w.known() && w.text != "" && len(w.text) < maxPath && isThere(filepath.Join(p, ".git")) {
				out = append(out[:len(out):len(out)], p)
			}
		}
	}
	return out
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// gitlinks are the paths of repositories that an index has: entries of mode 160000.
// The format is that of gitformat-index(5).
// What version 4 shortens is not read.
func (a *analysis) gitlinks(path string) (out []string) {
	if list, ok := a.nestedIn[path]; ok {
		return list
	}
	defer func() {
		if a.nestedIn == nil {
			a.nestedIn = map[string][]string{}
		}
		a.nestedIn[path] = out
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil
	}
	data, err := io.ReadAll(f)
	if err != nil || len(data) < 12 || string(data[:4]) != "DIRC" || !bytes.Contains(data, []byte{0, 0, 0xe0, 0}) {
		return nil
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version > 3 {
		return nil
	}
	for at := 12; n > 0 && at+62 < len(data) && len(out) < maxNestedRepositories; n-- {
		e := data[at:]
		name := 62
		if e[60]&0x40 != 0 {
			name += 2
		}
		end := bytes.IndexByte(e[min(name, len(e)):], 0)
		if end < 0 {
			break
		}
		if binary.BigEndian.Uint32(e[24:]) == 0o160000 {
			out = append(out, string(e[name:name+end]))
		}
		at += (name + end + 8) &^ 7
	}
	return out
}
