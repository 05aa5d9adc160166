package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's index ends in a SHA-1
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"reprise/internal/durable"
)

// WriteIndex makes the index of a checkout, whose directory among the worktrees is
// admin, that of a set of files, without a process. It has the form that git has
// read since 2005 (version 2) and says nothing of times and sizes, which git then
// looks up itself. Another git that works on the index is ErrLocked.
func (g *Git) WriteIndex(admin string, files map[string]Entry) (err error) {
	var b bytes.Buffer
	b.WriteString("DIRC")
	number := func(n uint32) { _ = binary.Write(&b, binary.BigEndian, n) } // a buffer takes all
	number(2)
	number(uint32(len(files)))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		e := files[name]
		mode, merr := strconv.ParseUint(e.Mode, 8, 32)
		id, ierr := hex.DecodeString(e.ID)
		if merr != nil || ierr != nil || len(id) != sha1.Size || e.Mode == ModeTree {
			return fmt.Errorf("write index: %s is no file", name)
		}
		start := b.Len()
		for i := range 10 {
			if i == 6 {
				number(uint32(mode))
			} else {
				number(0)
			}
		}
		b.Write(id)
		_ = binary.Write(&b, binary.BigEndian, uint16(min(len(name), 0xfff)))
		b.WriteString(name)
		b.Write(make([]byte, 8-(b.Len()-start)%8)) // at least one zero
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	index := filepath.Join(admin, "index")
	f, err := g.o.Disk.CreateHot(index+".lock", 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write index: %w", ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	_, err = f.Write(b.Bytes())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = g.o.Disk.Rename(index+".lock", index)
	}
	if err != nil {
		_ = durable.Remove(index + ".lock")
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}
