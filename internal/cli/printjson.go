package cli

import (
	"bytes"
	"encoding/json"
	"io"
)

// typedOutput is an output that is told what is printed for programs, as the value that
// it is made of: docs/json.md is held to that.
type typedOutput interface{ Typed(v any) }

func typed(w io.Writer, v any) {
	if t, ok := w.(typedOutput); ok {
		t.Typed(v)
	}
}

// printJSON writes v for programs: two spaces of indent, characters as they are.
func printJSON(w io.Writer, v any) error {
	typed(w, v)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// jsonData is v as one line, for the data of an event.
func jsonData(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
