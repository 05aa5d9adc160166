package checkout

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"

	"reprise/internal/git"
)

// maxWalk bounds how many files are looked at outside git.
const maxWalk = 100_000

// Print is a fingerprint of the directory: names, sizes and times of files, without
// reading them.
func Print(ctx context.Context, g *git.Git, dir string) (string, error) {
	h := sha256.New()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			return nil // what cannot be looked at does not count
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == ".reprise") {
			return fs.SkipDir
		}
		if n++; n > maxWalk {
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			fmt.Fprintf(h, "%s\x00%d\x00%d\x00", path, info.Size(), info.ModTime().UnixNano())
		}
		return ctx.Err()
	})
	if err != nil {
		return "", err
	}
	if head, err := g.Run(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		h.Write(head)
	}
	return cmp.Or(hex.EncodeToString(h.Sum(nil)), "empty"), nil
}
