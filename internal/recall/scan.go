package recall

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"reprise/internal/durable"
)

const (
	maxFile    = 8 << 20 // bytes of a file that is indexed
	maxSection = 6 << 10 // bytes of a section that is one document; longer ones are cut at lines
	racy       = 2 * time.Second
)

// hint is what a look at a file tells without reading it.
type hint struct {
	size, mtime, ctime, ino int64 // times in ns since 1970; ctime 0 where the system has none
	regular                 bool
}

// file is what the index knows of a file.
type file struct {
	id   int64
	hash string
	hint
	at int64 // ns since 1970 when it was hashed
}

// trusted says that a file with hint h needs no reading.
func (f file) trusted(h hint) bool {
	g := f.hint
	g.regular = h.regular
	return h.regular && g == h && max(h.mtime, h.ctime) < f.at-int64(racy)
}

// look lists a memory's files with their hints.
func look(dir string) (map[string]hint, error) {
	out := map[string]hint{}
	for _, name := range []string{coreFile, indexFile} {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			out[name] = hintOf(fi)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at memory: %w", err)
		}
	}
	d, err := durable.OpenDirectory(filepath.Join(dir, "blocks"))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at memory: %w", err)
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(4096)
		for _, e := range list {
			if !isBlock(e.Name()) || e.IsDir() {
				continue
			}
			fi, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone between the two calls
			}
			if err != nil {
				return nil, fmt.Errorf("look at memory: %w", err)
			}
			out["blocks/"+e.Name()] = hintOf(fi)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look at memory: %w", err)
		}
	}
}

const coreFile, indexFile = "core.md", "index.md"

func isBlock(name string) bool {
	return strings.EqualFold(filepath.Ext(name), ".md") && !strings.HasPrefix(name, ".")
}

// lookAt is look for one file; gone when it is not there or none of ours.
func lookAt(dir, name string) (h hint, gone bool, err error) {
	base, ok := strings.CutPrefix(name, "blocks/")
	if name != coreFile && name != indexFile && (!ok || strings.Contains(base, "/") || !isBlock(base)) {
		return hint{}, true, nil
	}
	fi, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return hint{}, true, nil
	}
	if err != nil {
		return hint{}, false, err
	}
	return hintOf(fi), fi.IsDir(), nil
}

func hintOf(fi fs.FileInfo) hint {
	h := hint{size: fi.Size(), mtime: fi.ModTime().UnixNano(), regular: fi.Mode().IsRegular()}
	h.ctime, h.ino = changeOf(fi)
	return h
}

// dirTimes are the modification times of the two directories.
func dirTimes(dir string) [2]int64 {
	var t [2]int64
	for i, d := range []string{dir, filepath.Join(dir, "blocks")} {
		if fi, err := os.Stat(d); err == nil {
			t[i] = fi.ModTime().UnixNano()
		}
	}
	return t
}

// read returns a file's text. It follows no link out of the memory and waits
// for no pipe.
func read(root *os.Root, name string) ([]byte, error) {
	fi, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file")
	}
	if fi.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes, at most %d are indexed", fi.Size(), maxFile)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it grew over %d bytes", maxFile)
	}
	return data, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
