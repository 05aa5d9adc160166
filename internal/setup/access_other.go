//go:build !unix

package setup

import "io/fs"

// writableDir knows nothing here: what may be written is told by the write.
func writableDir(string) error { return nil }

// writableFile goes by the file's attribute.
func writableFile(_ string, mode fs.FileMode) error {
	if mode&0o200 == 0 {
		return fs.ErrPermission
	}
	return nil
}
