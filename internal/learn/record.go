package learn

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/internal/event"
	"reprise/internal/learn/sign"
)

// foldVersion changes whenever what is worked out from an event, or how it is
// kept, changes: an index of another version is folded from zero.
const foldVersion = "11"

// Version of what this program works out from the logs. What another version has
// worked out is worked out anew.
const Version = foldVersion

// What of an event's texts is kept for organising, in bytes. The log has the
// rest.
const (
	maxPrompt   = 1200
	maxResponse = 1500
	maxCommand  = 400
)

// record is what organising needs of an event.
type record struct {
	at      int64 // nanoseconds since 1970, UTC
	id      string
	src     string // key of the log file that it stands in
	typ     event.Type
	project string
	client  string
	agent   string
	role    string
	acl     []string

	tool    string
	target  string
	hash    string // of the input
	useID   string
	sig     sign.Signature
	command string
	path    string
	cwd     string
	text    string // prompt, response, summary, question
	exit    int    // noExit = not said
	ms      int64
	outcome string
	weight  float64 // the event's own importance
	refused bool    // the call did not happen: the user, a rule or an interruption kept it from
	handed  bool    // a prompt that a run was started with: an agent wrote it, not the user
	extra   []byte  // data as it stood, of the types that other stages read
}

const noExit = math.MinInt32

// Flags of a record as it is kept.
const (
	flagRefused = 1 << iota
	flagHanded
)

// nanos is a time in nanoseconds since 1970; what does not fit is the nearest
// that does, for a clock may say anything.
func nanos(t time.Time) int64 {
	switch y := t.UTC().Year(); {
	case y < 1970:
		return 0
	case y > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func (r *record) time() time.Time { return timeOf(r.at) }

func timeOf(at int64) time.Time { return time.Unix(0, at).UTC() }

// order is the order of a session's records: by time, then by id.
func order(a, b *record) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id), cmp.Compare(a.src, b.src))
}

// keepsData are the types whose data is kept as it stands.
func keepsData(t event.Type) bool {
	switch t {
	case event.QuestionAsked, event.QuestionAnswered, event.RecallServed, event.RecallUsed, event.MemoryRetired, event.MemoryPromoted, event.MemoryWritten,
		event.PolicyChanged, event.VerificationFinished, event.EpisodeRecorded, event.PermissionDecided, event.WorkChanged:
		return true
	}
	return false
}

// newRecord works out the record of an event; ok is false for one that
// organising has no use for.
func newRecord(e *event.Event, src string, sweep func(string) string) (r record, ok bool) {
	r = record{
		at: nanos(e.TS), id: e.ID, src: src, typ: e.Type, project: e.Project, client: e.Client, agent: e.Agent, role: e.Role,
		acl: normalACL(e.ACL), outcome: sign.Clip(e.Outcome, 200), weight: e.Importance, exit: noExit,
	}
	kept := func(s string, n int) string { return sign.Clip(sweep(sign.Clip(s, 4*n)), n) }
	switch e.Type {
	case event.ToolCalled, event.ToolSucceeded, event.ToolFailed, event.PermissionAsked:
		var d event.ToolData
		decode(e.Data, &d)
		r.ofTool(&d, kept)
	case event.PromptSubmitted:
		var d event.PromptData
		decode(e.Data, &d)
		r.text, r.cwd, r.handed = kept(d.Text, maxPrompt), d.Cwd, e.Run != ""
	case event.ResponseCompleted:
		var d event.ResponseData
		decode(e.Data, &d)
		r.text = kept(d.Text, maxResponse)
		if d.Error != "" {
			r.outcome = "error: " + kept(d.Error, 200)
		}
	case event.SessionStarted, event.SessionEnded:
		var d event.SessionData
		decode(e.Data, &d)
		r.cwd, r.text = d.Cwd, cmp.Or(d.Reason, d.Source)
	case event.ClientCompacted:
		var d event.CompactData
		decode(e.Data, &d)
		r.text, r.outcome = kept(d.Summary, maxResponse), d.Phase
	case event.SubagentFinished:
		var d event.SubagentData
		decode(e.Data, &d)
		r.text, r.target = kept(d.Text, 400), sign.Clip(d.Type, 80)
	default:
		if !keepsData(e.Type) || e.Type == event.WorkChanged && e.Session == "" {
			return r, false // of an item of the queue only what an attempt came to, which is a session's
		}
		if len(e.Data) > 0 && len(e.Data) <= event.MaxField && json.Valid(e.Data) {
			r.extra = []byte(sweep(string(e.Data)))
		}
	}
	return r, true
}

// decode reads as much of the data as has the shape that is known: fields of a
// wrong type are left out, as if they were missing.
func decode(data json.RawMessage, v any) {
	if len(data) == 0 {
		return
	}
	// A field of a wrong type is reported at the end, after the others were read.
	_ = json.Unmarshal(data, v)
}

func (r *record) ofTool(d *event.ToolData, kept func(string, int) string) {
	r.tool, r.useID, r.cwd, r.ms = cmp.Or(d.Tool, "other"), d.ID, d.Cwd, d.DurationMS
	if len(d.Input) > 0 {
		r.hash = sign.Hash(string(d.Input))
	}
	in := readInput(d.Input)
	switch {
	case r.tool == "shell" || in.command != "" && r.tool == "other":
		r.command = kept(in.command, maxCommand)
		r.target = sign.Target(in.command, d.Cwd)
	case in.path != "":
		r.path = strings.ReplaceAll(in.path, `\`, "/")
		r.target = cmp.Or(sign.Relative(r.path, d.Cwd), r.path)
	case in.other != "":
		r.target = sign.Clip(sign.Normal(in.other, true), 120)
	}
	if r.target == "" {
		r.target = sign.Clip(d.Name, 80)
	}
	r.target = kept(r.target, 120)
	if d.ExitCode != nil {
		r.exit = *d.ExitCode
	}
	// A client that has no event for a failed call says it by the exit code.
	if r.typ == event.ToolSucceeded && r.exit != noExit && r.exit != 0 {
		r.typ = event.ToolFailed
	}
	if r.typ != event.ToolFailed {
		return
	}
	said := saidOf(d)
	if r.refused = refusedCall(said); r.refused {
		return
	}
	if r.tool == "shell" && r.exit == noExit {
		if code := sign.ExitCode(said); code != "" {
			r.exit = int(code[0] - '0')
		}
	}
	if foundNothing(r, said) {
		r.typ = event.ToolSucceeded
		return
	}
	r.sig = sign.Of(r.tool, r.target, said, d.ExitCode)
	r.sig.Shown, r.sig.Line = kept(r.sig.Shown, sign.MaxShown), kept(r.sig.Line, sign.MaxShown)
}

// foundNothing reports a search or comparison that ended with 1 and had
// nothing to say: an answer, and no failure.
func foundNothing(r *record, said string) bool {
	if r.tool == "search" && len(sign.Lines(said)) == 0 {
		return true
	}
	if r.exit != 1 || r.tool != "shell" {
		return false
	}
	program, _, _ := strings.Cut(r.target, " ")
	switch program {
	case "grep", "rg", "egrep", "fgrep", "diff", "cmp", "test", "[", "which", "pgrep", "git":
	default:
		return false
	}
	if program == "git" && !strings.HasPrefix(r.target, "git grep") && !strings.HasPrefix(r.target, "git diff") {
		return false
	}
	return sign.Plain(said) || program == "diff"
}

// saidOf is what a failed call has told.
func saidOf(d *event.ToolData) string {
	if d.Output != "" && !strings.Contains(d.Error, d.Output) {
		return strings.TrimSpace(d.Error + "\n" + d.Output)
	}
	return d.Error
}

// Refused reports that a call which failed did not happen at all.
func Refused(d *event.ToolData) bool { return refusedCall(saidOf(d)) }

// refusedCall reports that a call did not happen: somebody or something kept it
// from happening. That is a decision and no failure of the call.
func refusedCall(said string) bool {
	low := strings.ToLower(sign.Clip(said, 600))
	for _, w := range []string{
		"the user doesn't want to proceed", "user rejected", "user declined", "rejected by user", "denied by user", "[request interrupted", "interrupted by user", "haven't granted it",
		"has been denied", "requires approval", "operation was cancelled", "operation cancelled by user", "tool use was rejected", "cancelled by user", "user cancelled", "blocked by hook", "hook denied",
		"tool execution denied", "denied by policy",
	} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

type input struct{ command, path, other string }

// readInput finds in a tool's input what it acts on, by the names that the
// known clients use.
func readInput(data json.RawMessage) input {
	var in input
	if len(data) == 0 {
		return in
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		var s string
		if json.Unmarshal(data, &s) == nil {
			in.other = s
			in.path = patchedFile(s)
		}
		return in
	}
	get := func(names ...string) string {
		for _, n := range names {
			raw, ok := fields[n]
			if !ok {
				continue
			}
			var s string
			if json.Unmarshal(raw, &s) == nil && s != "" {
				return s
			}
			var list []string
			if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
				return joinCommand(list)
			}
		}
		return ""
	}
	in.command = get("command", "cmd", "script")
	in.path = get("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file", "target_file")
	in.other = get("url", "query", "pattern", "prompt", "description", "name", "subject", "question")
	if patch := get("patch", "input", "diff"); in.path == "" && patch != "" {
		in.path = patchedFile(patch)
	}
	if in.path == "" && strings.Contains(in.command, "*** Begin Patch") {
		in.path = patchedFile(in.command)
	}
	return in
}

// joinCommand is a command given as a list of words, as a line.
func joinCommand(list []string) string {
	if len(list) == 3 && (list[1] == "-c" || list[1] == "-lc") {
		return list[2]
	}
	return strings.Join(list, " ")
}

// patchedFile is the first file that a patch in Codex's format names.
func patchedFile(patch string) string {
	for _, lead := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
		if i := strings.Index(patch, lead); i >= 0 {
			name, _, _ := strings.Cut(patch[i+len(lead):], "\n")
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// normalACL is an access list as a set: sorted, and nil for everybody.
func normalACL(acl []string) []string {
	if len(acl) == 0 || slices.Contains(acl, "*") {
		return nil
	}
	out := slices.Clone(acl)
	slices.Sort(out)
	return slices.Compact(out)
}

// readableBy is who may read all that the lists are about: nil for everybody;
// ok is false when there is nobody.
func readableBy(lists ...[]string) (acl []string, ok bool) {
	for _, l := range lists {
		switch {
		case len(l) == 0:
		case acl == nil:
			acl = l
		default:
			var both []string
			for _, a := range acl {
				if slices.Contains(l, a) {
					both = append(both, a)
				}
			}
			if len(both) == 0 {
				return nil, false
			}
			acl = both
		}
	}
	return acl, true
}

var errRecords = errors.New("the index holds records that this program cannot read: run `reprise index rebuild`")

// appendRecord adds a record in the form that is kept. Not JSON, because a
// session's records are read again at each of its batches.
func appendRecord(b []byte, r *record) []byte {
	b = binary.AppendVarint(b, r.at)
	b = binary.AppendVarint(b, int64(r.exit))
	b = binary.AppendVarint(b, r.ms)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.weight))
	flags := byte(0)
	if r.refused {
		flags |= flagRefused
	}
	if r.handed {
		flags |= flagHanded
	}
	b = append(b, flags)
	for _, s := range r.strings() {
		b = binary.AppendUvarint(b, uint64(len(*s)))
		b = append(b, *s...)
	}
	b = binary.AppendUvarint(b, uint64(len(r.acl)))
	for _, s := range r.acl {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(r.extra)))
	return append(b, r.extra...)
}

func (r *record) strings() []*string {
	return []*string{
		&r.id, &r.src, (*string)(&r.typ), &r.project, &r.client, &r.agent, &r.role, &r.tool, &r.target, &r.hash, &r.useID,
		&r.sig.Key, &r.sig.Exact, &r.sig.Family, &r.sig.Line, &r.sig.Shown, &r.command, &r.path, &r.cwd, &r.text, &r.outcome,
	}
}

// readRecords reads what appendRecord wrote.
func readRecords(b []byte) ([]*record, error) {
	var out []*record
	d := decoder{b: b}
	for len(d.b) > 0 && d.ok() {
		r := &record{at: d.varint(), exit: int(d.varint()), ms: d.varint()}
		r.weight = math.Float64frombits(d.uint64())
		flags := d.byte()
		r.refused, r.handed = flags&flagRefused != 0, flags&flagHanded != 0
		for _, s := range r.strings() {
			*s = string(d.bytes())
		}
		if n := d.uvarint(); n > 0 && n < 1<<16 {
			for range n {
				r.acl = append(r.acl, string(d.bytes()))
			}
		}
		if x := d.bytes(); len(x) > 0 {
			r.extra = bytes.Clone(x)
		}
		out = append(out, r)
	}
	if !d.ok() {
		return nil, errRecords
	}
	return out, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) ok() bool { return !d.bad }

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint64() uint64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) < 1 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}
