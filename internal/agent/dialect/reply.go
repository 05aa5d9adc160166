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

// ReadsStderr reports whether a client takes text on a hook's standard error for
// its answer where standard output is empty, whatever the exit code: Gemini CLI
// does (executeCommandHook of its hook runner), and what is no JSON allows the
// tool and is shown to the user.
func ReadsStderr(client string) bool { return client == "gemini" }
