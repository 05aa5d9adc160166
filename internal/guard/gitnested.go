package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxNestedRepositories is how many repositories of one index are looked at.
const maxNestedRepositories = 64

// maxIndex is the size in bytes of an index beyond which it is not looked through. Tests
// make it smaller.
var maxIndex int64 = 32 << 20

// allRepositories are directories with those of repositories that git goes into from
// there: what their settings name it runs as well, in them.
func (a *analysis) allRepositories(dirs []string, given []word) []string {
	out := dirs
	for _, dir := range dirs {
		for _, git := range a.gitDirs(dir) {
			for _, p := range a.gitlinks(filepath.Join(git.own, "index")) {
				if git.top != "" {
					out = append(out[:len(out):len(out)], a.physical(git.top, p))
				}
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

// Modes of an index's entries that are no files: other repositories, and symbolic links.
const (
	modeRepository = 0o160000
	modeLink       = 0o120000
)

// gitlinks are the paths of repositories that an index has.
func (a *analysis) gitlinks(path string) (out []string) {
	if list, ok := a.nestedIn[path]; ok {
		return list
	}
	out = indexed(path, modeRepository, maxNestedRepositories)
	if a.nestedIn == nil {
		a.nestedIn = map[string][]string{}
	}
	a.nestedIn[path] = out
	return out
}

// maxIndexLinks is how many links of an index are looked at.
const maxIndexLinks = 5000

// indexLinks are the symbolic links that git has of the tree that a directory is in.
func (a *analysis) indexLinks(dir string) (out []string) {
	for _, git := range a.gitDirs(dir) {
		if git.top == "" {
			continue
		}
		for _, p := range indexed(filepath.Join(git.own, "index"), modeLink, maxIndexLinks) {
			out = append(out, below(git.top, p))
		}
	}
	return out
}

// indexed are the paths of the entries of an index that have a mode, as many as are
// wanted. The format is that of gitformat-index(5), in its versions 2 to 4.
func indexed(path string, mode uint32, most int) (out []string) {
	return indexedBy(path, most, func(m uint32, _ []byte) bool { return m == mode }, binary.BigEndian.AppendUint32(nil, mode)...)
}

// indexData is what an index holds, nothing where none is there; it reports whether all
// of it could be read.
func indexData(path string) ([]byte, bool) {
	f, err := openNow(path)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, false
	}
	data, err := io.ReadAll(f)
	return data, err == nil
}

// indexedBy are the paths of the entries of an index that are wanted; an index that has
// not these bytes has none.
func indexedBy(path string, most int, wanted func(mode uint32, name []byte) bool, has ...byte) (out []string) {
	data, _ := indexData(path)
	return entriesOf(data, most, wanted, has...)
}

// entriesOf are those of an index that are wanted.
func entriesOf(data []byte, most int, wanted func(mode uint32, name []byte) bool, has ...byte) (out []string) {
	if len(data) < 12 || string(data[:4]) != "DIRC" || !bytes.Contains(data, has) {
		return nil
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	var name []byte
	id := idLength(data)
	for at := 12; n > 0 && at+42+id < len(data) && len(out) < most; n-- {
		e := data[at:]
		start := 42 + id // times, device, mode and so on; the id; flags
		if e[start-2]&0x40 != 0 {
			start += 2 // more flags
		}
		if version >= 4 {
			cut, length := stripped(e[min(start, len(e)):])
			start += length
			if cut > len(name) {
				break
			}
			name = name[:len(name)-cut]
		} else {
			name = nil
		}
		end := bytes.IndexByte(e[min(start, len(e)):], 0)
		if end < 0 {
			break
		}
		name = append(name, e[start:start+end]...)
		if wanted(binary.BigEndian.Uint32(e[24:]), name) {
			out = append(out, string(name))
		}
		if at += start + end + 1; version < 4 {
			at += (8 - (start+end+1)%8) % 8
		}
	}
	return out
}

// idLength is the length of object ids in an index: its first entry tells, as the
// flags after the id have the length of its name.
func idLength(data []byte) int {
	for _, id := range [...]int{20, 32} {
		start := 12 + 42 + id
		if start >= len(data) {
			break
		}
		flags := binary.BigEndian.Uint16(data[start-2:])
		if flags&0x4000 != 0 {
			start += 2
		}
		if binary.BigEndian.Uint32(data[4:]) >= 4 {
			_, n := stripped(data[min(start, len(data)):])
			start += n
		}
		length := int(flags & 0xfff)
		if end := bytes.IndexByte(data[min(start, len(data)):], 0); end == length || end > length && length == 0xfff {
			return id
		}
	}
	return 20
}

// stripped reads the number by which a name of version 4 begins: how many bytes of
// the name before it go. It is coded as offsets in a pack are.
func stripped(b []byte) (cut, length int) {
	for i, c := range b {
		if i > 0 {
			cut++
		}
		if cut = cut<<7 | int(c&0x7f); c&0x80 == 0 || i > 4 {
			return cut, i + 1
		}
	}
	return 0, len(b)
}
