package cli_test

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
)

// What commands print with --json is documented twice: for programs in schemaFile, as
// JSON Schemas, and for people in schemaPage, which is made of it. Both are made from the
// types of what the tests of this package see printed, with the comments of their fields:
//
//	UPDATE_SCHEMAS=1 go test ./internal/cli -run 'TestScripts|TestExamples'
//
// adds what is not there yet; with a file that is empty ("{}") all is made anew. Without
// the variable, what a test sees printed must be what the file says.
var (
	schemaFile = filepath.Join("..", "..", "docs", "schemas", "commands.v1.json")
	schemaPage = filepath.Join("..", "..", "docs", "json.md")
	schemas    commandSchemas
)

type object = map[string]any

// commandSchemas is schemaFile.
type commandSchemas struct {
	once sync.Once
	mu   sync.Mutex
	err  error
	// Commands is what each prints, Types the types of ours that it is made of.
	Commands map[string]any `json:"commands"`
	Types    map[string]any `json:"types"`
}

func (s *commandSchemas) load() error {
	s.once.Do(func() {
		data, err := os.ReadFile(schemaFile)
		if err == nil {
			err = json.Unmarshal(data, s)
		}
		s.err = err
		if s.Commands == nil {
			s.Commands, s.Types = object{}, object{}
		}
	})
	return s.err
}

// typedWriter is the output of a command whose arguments are args.
type typedWriter struct {
	io.Writer
	args    []string
	differs string // what is not as it is documented
}

// Typed compares what is printed with what is documented.
func (w *typedWriter) Typed(v any) {
	cmd, err := commandOf(w.args)
	if err != nil {
		return
	}
	name := strings.TrimPrefix(cmd.CommandPath(), "reprise ")
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if err := schemas.load(); err != nil {
		w.differs = err.Error()
		return
	}
	update := os.Getenv("UPDATE_SCHEMAS") != ""
	s := shaper{types: object{}}
	saw := plain(s.value(reflect.ValueOf(v)))
	differs := ""
	for n, t := range s.types {
		if t := plain(t); !reflect.DeepEqual(bare(schemas.Types[n]), bare(t)) || update {
			differs = "the type " + n
			if update {
				schemas.Types[n] = t
			}
		}
	}
	if merged := merge(schemas.Commands[name], saw); !reflect.DeepEqual(schemas.Commands[name], merged) {
		differs = "its shape"
		if update {
			schemas.Commands[name] = merged
		}
	}
	if jsonElsewhere[name] != "" {
		return
	}
	if differs != "" && !update {
		got, _ := json.Marshal(saw)
		w.differs = fmt.Sprintf("`reprise %s` prints what docs/json.md does not say (%s): look at it, then UPDATE_SCHEMAS=1 go test ./internal/cli -run 'TestScripts|TestExamples'\n%s", name, differs, got)
	}
}

// write writes both files, where that was asked for.
func (s *commandSchemas) write() error {
	if os.Getenv("UPDATE_SCHEMAS") == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	s.drop()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	if err := os.WriteFile(schemaFile, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(schemaPage, s.page(), 0o644)
}

// drop takes out commands that there are no more, and types that nothing names.
func (s *commandSchemas) drop() {
	known := jsonCommands()
	maps.DeleteFunc(s.Commands, func(name string, _ any) bool { return known[name] == nil })
	used := map[string]bool{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				if n := refName(ref); !used[n] {
					used[n] = true
					follow(s.Types[n])
				}
			}
			for _, e := range v {
				follow(e)
			}
		case []any:
			for _, e := range v {
				follow(e)
			}
		}
	}
	for _, v := range s.Commands {
		follow(v)
	}
	maps.DeleteFunc(s.Types, func(n string, _ any) bool { return !used[n] })
}

// oneTree is the tree of commands for all that only look something up in it: made anew for
// each, it was a tenth of what the tests of this package took.
var (
	oneTree = sync.OnceValue(cli.Tree)
	finding sync.Mutex // what is found gets the flags of the commands above it
)

// commandOf is the command that is called with these arguments.
func commandOf(args []string) (*cobra.Command, error) {
	finding.Lock()
	defer finding.Unlock()
	cmd, _, err := oneTree().Find(args)
	return cmd, err
}

// jsonCommands are the commands that have --json, by their words.
var jsonCommands = sync.OnceValue(func() map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd.Annotations["only-group"] == "" && cmd.Flag("json") != nil && (cmd.IsAvailableCommand() || !cmd.HasParent()) {
			out[strings.TrimPrefix(cmd.CommandPath(), "reprise ")] = cmd
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.Tree())
	return out
})

// plain is v as it is after being written and read.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err == nil {
		v = nil
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		panic(err)
	}
	return v
}

// bare is a schema without what is said of its parts: a comment may change.
func bare(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, e := range v {
			if _, text := e.(string); k != "description" || !text {
				out[k] = bare(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = bare(e)
		}
		return out
	}
	return v
}

// merge is the schema that what fits one of two fits. Objects without a name are put
// together member by member, anything else becomes one of several.
func merge(a, b any) any {
	if a == nil || reflect.DeepEqual(a, b) {
		return b
	}
	x, y := a.(object), b.(object)
	if p, ok := x["properties"].(object); ok {
		if q, ok := y["properties"].(object); ok {
			all := maps.Clone(p)
			for name, s := range q {
				all[name] = merge(all[name], s)
			}
			out := object{"type": "object", "properties": all}
			both := []any{}
			of, _ := y["required"].([]any)
			req, _ := x["required"].([]any)
			for _, name := range req {
				if slices.Contains(of, name) {
					both = append(both, name)
				}
			}
			if len(both) > 0 {
				out["required"] = both
			}
			return out
		}
	}
	if i, ok := x["items"]; ok {
		if j, ok := y["items"]; ok {
			out := maps.Clone(x)
			out["items"] = merge(i, j)
			return out
		}
	}
	if len(x) == 0 { // of an empty list there was nothing to be seen
		return y
	}
	if len(y) == 0 {
		return x
	}
	list, ok := x["anyOf"].([]any)
	if !ok {
		list = []any{x}
	}
	_, named := y["$ref"]
	for i, one := range list {
		if o := one.(object); reflect.DeepEqual(o, b) {
			return x
		} else if (o["properties"] != nil && y["properties"] != nil || o["items"] != nil && y["items"] != nil) && !named {
			list = slices.Clone(list)
			list[i] = merge(o, b)
			return object{"anyOf": list}
		}
	}
	list = append(slices.Clone(list), b)
	slices.SortFunc(list, func(a, b any) int {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return bytes.Compare(x, y)
	})
	return object{"anyOf": list}
}

// shaper makes schemas of values and types; types are those of ours that have a name.
type shaper struct{ types object }

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// value is the schema of what stands where a type says nothing: in a map, or at the top.
func (s *shaper) value(v reflect.Value) object {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return object{}
	}
	t := v.Type()
	switch {
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Interface && t.Name() == "":
		props, required := object{}, []string{}
		for _, k := range v.MapKeys() {
			props[k.String()] = s.value(v.MapIndex(k))
			required = append(required, k.String())
		}
		slices.Sort(required)
		return object{"type": "object", "properties": props, "required": required}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Interface:
		var items any
		for i := range v.Len() {
			items = merge(items, plain(s.value(v.Index(i))))
		}
		if items == nil {
			items = object{}
		}
		return object{"type": "array", "items": items}
	case t.Kind() == reflect.Pointer && !v.IsNil():
		return s.value(v.Elem())
	case t.Kind() == reflect.Slice && v.IsNil():
		return object{"type": []string{"array", "null"}, "items": s.typ(t.Elem())}
	}
	return s.typ(t)
}

// typ is the schema of a type.
func (s *shaper) typ(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case t.Kind() != reflect.Pointer && (t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(textMarshaler)):
		return object{"type": "string"}
	case t.Implements(marshaler) || t.Kind() == reflect.Interface:
		return object{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Pointer:
		return s.typ(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.typ(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.typ(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return s.fields(t)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), "reprise/"), "internal/")
		name = strings.NewReplacer("/", ".", "_test", "").Replace(name) + "." + t.Name()
		if s.types[name] == nil {
			s.types[name] = object{} // it may hold itself
			s.types[name] = s.fields(t)
		}
		return object{"$ref": "#/types/" + name}
	default:
		panic("no schema of " + t.String())
	}
}

// fields is the schema of a struct, with the comments of its fields.
func (s *shaper) fields(t reflect.Type) object {
	props, required, said := object{}, []string{}, commentsOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			of := s.fields(inner)
			for n, p := range of["properties"].(object) {
				if props[n] == nil {
					props[n] = p
				}
			}
			req, _ := of["required"].([]string)
			required = append(required, req...)
			continue
		}
		one := s.typ(f.Type)
		optional := strings.Contains(opts, "omit")
		if kind := f.Type.Kind(); !optional && (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) {
			one = object{"anyOf": []any{one, object{"type": "null"}}}
		}
		if text := said[f.Name]; text != "" {
			one = maps.Clone(one)
			one["description"] = text
		}
		props[cmp.Or(name, f.Name)] = one
		if !optional {
			required = append(required, cmp.Or(name, f.Name))
		}
	}
	slices.Sort(required)
	out := object{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = slices.Compact(required)
	}
	if text := said[""]; text != "" {
		out["description"] = text
	}
	return out
}

var (
	commentsMu sync.Mutex
	comments   = map[string]map[string]map[string]string{} // package, type, field
)

// commentsOf are what the source says of a type of ours: of each field, and of the type
// under "".
func commentsOf(t reflect.Type) map[string]string {
	rest, ours := strings.CutPrefix(t.PkgPath(), "reprise/")
	if !ours || t.Name() == "" {
		return nil
	}
	commentsMu.Lock()
	defer commentsMu.Unlock()
	if comments[rest] == nil {
		comments[rest] = map[string]map[string]string{}
		files, _ := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(rest), "*.go"))
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				continue
			}
			for _, d := range parsed.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok {
						comments[rest][ts.Name.Name] = fieldComments(ts, gen.Doc)
					}
				}
			}
		}
	}
	return comments[rest][t.Name()]
}

func fieldComments(ts *ast.TypeSpec, doc *ast.CommentGroup) map[string]string {
	text := func(groups ...*ast.CommentGroup) string {
		for _, g := range groups {
			if s := strings.Join(strings.Fields(g.Text()), " "); s != "" {
				return s
			}
		}
		return ""
	}
	out := map[string]string{"": strings.TrimPrefix(text(ts.Doc, doc), ts.Name.Name+" is ")}
	if st, ok := ts.Type.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				out[n.Name] = text(f.Comment, f.Doc)
			}
		}
	}
	return out
}

func refName(ref string) string { return strings.TrimPrefix(ref, "#/types/") }

// page is schemaPage.
func (s *commandSchemas) page() []byte {
	var b bytes.Buffer
	b.WriteString(`# What commands print with --json

Made by a test of ` + "`internal/cli`" + ` from what the commands print; the same as JSON Schemas
is in [schemas/commands.v1.json](schemas/commands.v1.json). New members may come, and what
is here stays as it is, for as long as the ` + "`v`" + ` of a document stays. A member that is not
marked *always* is left out where it is empty. Times are RFC 3339 in UTC, durations whole
nanoseconds where their name does not say otherwise. Errors go to the standard error, with
the [exit codes](exit-codes.md) of any command.

| command | prints |
|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		fmt.Fprintf(&b, "| `reprise %s` | %s |\n", name, kindOf(s.Commands[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Types)) {
		t := s.Types[name].(object)
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		if text, ok := t["description"].(string); ok {
			fmt.Fprintf(&b, "%s\n\n", cell(text))
		}
		b.WriteString("| member | is | |\n|---|---|---|\n")
		props, _ := t["properties"].(object)
		required, _ := t["required"].([]any)
		for _, p := range slices.Sorted(maps.Keys(props)) {
			text, _ := props[p].(object)["description"].(string)
			if slices.Contains(required, any(p)) {
				text = strings.TrimSpace("*always* " + text)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p, kindOf(props[p]), cell(text))
		}
	}
	return b.Bytes()
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "[", "\\[").Replace(text)
}

// kindOf is a schema in a few words, with links to the types that it names.
func kindOf(schema any) string {
	s, _ := schema.(object)
	switch {
	case s["$ref"] != nil:
		name := refName(s["$ref"].(string))
		return "[" + name + "](#" + strings.ToLower(strings.ReplaceAll(name, ".", "")) + ")"
	case s["anyOf"] != nil:
		var all []string
		for _, one := range s["anyOf"].([]any) {
			all = append(all, kindOf(one))
		}
		return strings.Join(all, " or ")
	case s["items"] != nil:
		list := "list of " + kindOf(s["items"])
		if _, several := s["type"].([]any); several {
			list += " or null"
		}
		return list
	case s["additionalProperties"] != nil:
		return "names with " + kindOf(s["additionalProperties"])
	case s["properties"] != nil:
		var all []string
		for _, p := range slices.Sorted(maps.Keys(s["properties"].(object))) {
			all = append(all, "`"+p+"`: "+kindOf(s["properties"].(object)[p]))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case s["format"] != nil:
		return "time"
	case s["type"] != nil:
		return fmt.Sprint(s["type"])
	}
	return "anything"
}

// Every command that prints for programs is in docs/json.md, or prints what another
// document describes.
func TestJSONIsDocumented(t *testing.T) {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if err := schemas.load(); err != nil {
		t.Fatal(err)
	}
	known := jsonCommands()
	for name := range known {
		if schemas.Commands[name] == nil && jsonElsewhere[name] == "" {
			t.Errorf("no test of this package has seen what `reprise %s --json` prints", name)
		}
	}
	for name, where := range jsonElsewhere {
		if known[name] == nil {
			t.Errorf("there is no `reprise %s --json` any more (%s): take it out of the list", name, where)
		}
	}
	for name := range schemas.Commands {
		if known[name] == nil {
			t.Errorf("there is no `reprise %s --json` any more; UPDATE_SCHEMAS=1 takes it out of docs/json.md", name)
		}
	}
	page, err := os.ReadFile(schemaPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, schemas.page()) {
		t.Errorf("docs/json.md is not what %s comes to: UPDATE_SCHEMAS=1 makes it anew", path.Base(filepath.ToSlash(schemaFile)))
	}
}

// jsonElsewhere are commands whose --json no test here can have them print, by where it
// is described.
var jsonElsewhere = map[string]string{
	"index embed":         "embed_test.go, which has an endpoint for vectors",
	"memory profile keep": "scopes.Change, as of every command that changes what is known",
	"memory profile edit": "scopes.Change, as of every command that changes what is known",
	"memory profile drop": "scopes.Change, as of every command that changes what is known",
	"worker list":         "worker_fleet.txtar, which has servers",
	"task finish":         "docs/tasks.md; it reads an answer from its standard input",
}
