package verify

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"

	"reprise/internal/durable"
)

// derived are the files of [Options.Derived] with what is in them.
func (v *Verifier) derived() map[string][sha256.Size]byte {
	out := map[string][sha256.Size]byte{}
	for _, dir := range v.o.Derived {
		entries, err := durable.ReadDir(dir)
		if err != nil {
			continue // there are none
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if data, err := durable.Read(name); err == nil {
				out[name] = sha256.Sum256(data)
			} else {
				out[name] = [sha256.Size]byte{}
			}
		}
	}
	return out
}

// dropDerived removes those that are not what they were: made anew, they say again what
// the settings say. One that a hook made meanwhile is made once more.
func (v *Verifier) dropDerived(before map[string][sha256.Size]byte) {
	for name, sum := range v.derived() {
		if was, ok := before[name]; ok && was == sum && was != [sha256.Size]byte{} {
			continue
		}
		if err := v.o.Store.Disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.o.Warn("what changed while checks ran could not be removed", err)
		}
	}
}
