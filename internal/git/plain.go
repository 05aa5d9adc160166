package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's index names objects by SHA-1
	"encoding/binary"

	"reprise/internal/durable"
)

// PlainIndex reports whether an index is one in which git passes no file over, as it does
// with those that are marked as unchanged or as not checked out. It is false, too, for what
// is not understood: a split index, one with other than SHA-1 names, one of a later form.
func PlainIndex(file string) bool {
	data, err := durable.Read(file)
	if err != nil || len(data) < 12+sha1.Size || string(data[:4]) != "DIRC" {
		return false
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return false
	}
	body := data[:len(data)-sha1.Size]
	if sum := sha1.Sum(body); !bytes.Equal(sum[:], data[len(body):]) && !bytes.Equal(make([]byte, sha1.Size), data[len(body):]) {
		return false // git may be told to leave it out (index.skipHash)
	}
	const fixed = 40 + sha1.Size + 2
	at := 12
	for range n {
		start := at
		if at += fixed; at > len(body) {
			return false
		}
		flags := binary.BigEndian.Uint16(body[at-2:])
		if flags&0x8000 != 0 { // assumed to be unchanged
			return false
		}
		if flags&0x4000 != 0 && version >= 3 {
			if at += 2; at > len(body) || binary.BigEndian.Uint16(body[at-2:])&0x4000 != 0 { // not checked out
				return false
			}
		}
		if version == 4 { // how much of the last name stays, in bytes of seven bits
			for at < len(body) && body[at]&0x80 != 0 {
				at++
			}
			at++
		}
		if at >= len(body) {
			return false
		}
		end := bytes.IndexByte(body[at:], 0)
		if end < 0 {
			return false
		}
		at += end + 1
		if version < 4 {
			at = start + (at-start+7)/8*8
		}
	}
	for at < len(body) { // extensions: name, length, content
		if at+8 > len(body) || string(body[at:at+4]) == "link" {
			return false
		}
		at += 8 + int(binary.BigEndian.Uint32(body[at+4:]))
	}
	return at == len(body)
}
