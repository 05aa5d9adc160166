package durable

import (
	"io/fs"
	"os"
)

func openPlain(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
