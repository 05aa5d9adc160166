package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's index names objects by SHA-1
	"encoding/binary"
	"slices"

	"reprise/internal/durable"
)

// gitlinks are the paths at which an index has commits of other repositories. ok is false for
// what is not understood: a split index, one with other than SHA-1 names, one of a later form.
func gitlinks(file string) (paths []string, ok bool) {
	data, err := durable.Read(file)
	if err != nil || len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, false
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	body := data[:len(data)-sha1.Size]
	const fixed = 40 + sha1.Size + 2
	var name []byte // of the entry before: version 4 says what differs
	at := 12
	for range n {
		start := at
		if at += fixed; at > len(body) {
			return nil, false
		}
		mode, flags := binary.BigEndian.Uint32(body[start+24:]), binary.BigEndian.Uint16(body[at-2:])
		if flags&0x4000 != 0 && version >= 3 {
			at += 2
		}
		if version == 4 {
			drop, more := uint64(0), true
			for first := true; more; first = false {
				if at >= len(body) {
					return nil, false
				}
				b := body[at]
				if !first {
					drop++
				}
				drop, more, at = drop<<7|uint64(b&0x7f), b&0x80 != 0, at+1
			}
			if drop > uint64(len(name)) {
				return nil, false
			}
			name = name[:len(name)-int(drop)]
		}
		if at >= len(body) {
			return nil, false
		}
		end := bytes.IndexByte(body[at:], 0)
		if end < 0 {
			return nil, false
		}
		if version == 4 {
			name = append(name, body[at:at+end]...)
		} else {
			name = body[at : at+end]
		}
		if at += end + 1; version < 4 {
			at = start + (at-start+7)/8*8
		}
		if mode == 0o160000 {
			paths = append(paths, string(name))
		}
	}
	for at < len(body) { // extensions: name, length, content
		if at+8 > len(body) || string(body[at:at+4]) == "link" {
			return nil, false
		}
		at += 8 + int(binary.BigEndian.Uint32(body[at+4:]))
	}
	return slices.Clip(paths), at == len(body)
}
