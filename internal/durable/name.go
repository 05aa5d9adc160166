package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"reprise/internal/clip"
)

// ErrName is the error for a name that a [Dir] does not take.
var ErrName = errors.New("name not allowed")

// CheckName reports why name is not one that a [Dir] takes, or nil. A name is
// relative, with slashes, without "." or ".." elements, and such that it means
// the same file on Linux, macOS and Windows: directories are carried from one
// to the other by git.
func CheckName(name string) error {
	if why := badName(name); why != "" {
		return fmt.Errorf("%w: %q %s", ErrName, clip.Bytes(name, 120), why)
	}
	return nil
}

func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.IndexByte(name, 0) >= 0:
		return "contains a NUL byte"
	case strings.Contains(name, `\`):
		return "contains a backslash (separate with /)"
	case strings.HasPrefix(name, "/"):
		return "is absolute (give it relative to the directory)"
	case strings.Contains(name, ":"):
		return "contains a colon, which names a drive or a stream on Windows"
	case len(name) > 4096:
		return "is too long"
	case !fs.ValidPath(name):
		return "is not a plain relative path (no empty, \".\" or \"..\" part)"
	case name == ".":
		return ""
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return "is not local"
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case strings.HasSuffix(part, "."), strings.HasSuffix(part, " "):
			return "has a part that ends in a dot or a space, which Windows drops"
		case len(part) > 255:
			return "has a part of more than 255 bytes"
		case reservedName(part):
			return "has a part that is a device name on Windows"
		}
		for _, r := range part {
			if r < 0x20 || r == 0x7f {
				return "contains a control character"
			}
		}
	}
	return ""
}

// reservedName: the list of Microsoft's "Naming Files, Paths, and Namespaces";
// an extension does not make the name any less reserved, nor does case.
func reservedName(part string) bool {
	stem, _, _ := strings.Cut(part, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if s, ok := strings.CutPrefix(stem, "COM"); ok || strings.HasPrefix(stem, "LPT") {
		if !ok {
			s = strings.TrimPrefix(stem, "LPT")
		}
		switch s {
		case "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
			return true
		}
	}
	return false
}
