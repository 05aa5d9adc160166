package improve

import (
	"crypto/sha256"
	"encoding/binary"
)

// HeldOut reports whether a session is one of those, percent in a hundred, that
// are told nothing recalled, so that what recall is good for can be measured.
// It depends on the session alone: all hooks of a session, on any machine, agree.
func HeldOut(client, session string, percent int) bool {
	if session == "" || percent <= 0 {
		return false
	}
	sum := sha256.Sum256([]byte("hold-out\x00" + client + "\x00" + session))
	return binary.BigEndian.Uint32(sum[:4])%100 < uint32(percent)
}
