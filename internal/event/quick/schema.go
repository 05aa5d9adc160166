package quick

// Field is what a payload's field must hold where it is there: a reader decodes
// it into a Go value, and one wrong kind would lose it the whole payload. null
// is as good as missing; fields that are not listed are kept as they come.
type Field struct {
	Name string
	Kind byte    // one of the Kinds
	Of   []Field // of an object, or of the objects of a list
}

// Kinds of fields.
const (
	Text    = 's'
	Integer = 'i'
	Number  = 'n'
	Bool    = 'b'
	Object  = 'o'
	Objects = 'O' // a list of objects
	Texts   = 'S' // a list of strings
	Any     = 'x'
)

// The payloads of package event's data.go; a test compares the two.
var (
	sessionFields = []Field{
		{"source", Text, nil}, {"reason", Text, nil}, {"cwd", Text, nil}, {"model", Text, nil},
		{"transcript", Text, nil}, {"imported", Bool, nil},
	}
	promptFields = []Field{{"text", Text, nil}, {"cwd", Text, nil}}
	toolFields   = []Field{
		{"tool", Text, nil}, {"name", Text, nil}, {"use_id", Text, nil}, {"input", Any, nil},
		{"output", Text, nil}, {"error", Text, nil}, {"exit_code", Integer, nil},
		{"duration_ms", Integer, nil}, {"cwd", Text, nil},
	}
	responseFields = []Field{{"text", Text, nil}, {"error", Text, nil}}
	compactFields  = []Field{{"trigger", Text, nil}, {"phase", Text, nil}, {"summary", Text, nil}}
	subagentFields = []Field{{"id", Text, nil}, {"type", Text, nil}, {"text", Text, nil}}
	questionFields = []Field{
		{"question", Text, nil}, {"options", Texts, nil}, {"answer", Text, nil}, {"by", Text, nil}, {"use_id", Text, nil},
	}
	servedFields = []Field{
		{"at", Text, nil}, {"query", Text, nil},
		{"items", Objects, []Field{{"id", Text, nil}, {"class", Text, nil}, {"score", Number, nil}, {"tokens", Integer, nil}}},
		{"tokens", Integer, nil}, {"policy", Text, nil}, {"held_out", Bool, nil},
	}
	delegationFields = []Field{
		{"what", Text, nil}, {"tool", Text, nil}, {"name", Text, nil}, {"work", Integer, nil}, {"total", Integer, nil},
		{"delegated", Integer, nil}, {"limit", Integer, nil}, {"reason", Text, nil},
	}
	usedFields   = []Field{{"id", Text, nil}, {"how", Text, nil}}
	memoryFields = []Field{
		{"op", Text, nil}, {"id", Text, nil}, {"name", Text, nil}, {"hash", Text, nil}, {"bytes", Integer, nil},
		{"from", Text, nil}, {"to", Text, nil}, {"by", Text, nil}, {"reason", Text, nil},
		{"supersedes", Text, nil}, {"text", Text, nil}, {"chain", Text, nil}, {"count", Integer, nil},
		{"item", Any, nil},
	}
)

var verificationFields = []Field{
	{"id", Text, nil}, {"status", Text, nil}, {"profile", Text, nil}, {"trigger", Text, nil}, {"claim", Text, nil},
	{"base", Text, nil}, {"tree", Text, nil},
	{"checks", Objects, []Field{{"name", Text, nil}, {"status", Text, nil}, {"level", Text, nil}, {"at_base", Text, nil}, {"duration_ms", Integer, nil}}},
	{"issues", Texts, nil}, {"blocked", Bool, nil}, {"agent", Text, nil}, {"duration_ms", Integer, nil},
}

// Fields is what the data of a type of event holds. ok is false for a type that
// is not one of the closed list.
func Fields(typ string) (fields []Field, ok bool) {
	switch typ {
	case "session.started", "session.ended":
		return sessionFields, true
	case "prompt.submitted":
		return promptFields, true
	case "tool.called", "tool.succeeded", "tool.failed", "permission.asked":
		return toolFields, true
	case "response.completed":
		return responseFields, true
	case "client.compacted":
		return compactFields, true
	case "subagent.started", "subagent.finished":
		return subagentFields, true
	case "question.asked", "question.answered":
		return questionFields, true
	case "recall.served":
		return servedFields, true
	case "recall.used":
		return usedFields, true
	case "memory.written", "memory.promoted", "memory.retired", "memory.purged":
		return memoryFields, true
	case "verification.finished":
		return verificationFields, true
	case "permission.decided", "episode.recorded", "policy.changed",
		"run.changed", "work.changed", "task.changed", "state.changed", "compaction.finished",
		"trust.changed":
		return nil, true
	case "delegation.counted":
		return delegationFields, true
	}
	return nil, false
}

// find is the field of that name. Readers match names without regard to case,
// so the check does too.
func find(fields []Field, name string) (Field, bool) {
	for _, f := range fields {
		if len(f.Name) != len(name) {
			continue
		}
		same := true
		for i := range len(name) {
			b := name[i]
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			if b != f.Name[i] {
				same = false
				break
			}
		}
		if same {
			return f, true
		}
	}
	return Field{}, false
}

// fits reports whether a value, by its first bytes, is of the field's kind.
func (f Field) fits(value string) bool {
	if value == "" || f.Kind == Any || value[0] == 'n' { // null, or no JSON, which is found out later
		return true
	}
	switch b := value[0]; f.Kind {
	case Text:
		return b == '"'
	case Bool:
		return b == 't' || b == 'f'
	case Object:
		return b == '{'
	case Objects, Texts:
		return b == '['
	case Integer, Number:
		if b != '-' && (b < '0' || b > '9') {
			return false
		}
		for i := 0; i < len(value) && f.Kind == Integer; i++ {
			switch b := value[i]; {
			case b == '.' || b == 'e' || b == 'E' || i > 18:
				return false
			case b != '-' && (b < '0' || b > '9'):
				return true
			}
		}
	}
	return true
}

func (f Field) what() string {
	switch f.Kind {
	case Text:
		return "a string"
	case Integer:
		return "an integer"
	case Number:
		return "a number"
	case Bool:
		return "true or false"
	case Object:
		return "an object"
	case Objects:
		return "a list of objects"
	case Texts:
		return "a list of strings"
	}
	return "a value"
}

// Fits reports whether the raw JSON value is of the kind that the field of that
// name must have, as far as its first bytes tell.
func Fits(fields []Field, name, raw string) bool {
	f, ok := find(fields, name)
	return !ok || f.fits(raw)
}
