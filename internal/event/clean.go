package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/internal/redact"
)

const (
	// MaxField is how long a string of an event may be, in bytes; longer ones
	// are cut and described in Cut.
	MaxField = 16 << 10
	// MaxLine is how long an event's line may be, in bytes. Data that makes it
	// longer is left out whole and described in Cut.
	MaxLine = 1 << 20
)

// cleaner takes secrets out of an event's strings and cuts the long ones.
type cleaner struct {
	r   *redact.Redactor
	cut map[string]Whole
}

// clean returns the event as it may be written.
func clean(r *redact.Redactor, e Event) (Event, error) {
	c := cleaner{r: r, cut: map[string]Whole{}}
	for _, f := range []struct {
		name  string
		value *string
	}{
		{"/project", &e.Project}, {"/session", &e.Session}, {"/run", &e.Run}, {"/client", &e.Client},
		{"/agent", &e.Agent}, {"/role", &e.Role}, {"/task", &e.Task}, {"/parent", &e.Parent},
		{"/outcome", &e.Outcome},
	} {
		*f.value = c.text(f.name, "", *f.value)
	}
	e.Evidence = append([]string(nil), e.Evidence...)
	for i, s := range e.Evidence {
		e.Evidence[i] = c.text("/evidence/"+strconv.Itoa(i), "", s)
	}
	if len(bytes.TrimSpace(e.Data)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(e.Data))
		dec.UseNumber() // a number stays as it was written
		var v any
		err := dec.Decode(&v)
		if err == nil {
			if _, terr := dec.Token(); terr != io.EOF {
				err = fmt.Errorf("something follows the object")
			}
		}
		if err != nil {
			return e, fmt.Errorf("%w: data: %v", ErrInvalid, err)
		}
		if e.Data, err = marshal(c.value("/data", "", v)); err != nil {
			return e, fmt.Errorf("%w: data: %v", ErrInvalid, err)
		}
	}
	e.Cut = c.cut
	if len(c.cut) == 0 {
		e.Cut = nil
	}
	return e, nil
}

// bound makes an event that is too long for a line short enough.
func bound(e Event) Event {
	var size int
	if line, err := marshal(e); err == nil {
		size = len(line)
	}
	if size+hashSize <= MaxLine {
		return e
	}
	cut := map[string]Whole{}
	maps.DeleteFunc(e.Cut, func(k string, _ Whole) bool { return strings.HasPrefix(k, "/data/") })
	maps.Copy(cut, e.Cut)
	if len(e.Data) > 0 {
		cut["/data"] = whole(string(e.Data))
		e.Data = nil
	}
	if line, err := marshal(Event{Evidence: e.Evidence}); err == nil && len(line) > MaxLine/2 {
		cut["/evidence"] = whole(strings.Join(e.Evidence, "\n"))
		e.Evidence = nil
		maps.DeleteFunc(cut, func(k string, _ Whole) bool { return strings.HasPrefix(k, "/evidence/") })
	}
	e.Cut = cut
	return e
}

// marshal keeps <, > and & readable.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (c *cleaner) value(at, key string, v any) any {
	switch v := v.(type) {
	case string:
		return c.text(at, key, v)
	case []any:
		for i := range v {
			v[i] = c.value(at+"/"+strconv.Itoa(i), key, v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			clean, _ := c.r.String(k)
			name := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clean)
			out[clean] = c.value(name, clean, x)
		}
		return out
	}
	return v
}

// text is a string as it may be written; key is the name it goes by, because
// "password" beside it is what tells a password.
func (c *cleaner) text(at, key, s string) string {
	s, n := c.r.String(s)
	if n == 0 && key != "" && len(key) < 100 && len(s) < 1000 {
		if named, n := c.r.String(key + `="` + s + `"`); n > 0 {
			if v, ok := strings.CutPrefix(named, key+"="); ok { // some rules take the quotes along
				s = strings.TrimSuffix(strings.TrimPrefix(v, `"`), `"`)
			}
		}
	}
	if len(s) <= MaxField {
		return s
	}
	c.cut[at] = whole(s)
	end := MaxField
	for end > MaxField-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func whole(s string) Whole {
	sum := sha256.Sum256([]byte(s))
	return Whole{SHA256: hex.EncodeToString(sum[:]), Len: len(s)}
}
