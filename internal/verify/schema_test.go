package verify

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write docs/schemas/verification.v1.json anew")

const schemaFile = "../../docs/schemas/verification.v1.json"

// resultSchema is the schema of a result's file.
func resultSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	enum := func(values ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: values} }
	s, err := jsonschema.For[Result](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Status]():    enum("passed", "failed", "error", "skipped"),
		reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var triggers []any
	for _, tr := range Triggers() {
		triggers = append(triggers, tr)
	}
	s.Properties["trigger"] = enum(triggers...)
	s.Properties["profile"] = enum("", "quick", "standard", "deep")
	s.Properties["claim"] = enum("done", "open", "none")
	s.Properties["v"] = &jsonschema.Schema{Type: "integer", Const: jsonschema.Ptr[any](float64(ResultVersion))}
	// A list that is empty is written as one.
	for _, name := range []string{"checks", "issues", "next_steps"} {
		p := s.Properties[name]
		p.Type, p.Types = "array", nil
	}
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", "urn:reprise:verification.v1.json", "verification.v1"
	s.Description = "The result of a verification, as in its file and in what `reprise verify --json` prints."
	return s
}

func TestPublishedSchema(t *testing.T) {
	s := resultSchema(t)
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	if *update {
		if err := os.WriteFile(schemaFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(have, out.Bytes()) {
		t.Fatalf("%s is not the form of a result (%v); see `go test ./internal/verify -run PublishedSchema -update`", schemaFile, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, sh("good", "true"), sh("bad", "echo error; exit 1"))
	for _, r := range []*Result{w.run(Request{Trigger: Manual}), w.run(Request{Trigger: Stop, Claim: "done", Session: "s"}), {V: 1, ID: "x"}} {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != (r.Status != "") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
