package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"reprise/internal/config/lines"
	"reprise/internal/durable"
)

// SetInFile gives a setting a value in the settings file, which is made where it is not
// there; without values the setting is taken out, so that the default holds again. Of the
// file only the setting's own lines change. values is one text, as it is written in the file,
// or of a list each item. The file that Load would read is edited; its path is given back, and
// whether anything changed in it.
//
// Errors are *Error or Errors. A file that is in a form that cannot be edited so is left as it
// is, and the error says which lines to write.
func SetInFile(env Env, paths Paths, flag, name string, values ...string) (file string, changed bool, err error) {
	file, _, err = settingsFile(env, paths, flag)
	if err != nil {
		return "", false, err
	}
	old, err := readFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, false, err
	}
	if err := leadsSomewhere(file); err != nil {
		return file, false, err
	}
	text, err := edited(env, paths, file, old, name, values)
	if err != nil || bytes.Equal(text, old) {
		return file, false, err
	}
	if err := WriteSettings(file, text); err != nil {
		return file, false, err
	}
	return file, true, nil
}

// WriteSettings writes the file of settings: its directory is made where it is not there, and
// a link of the user's stays one.
func WriteSettings(file string, text []byte) error {
	if err := leadsSomewhere(file); err != nil {
		return err
	}
	target := file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		target = real
	}
	if err := durable.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	if err := durable.WriteFile(target, text, 0o600); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}

// leadsSomewhere refuses a file that is, or lies behind, a link to a place that is not there.
func leadsSomewhere(file string) error {
	if link := dangling(file); link != "" {
		return &Error{File: link, Problem: "is a link to a place that is not there", Remedy: "bring back what it leads to, or remove the link", Err: fs.ErrNotExist}
	}
	return nil
}

// edited is the text of a settings file with one setting changed, checked to be valid and to
// say of all other settings what it said before. What is wrong in the file is no hindrance
// where the change mends it; a name that is no setting can be taken out.
func edited(env Env, paths Paths, file string, old []byte, name string, values []string) ([]byte, error) {
	all := keys()
	i := slices.IndexFunc(all, func(k key) bool { return k.name == name })
	if i < 0 && len(values) == 0 {
		if text, ok := unknown(env, paths, file, old, name); ok {
			return text, nil
		}
	}
	if i < 0 {
		table, sections := known()
		return nil, &Error{File: file, Key: name, Problem: "is not a setting", Remedy: suggest(name, table, sections)}
	}
	k := all[i]
	before, wrong := parsed(env, paths, file, old)
	if wrong != nil && before.root == nil {
		return nil, wrong // it is no YAML
	}
	written, err := written(k, before.out, values)
	if err != nil {
		return nil, err
	}
	text, ok := before.edit(string(old), name, written)
	if !ok && wrong != nil {
		return nil, wrong
	}
	if !ok {
		return nil, byHand(file, name, written)
	}
	after, err := parsed(env, paths, file, []byte(text))
	if err != nil {
		// What is wrong may be the value, and of that the file's own words tell best.
		var many Errors
		var e *Error
		if errors.As(err, &many) || errors.As(err, &e) {
			alone, ok := (&document{}).edit("", name, written)
			if ok && written != "" {
				if _, aerr := parsed(env, paths, CommandLine, []byte(alone)); aerr != nil {
					return nil, withoutPlace(aerr)
				}
			}
		}
		return nil, err
	}
	for _, other := range keys() {
		if other.name != name && !reflect.DeepEqual(other.value(before.out), other.value(after.out)) {
			return nil, byHand(file, name, written)
		}
	}
	if (after.set[name] != 0) != (written != "") {
		return nil, byHand(file, name, written)
	}
	return []byte(text), nil
}

// unknown is the text without a name that is no setting; ok is false where it is not there, or
// what is left is wrong as well.
func unknown(env Env, paths Paths, file string, old []byte, name string) (text []byte, ok bool) {
	before, err := parsed(env, paths, file, old)
	if err == nil || before.root == nil {
		return nil, false
	}
	without, ok := before.edit(string(old), name, "")
	if !ok || without == string(old) {
		return nil, false
	}
	_, err = parsed(env, paths, file, []byte(without))
	return []byte(without), err == nil
}

// withoutPlace takes the lines out of errors about a text that nobody has seen.
func withoutPlace(err error) error {
	var many Errors
	var one *Error
	if !errors.As(err, &many) && errors.As(err, &one) { // the only one comes without a list
		many = Errors{one}
	}
	for _, e := range many {
		e.Line, e.Column = 0, 0
	}
	return err
}

func parsed(env Env, paths Paths, file string, data []byte) (*loader, error) {
	l := &loader{env: env, out: Default(paths), set: map[string]int{}, document: &document{file: file}}
	return l, l.parse(data)
}

// known are all settings, and all sections of the settings file.
func known() (table map[string]key, sections map[string]bool) {
	table, sections = map[string]key{}, map[string]bool{}
	for _, k := range keys() {
		table[k.name] = k
		for i, c := range k.name {
			if c == '.' {
				sections[k.name[:i]] = true
			}
		}
	}
	return table, sections
}

// byHand is the error for a file in a form that is not edited.
func byHand(file, name, written string) error {
	e := &Error{File: file, Key: name, Problem: "is in a form that cannot be changed from here", Remedy: "take its lines out by hand"}
	if written != "" {
		lines, _ := (&document{}).edit("", name, written)
		e.Remedy = "write by hand:\n" + strings.TrimRight(lines, "\n")
	}
	return e
}

// otherValues are words that some version of YAML reads as something else than a text.
var otherValues = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

// written are values as the file has them; "" for none.
func written(k key, s Settings, values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	if _, list := k.value(s).([]string); list {
		items := make([]string, len(values))
		for i, v := range values {
			items[i] = quoted(v)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	}
	if len(values) > 1 {
		return "", &Error{File: CommandLine, Key: k.name, Problem: "takes one value", Remedy: "put quotation marks around a text with blanks"}
	}
	switch k.value(s).(type) {
	case int, float64:
		return values[0], nil
	}
	return quoted(values[0]), nil
}

// quoted is a text as YAML reads it back: bare where it is a plain word, else as JSON has it.
func quoted(s string) string {
	bare := s != "" && !slices.Contains(otherValues, strings.ToLower(s))
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '_')) {
			bare = false
		}
	}
	if bare {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text into memory
	return strings.TrimRight(b.String(), "\n")
}

// edit is text, which the document was read from, with a setting written anew, put in, or with
// written "" taken out; ok is false where it is in a form for which that is not done.
func (d *document) edit(text, name, written string) (out string, ok bool) {
	return lines.Set(text, d.root, name, written)
}
