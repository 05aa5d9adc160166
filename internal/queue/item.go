package queue

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/clip"
	"reprise/internal/config"
	"reprise/internal/durable"
)

const (
	version = 1
	// maxReadBytes is the longest file that is read as an item: what was added may
	// have grown by its history and result.
	maxReadBytes = 4 * MaxItemBytes
	maxHistory   = 200
	maxID        = 60
	maxNewID     = 58 // the workspace of an item is called "loop-" and its id, and may have 63
	maxKey       = 500
	maxTitle     = 500
	maxNote      = 2000
	maxList      = 1000 // labels, dependencies
)

// moving says where an item that was rewritten is about to go. It is written before
// the item moves, so that whoever finds it after a crash can finish that.
type moving struct {
	To    State  `json:"to"`
	Fence uint64 `json:"fence"`
	// Waits is the dependency that a blocked item waits for.
	Waits string `json:"waits,omitempty"`
}

// stored is an item as it is in its file.
type stored struct {
	Item
	Edits  uint64  `json:"edits,omitempty"`
	Moving *moving `json:"moving,omitempty"`
}

// encode is the item's file.
func encode(it *Item) ([]byte, error) {
	s := stored{Item: *it, Edits: it.edits, Moving: it.moving}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	if it.raw == nil {
		return b.Bytes(), nil
	}
	extra, err := unknown(it.raw)
	if err != nil || len(extra) == 0 {
		return b.Bytes(), err
	}
	return withExtra(b.Bytes(), extra)
}

// withExtra puts fields before an object's end.
func withExtra(data []byte, extra map[string]json.RawMessage) ([]byte, error) {
	var more bytes.Buffer
	enc := json.NewEncoder(&more)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(extra); err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(data, []byte("\n}\n"))
	return slices.Concat(head, []byte(",\n"), bytes.TrimPrefix(more.Bytes(), []byte("{\n"))), nil
}

// decode reads an item's file. Fields that this version does not know are kept: the
// bytes are looked through for them when the item is written again.
func decode(data []byte) (Item, error) {
	var s stored
	err := json.Unmarshal(data, &s)
	if err != nil {
		var v struct {
			V int `json:"v"`
		}
		if json.Unmarshal(data, &v) == nil && v.V > version {
			s.V = v.V
		}
	}
	switch {
	case s.V > version:
		return Item{}, &newerError{s.V}
	case err != nil:
		return Item{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	case s.V != version:
		return Item{}, fmt.Errorf("%w: it has no \"v\" that is %d", ErrDamaged, version)
	}
	it := s.Item
	it.moving, it.edits, it.raw = s.Moving, s.Edits, data
	if err := it.check(); err != nil {
		return Item{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return it, nil
}

// unknown are the fields of an item's file that this version does not know.
func unknown(data []byte) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	known := knownFields()
	for name := range all {
		if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			delete(all, name)
		}
	}
	return all, nil
}

// knownFields are the names of an item's fields in its file.
func knownFields() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[Item](), reflect.TypeFor[stored]()} {
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
		}
	}
	return names
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// check says what is wrong with an item that is in a queue.
func (i *Item) check() error {
	if err := CheckID(i.ID); err != nil {
		return err
	}
	if strings.TrimSpace(i.Title) == "" { // a hand took it out, and nobody could say what is to be done
		return invalid("it has no title")
	}
	if i.Priority != nil && (*i.Priority < 0 || *i.Priority > MaxPriority) {
		return invalid("the priority is %d; it is from 0, the most urgent, to %d", *i.Priority, MaxPriority)
	}
	for _, d := range i.DependsOn {
		if err := CheckID(d); err != nil {
			return fmt.Errorf("depends on: %w", err)
		}
	}
	return nil
}

// checkNew says what is wrong with an item that is to be added.
func (i *Item) checkNew() error {
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"title", i.Title, maxTitle}, {"key", i.Key, maxKey}, {"source", i.Source, maxKey}, {"task", i.Task, maxKey}, {"agent", i.Agent, maxKey}} {
		if !utf8.ValidString(f.value) {
			return invalid("the %s is not UTF-8", f.name)
		}
		if len(f.value) > f.limit {
			return invalid("the %s has %d bytes, more than %d", f.name, len(f.value), f.limit)
		}
		if strings.ContainsAny(f.value, "\r\n\x00") {
			return invalid("the %s has more than one line", f.name)
		}
	}
	if !utf8.ValidString(i.Body) {
		return invalid("the body is not UTF-8")
	}
	if len(i.Labels) > maxList || len(i.DependsOn) > maxList {
		return invalid("more than %d labels or dependencies", maxList)
	}
	for _, l := range i.Labels {
		if err := CheckLabel(l); err != nil {
			return err
		}
	}
	if i.MaxAttempts < 0 || i.MaxAttempts > 1000 {
		return invalid("max_attempts is %d; it is from 1 to 1000, or 0 for the default", i.MaxAttempts)
	}
	if len(i.Data) > 0 && !json.Valid(i.Data) {
		return invalid("data is no JSON")
	}
	if y := i.NotBefore.Year(); !i.NotBefore.IsZero() && (y < 1970 || y > 9999) {
		return invalid("not_before is in the year %d", y)
	}
	return i.check()
}

// CheckID says what is wrong with an item's id.
func CheckID(id string) error {
	ok := id != "" && len(id) <= maxID
	for n, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case n > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			ok = false
		}
	}
	if !ok {
		return invalid("the id %q is not 1 to %d lower-case letters, digits, \"-\", \"_\" or \".\", the first of them a letter or a digit", cut(id, 2*maxID), maxNewID)
	}
	if err := durable.CheckName(id + ".json"); err != nil {
		return invalid("the id %q gives no name for a file on every system: %v", id, err)
	}
	return nil
}

// checkNewID says what is wrong with the id of an item that is to be added: one of a queue,
// from which the name of a branch is made that git takes.
func checkNewID(id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if len(id) > maxNewID {
		return invalid("the id %q has %d characters, and the place where an item is worked on is called after it: %d are the most", id, len(id), maxNewID)
	}
	if strings.Contains(id, "..") || strings.HasSuffix(id, ".") || strings.HasSuffix(id, ".lock") {
		return invalid("the id %q has \"..\", or ends with \".\" or \".lock\", which git takes in no branch's name: the work on an item gets a branch that is called after it", id)
	}
	return nil
}

// CheckAgent says what is wrong with the client that an item is meant for; empty is any.
func CheckAgent(agent string) error {
	if agent == "" || slices.Contains(config.RouteClients(), agent) {
		return nil
	}
	return invalid("the agent %q is none that can work on items; there are %s", cut(agent, 40), strings.Join(config.RouteClients(), ", "))
}

// CheckLabel says what is wrong with a label, of an item or to look for.
func CheckLabel(label string) error {
	switch {
	case strings.TrimSpace(label) == "":
		return invalid("a label is empty")
	case len(label) > maxKey || strings.ContainsAny(label, "\r\n\x00") || !utf8.ValidString(label):
		return invalid("the label %q is too long, has more than one line, or is not UTF-8", cut(label, 60))
	}
	return nil
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// newID is an id by chance.
func newID() string {
	b := make([]byte, 10)
	for i := range b {
		b[i] = alphabet[rand.IntN(len(alphabet))]
	}
	return "work-" + string(b)
}

// keyID is the id of an item with a key: the same everywhere, so that two who add it
// at once add one item.
func keyID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "work-k" + base32.NewEncoding(alphabet).EncodeToString(sum[:10])
}

// note adds a line to the item's history.
func (i *Item) note(e Entry) {
	e.At = stamp(e.At)
	e.Note = cut(e.Note, maxNote)
	i.History = append(i.History, e)
	if n := len(i.History) - maxHistory; n > 0 {
		i.History = slices.Delete(i.History, 0, n)
		i.Forgotten += n
	}
}

// settled reports whether the item's history says that the claim ended that way.
func (i *Item) settled(said Entry, fence uint64) bool {
	return said.Op != "" && slices.ContainsFunc(i.History, func(e Entry) bool { return e.Op == said.Op && e.How == said.How && e.Fence == fence })
}

// lost says that a claim is over, and where that is why, that it ended by a like word.
func (i *Item) lost(s State, fence, now uint64, said Entry) error {
	if said.Op == OpFail && slices.ContainsFunc(i.History, func(e Entry) bool { return e.Op == OpFail && e.Fence == fence }) {
		return fmt.Errorf("%w: that %s failed was said under number %d before, in another way, and it is %s by now; `reprise queue drop` ends what is not to be tried again", ErrLost, i.ID, fence, s)
	}
	if now == fence {
		return fmt.Errorf("%w: the claim of %s under number %d has ended already, and it is %s", ErrLost, i.ID, fence, s)
	}
	return fmt.Errorf("%w: %s is %s under number %d, and this is number %d", ErrLost, i.ID, s, now, fence)
}

// stamp is a time as it is written.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// cut is s in at most n bytes of whole characters.
func cut(s string, n int) string {
	return clip.Bytes(strings.ToValidUTF8(s, "\uFFFD"), n)
}
