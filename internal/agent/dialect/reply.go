package dialect

// IsReply reports whether out can be passed on to a client as an answer: one
// whole JSON object, or nothing.
func IsReply(out []byte) bool {
	if len(out) == 0 {
		return true
	}
	_, err := readPayload(out)
	return err == nil
}
