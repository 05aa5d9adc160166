package logfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"reprise/internal/clip"
)

const (
	// maxText cuts one text in a line; a log is not where outputs are kept.
	maxText = 16 << 10
	// maxLine bounds a whole line, so that one write(2) stays cheap.
	maxLine = 256 << 10
)

// timeFormat is RFC 3339 in UTC with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// field is one key of a line, or a group of them.
type field struct {
	key   string
	value any // json.RawMessage, or []field for a group
}

// fields turns attributes into fields inside h's open groups.
func (h *Handler) fields(attrs []slog.Attr) []field {
	var out []field
	for _, a := range attrs {
		out = h.add(out, a)
	}
	for i := len(h.groups) - 1; i >= 0 && len(out) > 0; i-- {
		out = []field{{h.groups[i], out}}
	}
	return out
}

func (h *Handler) add(out []field, a slog.Attr) []field {
	v := a.Value.Resolve() // survives a LogValuer that panics
	if v.Kind() == slog.KindGroup {
		var sub []field
		for _, g := range v.Group() {
			sub = h.add(sub, g)
		}
		if a.Key == "" { // an inline group
			return append(out, sub...)
		}
		if len(sub) == 0 {
			return out
		}
		return append(out, field{a.Key, sub})
	}
	if a.Equal(slog.Attr{}) {
		return out
	}
	return append(out, field{a.Key, h.encode(v)})
}

// encode makes JSON of a value: times like ts, durations in seconds, errors by
// their text, everything else as encoding/json has it.
func (h *Handler) encode(v slog.Value) (out json.RawMessage) {
	defer func() {
		if r := recover(); r != nil {
			out = h.text(fmt.Sprintf("!PANIC: %v", r))
		}
	}()
	switch v.Kind() {
	case slog.KindString:
		return h.text(v.String())
	case slog.KindTime:
		return h.text(v.Time().UTC().Format(timeFormat))
	case slog.KindDuration:
		return plain(float64(v.Duration().Round(time.Microsecond)) / float64(time.Second))
	}
	switch x := v.Any().(type) {
	case error:
		return h.text(x.Error())
	case fmt.Stringer:
		if _, ok := x.(json.Marshaler); !ok {
			return h.text(x.String())
		}
	case []byte:
		return h.text(string(x))
	}
	raw := plain(v.Any())
	if raw == nil {
		return h.text(fmt.Sprintf("%+v", v.Any()))
	}
	if len(raw) > maxText || h.opts.Redact != nil && bytes.IndexByte(raw, '"') >= 0 {
		if h.opts.Redact != nil {
			if red := []byte(h.opts.Redact(string(raw))); json.Valid(red) && len(red) <= maxText {
				return red
			}
		}
		return h.text(string(raw))
	}
	return raw
}

func (h *Handler) text(s string) json.RawMessage {
	if h.opts.Redact != nil {
		s = h.opts.Redact(s)
	}
	if len(s) > maxText {
		s = fmt.Sprintf("%s… (truncated, %d bytes in all)", clip.Head(s, maxText), len(s))
	}
	return plain(s)
}

// plain is encoding/json without HTML escapes; nil when it cannot be encoded.
func plain(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// line makes the JSON line of a record: ts, level and msg first, then the
// fields. A field with one of these three names gets a "_" after it.
func (h *Handler) line(r slog.Record) []byte {
	fields := append([]field(nil), h.pre...)
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	fields = append(fields, h.fields(attrs)...)
	line := h.render(r.Level, r.Message, fields)
	if len(line) > maxLine {
		line = h.render(r.Level, r.Message, []field{{"truncated", plain(fmt.Sprintf("the fields took %d bytes", len(line)))}})
	}
	return line
}

func (h *Handler) render(level slog.Level, msg string, fields []field) []byte {
	var b bytes.Buffer
	b.WriteString(`{"ts":"` + h.opts.Now().UTC().Format(timeFormat) + `","level":"` + levelName(level) + `","msg":`)
	b.Write(h.text(msg))
	for _, f := range merge(fields) {
		switch f.key {
		case "ts", "level", "msg":
			f.key += "_"
		}
		b.WriteByte(',')
		writeField(&b, f)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func writeField(b *bytes.Buffer, f field) {
	b.Write(plain(f.key))
	b.WriteByte(':')
	if raw, ok := f.value.(json.RawMessage); ok {
		b.Write(raw)
		return
	}
	b.WriteByte('{')
	for i, sub := range merge(f.value.([]field)) {
		if i > 0 {
			b.WriteByte(',')
		}
		writeField(b, sub)
	}
	b.WriteByte('}')
}

// merge joins groups of one name and lets the last of equal keys win, so that
// no line has a key twice.
func merge(fields []field) []field {
	at := map[string]int{}
	var out []field
	for _, f := range fields {
		i, seen := at[f.key]
		if !seen {
			at[f.key] = len(out)
			out = append(out, f)
			continue
		}
		old, ok1 := out[i].value.([]field)
		sub, ok2 := f.value.([]field)
		if ok1 && ok2 {
			out[i].value = append(old[:len(old):len(old)], sub...)
		} else {
			out[i].value = f.value
		}
	}
	return out
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}

// note is the line that says that others are missing.
func (h *Handler) note(lost int, err error) []byte {
	return h.render(slog.LevelWarn, LostMessage, []field{{"lines", plain(lost)}, {"error", h.text(err.Error())}})
}
