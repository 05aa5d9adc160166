package dialect

import (
	"slices"
	"strconv"
	"strings"
)

// ManifestVersion is the version of the manifest's own form. It goes up when a
// field changes its meaning.
const ManifestVersion = 1

// Caps is what an event's answer can bring about in a client.
type Caps uint16

// What an answer can do. The client decides what else it can do with it; these
// are the effects that were seen or are documented.
const (
	CapDeny    Caps = 1 << iota // keep a tool from running
	CapAsk                      // have a person asked
	CapAllow                    // let a tool run without asking
	CapUpdate                   // change the tool's input
	CapBlock                    // keep a turn from ending, or a prompt from being sent
	CapContext                  // tell the model something
)

var capNames = [...]string{"deny", "ask", "allow", "update", "block", "context"}

// Names are the words for what is in the set, in a fixed order.
func (c Caps) Names() []string {
	var out []string
	for i, name := range capNames {
		if c&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Source says how we know an event's payload and what its answer does.
type Source string

// The sources. Seen is the stronger one: the payload was captured from the
// client, and each effect that is not in EventSpec.Told was tried.
const (
	Seen       Source = "seen"
	Documented Source = "documented"
)

// EventSpec is what we know of one event of a client.
type EventSpec struct {
	Name string // the client's own, as its settings have it
	Kind Kind
	Caps Caps
	// Told is the part of Caps that is known from the client's documentation
	// only.
	Told   Caps
	Source Source
	// Install says that setup installs a hook for it by default.
	Install bool
	// ClientMS is after how long the client gives up on the hook by default,
	// in milliseconds; 0 where that is not known.
	ClientMS int
	// DeadlineMS is how long our own hook may take, in milliseconds. It is well
	// below what the client grants.
	DeadlineMS int
	Note       string
}

// Manifest is what we know of one client's hooks. Payloads of versions in
// [Since, Before) are taken to have the known form: what is older was not
// tested, and a client's next major version may change anything.
type Manifest struct {
	Client  string
	Program string // as people know it
	Tested  string // the version that the payloads were captured from
	Since   string
	Before  string
	// Unit is what the client's settings count a hook's timeout in: s or ms.
	Unit   string
	Events []EventSpec
	Traps  []string
}

// Manifests are all clients' manifests, in the order of [Clients].
func Manifests() []*Manifest {
	return []*Manifest{&claudeManifest, &codexManifest, &geminiManifest, &copilotManifest}
}

// ManifestOf is the client's manifest, nil where the client is not known.
func ManifestOf(client string) *Manifest {
	switch client {
	case "claude":
		return &claudeManifest
	case "codex":
		return &codexManifest
	case "gemini":
		return &geminiManifest
	case "copilot":
		return &copilotManifest
	}
	return nil
}

// Event is the event of that name, nil where there is none. Names are exact.
func (m *Manifest) Event(name string) *EventSpec {
	for i := range m.Events {
		if m.Events[i].Name == name {
			return &m.Events[i]
		}
	}
	return nil
}

// Covers reports whether a version of the client is one whose payloads are
// taken to be known.
func (m *Manifest) Covers(version string) bool {
	return compareVersions(version, m.Since) >= 0 && compareVersions(version, m.Before) < 0
}

// compareVersions compares dotted numbers; what is not a number counts as 0.
func compareVersions(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if n, m := leadingInt(x), leadingInt(y); n != m {
			if n < m {
				return -1
			}
			return 1
		}
	}
	return 0
}

func leadingInt(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, _ := strconv.Atoi(s[:i])
	return n
}

// specOf is what the client's manifest says of the event, nil for an unknown one.
func specOf(client, name string) *EventSpec {
	if m := ManifestOf(client); m != nil {
		return m.Event(name)
	}
	return nil
}

// CanContext reports whether the client has a channel to the model in at
// least one of its events of this kind. For one event, ask [Event.Caps].
func CanContext(client string, kind Kind) bool {
	m := ManifestOf(client)
	return m != nil && slices.ContainsFunc(m.Events, func(s EventSpec) bool {
		return s.Caps&CapContext != 0 && (s.Kind == kind || s.Kind == ToolAfter && kind == ToolFailed)
	})
}

// Caps is what an answer to the event can do; nothing for an event that is not
// known or that was filtered.
func (e Event) Caps() Caps {
	s := specOf(e.Client, e.Name)
	if s == nil || e.Kind == Other && s.Kind != Other {
		return 0
	}
	return s.Caps
}

// stretch is a digit by which deadlines are multiplied. Only tests of what hooks
// do build programs with one, so that they do the same on a machine that is busy.
var stretch string

// DeadlineMS is how long a hook may take for the event, in milliseconds.
func DeadlineMS(client, name string) int {
	ms := defaultDeadline
	if s := specOf(client, name); s != nil && s.DeadlineMS > 0 {
		ms = s.DeadlineMS
	}
	if len(stretch) == 1 && stretch[0] > '1' && stretch[0] <= '9' {
		ms *= int(stretch[0] - '0')
	}
	return ms
}

// GateMS is how long a hook may take for an event whose answer can keep a turn
// from ending, in milliseconds; 0 for every other event. Tests run there, so it
// is minutes, and setup tells the client to wait that long.
func GateMS(client, name string) int {
	if s := specOf(client, name); s != nil && s.Caps&CapBlock != 0 && (s.Kind == Response || s.Kind == SubagentFinished) {
		return 585_000
	}
	return 0
}

// Judged reports whether events of the kind ask whether a tool may run: silence
// lets it.
func (k Kind) Judged() bool { return k == ToolBefore || k == PermissionAsked }

// Judged is [Kind.Judged] of the client's event of that name.
func Judged(client, name string) bool {
	s := specOf(client, name)
	return s != nil && s.Kind.Judged()
}

// Our own deadlines, in milliseconds. A tool waits for its hooks, so they get
// little; a session's start and a prompt may look something up; a gate before
// the end of a turn runs tests, and gets what its client grants less some.
const (
	defaultDeadline = 2_000
	recallDeadline  = 5_000
	gateDeadline    = 45_000
	shortDeadline   = 1_000 // where the client ends hooks early, or does not wait
)

// ClientMS is how long the client waits for a hook of the event by default, in
// milliseconds; 0 where that is not known.
func ClientMS(client, name string) int {
	if s := specOf(client, name); s != nil {
		return s.ClientMS
	}
	return 0
}
