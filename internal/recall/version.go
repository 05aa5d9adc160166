package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
)

// A program that was replaced may live on: a client's server, a loop. Where two versions
// kept one file, each threw away at every use what the other had made. So the name of the
// file has the version in it, and what nobody uses any more is swept.

// FileFor is the file of the index that base stands for, as this program keeps it:
// cache/index.db is cache/index-v903-9.db. derived is the version of what is worked out from
// the logs.
func FileFor(base, derived string) string {
	return strings.TrimSuffix(base, indexEnd) + versionMark + strconv.Itoa(version) + "-" + derived + indexEnd
}

const (
	indexStart  = "index"
	indexEnd    = ".db"
	versionMark = "-v"
)

// kept is one index file: of which memory, and of which version; 0 of programs whose files
// had none in their names.
type kept struct {
	file, of        string
	layout, derived int
}

func keptAs(file string) (k kept, ok bool) {
	name, ok := strings.CutSuffix(filepath.Base(file), indexEnd)
	if !ok {
		return k, false
	}
	k = kept{file: file, of: name}
	if i := strings.LastIndex(name, versionMark); i >= 0 {
		layout, derived, _ := strings.Cut(name[i+len(versionMark):], "-")
		var lerr, derr error
		k.of = name[:i]
		k.layout, lerr = strconv.Atoi(layout)
		k.derived, derr = strconv.Atoi(derived)
		if lerr != nil || derr != nil {
			return k, false
		}
	}
	return k, k.of == indexStart || strings.HasPrefix(k.of, indexStart+"-") // of another memory than the usual one
}

func (k kept) compare(other kept) int {
	return cmp.Or(cmp.Compare(k.layout, other.layout), cmp.Compare(k.derived, other.derived))
}

// beside are the other index files where one lies.
func beside(file string) (out []kept, err error) {
	list, err := durable.ReadDir(filepath.Dir(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for indexes: %w", err)
	}
	for _, e := range list {
		if k, ok := keptAs(filepath.Join(filepath.Dir(file), e.Name())); ok && e.Type().IsRegular() && e.Name() != filepath.Base(file) {
			out = append(out, k)
		}
	}
	return out, nil
}

// Followed says that another version of the program keeps, or kept, an index of the same
// memory beside file, so that this one's, where it is not there, is made after an update.
func Followed(file string) bool {
	own, ok := keptAs(file)
	others, err := beside(file)
	return ok && err == nil && slices.ContainsFunc(others, func(k kept) bool { return k.of == own.of })
}

const (
	// unusedFor is how long an older version's index stays after its last use.
	unusedFor = 14 * 24 * time.Hour
	// noteUse is how old the time of an index may become before a use sets it: reading
	// changes nothing else of it.
	noteUse = 24 * time.Hour
)

// used notes that the index is used, for whoever sweeps. That it cannot be noted is no
// reason to fail.
func (x *Index) used(info os.FileInfo) {
	if now := x.o.Now(); !x.o.NoBuild && now.Sub(info.ModTime()) > noteUse {
		_ = durable.Disk{}.Touch(x.o.IndexFile, now)
	}
}

// Sweep removes the indexes of older versions beside this one that nobody has used for
// two weeks. One of a newer version is that one's to keep.
func (x *Index) Sweep() error {
	own, ok := keptAs(x.o.IndexFile)
	if !ok {
		return nil
	}
	others, err := beside(x.o.IndexFile)
	before := x.o.Now().Add(-unusedFor)
	for _, k := range others {
		if k.compare(own) >= 0 || k.usedSince(before) {
			continue
		}
		unlock, lerr := durable.TryLock(k.file + ".lock")
		if errors.Is(lerr, durable.ErrLocked) {
			continue
		}
		if lerr != nil {
			err = errors.Join(err, lerr)
			continue
		}
		if !k.usedSince(before) {
			err = errors.Join(err, k.remove())
		}
		err = errors.Join(err, unlock())
	}
	return err
}

// DropOthers removes every other version's index of this memory: what is purged must not
// stand in one of them. Whoever still uses it makes it anew.
func (x *Index) DropOthers(ctx context.Context) error {
	own, ok := keptAs(x.o.IndexFile)
	if !ok {
		return nil
	}
	others, err := beside(x.o.IndexFile)
	for _, k := range others {
		if k.of != own.of {
			continue
		}
		unlock, lerr := durable.Lock(ctx, k.file+".lock")
		if lerr != nil {
			err = errors.Join(err, lerr)
			continue
		}
		err = errors.Join(err, k.remove(), unlock())
	}
	return err
}

// files are those of an index, in the order in which they go: a journal never lies beside a
// database that it is not of.
func (k kept) files() []string {
	return []string{k.file, k.file + "-journal", k.file + "-wal", k.file + "-shm", k.file + ".new", k.file + ".new-journal"}
}

func (k kept) usedSince(t time.Time) bool {
	return slices.ContainsFunc(k.files(), func(f string) bool {
		info, err := os.Lstat(f)
		return err == nil && info.ModTime().After(t)
	})
}

func (k kept) remove() error {
	if err := clearAway(k.files()...); err != nil {
		return fmt.Errorf("remove the index of another version: %w", err)
	}
	return nil
}
