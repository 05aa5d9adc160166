//go:build !linux && !darwin

package tree

import (
	"io/fs"
	"os"

	"reprise/internal/durable"
)

func seeInfo(fi fs.FileInfo) seen { return seen{modified: fi.ModTime().UnixNano()} }

func openFile(name string) (*os.File, error) { return durable.Open(name) }

func freeBytes(string) (int64, bool) { return 0, false }

// alone reports whether a file has no other name, as far as can be told.
func alone(fs.FileInfo) bool { return false }
