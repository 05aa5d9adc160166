package setup

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Texts of settings files as people have them. The entry goes in, everything
// else keeps its bytes, and taking it out gives the same bytes again, with the
// note of the install and without it.
func TestJSONKeepsEverything(t *testing.T) {
	entry := object{{"command", "/r"}, {"args", []string{"mcp"}}}
	for _, tc := range []struct{ name, before, after string }{
		{"empty object", "{}", "{\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}"},
		{"others, no last newline", "{\n  \"a\": 1,\n  \"b\": [1, 2]\n}", "{\n  \"a\": 1,\n  \"b\": [1, 2],\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}"},
		{"tabs and CRLF", "{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {}\r\n\t}\r\n}\r\n", "{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {},\r\n\t\t\"reprise\": {\r\n\t\t\t\"command\": \"/r\",\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"mcp\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n"},
		{"four spaces", "{\n    \"mcpServers\": {},\n    \"z\": 1\n}\n", "{\n    \"mcpServers\": {\n        \"reprise\": {\n            \"command\": \"/r\",\n            \"args\": [\n                \"mcp\"\n            ]\n        }\n    },\n    \"z\": 1\n}\n"},
		{"one line", `{"a":1,"mcpServers":{"x":{"command":"y"}}}`, `{"a":1,"mcpServers":{"x":{"command":"y"},"reprise":{"command":"/r","args":["mcp"]}}}`},
		{"one line with spaces", `{"a": 1, "b": 2}`, `{"a": 1, "b": 2, "mcpServers": {"reprise": {"command": "/r", "args": ["mcp"]}}}`},
		{"one line, empty servers", `{"mcpServers":{}}`, `{"mcpServers":{"reprise":{"command":"/r","args":["mcp"]}}}`},
		{"comments", "// top\n{\n  /* a */ \"a\": 1, // after a\n  \"mcpServers\": {\n    // x\n    \"x\": {} // after x\n    // last\n  } // end\n}\n// bottom\n",
			"// top\n{\n  /* a */ \"a\": 1, // after a\n  \"mcpServers\": {\n    // x\n    \"x\": {}, // after x\n    // last\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  } // end\n}\n// bottom\n"},
		{"trailing commas", "{\n  \"mcpServers\": {\n    \"x\": {},\n  },\n}\n", "{\n  \"mcpServers\": {\n    \"x\": {},\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    },\n  },\n}\n"},
		{"trailing comma and comment", "{\n  \"a\": 1, // why\n}\n", "{\n  \"a\": 1, // why\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  },\n}\n"},
		{"only a comment inside", "{\n  // nothing yet\n}\n", "{\n  // nothing yet\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
		{"odd layout", "{ \"a\" : 1\n , \"b\":2 }", "{ \"a\" : 1\n , \"b\":2,\n  \"mcpServers\": {\n    \"reprise\": {\n      \"command\": \"/r\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  } }"},
		{"numbers and escapes", `{"big":12345678901234567890.10,"u":"\u00e9\/","e":1E+2}`, `{"big":12345678901234567890.10,"u":"\u00e9\/","e":1E+2,"mcpServers":{"reprise":{"command":"/r","args":["mcp"]}}}`},
		{"name twice, the last counts", "{\"mcpServers\":{\"a\":1},\"mcpServers\":{\"b\":2}}", "{\"mcpServers\":{\"a\":1},\"mcpServers\":{\"b\":2,\"reprise\":{\"command\":\"/r\",\"args\":[\"mcp\"]}}}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := []string{"mcpServers", "reprise"}
			got, created, err := setJSON([]byte(tc.before), path, entry)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, string(got)); diff != "" {
				t.Error(diff)
			}
			again, _, err := setJSON(got, path, entry)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("the second time: %v\n%s", err, again)
			}
			back, found, err := removeJSON(got, path, created)
			if err != nil || !found {
				t.Fatal(found, err)
			}
			if diff := cmp.Diff(tc.before, string(back)); diff != "" {
				t.Error("back:\n" + diff)
			}
		})
	}
}

// An entry that is there is mended in place: what else is in it stays.
func TestJSONUpdate(t *testing.T) {
	before := "{\n  \"mcpServers\": {\n    \"reprise\": { \"command\": \"/old\", /* mine */ \"timeout\": 5, \"env\": {\"A\": \"b\"} },\n    \"z\": {}\n  }\n}\n"
	after := "{\n  \"mcpServers\": {\n    \"reprise\": { \"command\": \"/new\", /* mine */ \"timeout\": 5, \"env\": {\"A\": \"b\", \"REPRISE_HOME\": \"/h\"}, \"args\": [\"mcp\"] },\n    \"z\": {}\n  }\n}\n"
	got, _, err := setJSON([]byte(before), []string{"mcpServers", "reprise"}, object{{"command", "/new"}, {"args", []string{"mcp"}}, {"env", object{{"REPRISE_HOME", "/h"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"cut off", `{"a": 1`, "line 1, column"},
		{"no JSON", "hello", "line 1, column 1"},
		{"a list", "[]", "not an object"},
		{"servers are a list", "{\n  \"mcpServers\": []\n}", "line 2, column 17"},
		{"servers are null", `{"mcpServers": null}`, "not an object"},
		{"two values", "{} {}", "line 1"},
		{"single quotes", "{'a': 1}", "line 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, _, err := setJSON([]byte(tc.text), []string{"mcpServers", "reprise"}, object{{"command", "/r"}}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// randomJSON writes a random object in a random layout, comments included.
func randomJSON(r *rand.Rand, depth int, in string) string {
	ws := func() string {
		return []string{"", " ", "\n" + in, "\r\n" + in, " /* c */ ", "\n" + in + "// l\n" + in, "\t"}[r.IntN(7)]
	}
	value := func() string {
		switch n := r.IntN(7); {
		case n < 2 && depth > 0:
			return randomJSON(r, depth-1, in+"  ")
		case n == 2:
			return "[" + ws() + "1," + ws() + `"x"` + ws() + "]"
		case n == 3:
			return `"s\u00e9\n"`
		case n == 4:
			return "null"
		}
		return "-1.50e3"
	}
	var b strings.Builder
	b.WriteString("{")
	n := r.IntN(4)
	for i := range n {
		fmt.Fprintf(&b, "%s%q%s:%s%s%s", ws(), fmt.Sprint("k", i), ws(), ws(), value(), ws())
		if i < n-1 || r.IntN(4) == 0 {
			b.WriteString(",")
		}
	}
	b.WriteString(ws() + "}")
	return b.String()
}

// Whatever a file looks like, an install changes nothing else in it, and an
// uninstall without any note still leaves every other value.
func TestJSONProperty(t *testing.T) {
	entry := object{{"type", "stdio"}, {"command", `C:\r "x".exe`}, {"args", []string{"mcp"}}}
	paths := [][]string{{"mcpServers", "reprise"}, {"k0", "reprise"}, {"projects", "/a b/c", "mcpServers", "reprise"}}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		src := []byte(randomJSON(r, 3, "  "))
		path := paths[seed%3]
		out, created, err := setJSON(src, path, entry)
		if err != nil {
			if errors.Is(err, errNotObject) {
				continue
			}
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		if err := sameButJSON(src, out, [][]string{path}); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, src, out)
		}
		f, err := parseJSONFile(out)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, _, _ := f.get(path)
		want := map[string]any{"type": "stdio", "command": `C:\r "x".exe`, "args": []any{"mcp"}}
		if !cmp.Equal(got, any(want)) {
			t.Fatalf("seed %d: got %v", seed, got)
		}
		back, found, err := removeJSON(out, path, created)
		if err != nil || !found {
			t.Fatalf("seed %d: %v %v\n%s", seed, found, err, out)
		}
		if err := sameButJSON(src, back, [][]string{path}); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, src, back)
		}
		// White space in an empty object is the one thing that only the note
		// of the install brings back.
		if !bytes.Equal(back, src) && !blankObject.Match(src) {
			t.Fatalf("seed %d: not the same bytes\n%q\n%q\n%q", seed, src, out, back)
		}
	}
}

var blankObject = regexp.MustCompile(`\{\s+\}`)

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"{}", "{\"mcpServers\":{\"reprise\":1}}", "// c\n{ }", "{\"a\":[{}],}", "", "{\"mcpServers\":{\"reprise\":{},\"reprise\":{}}}", "{\"\\u006dcpServers\":{}}"} {
		f.Add([]byte(s))
	}
	path := []string{"mcpServers", "reprise"}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, created, err := setJSON(src, path, object{{"command", "/r"}})
		if err != nil {
			return
		}
		if err := sameButJSON(src, out, [][]string{path}); err != nil {
			t.Fatalf("%v\n%q\n%q", err, src, out)
		}
		back, found, err := removeJSON(out, path, created)
		if err != nil || !found {
			t.Fatalf("%v %v\n%q\n%q", found, err, src, out)
		}
		if err := sameButJSON(src, back, [][]string{path}); err != nil {
			t.Fatalf("%v\n%q\n%q", err, src, back)
		}
	})
}

func TestTOML(t *testing.T) {
	entry := object{{"command", "/r"}, {"args", []string{"mcp"}}}
	const added = "[mcp_servers.reprise]\ncommand = \"/r\"\nargs = [\"mcp\"]\n"
	for _, tc := range []struct{ name, before, after string }{
		{"empty", "", added},
		{"lines", "model = \"x\" # m\n\n[a]\nb = 1\n", "model = \"x\" # m\n\n[a]\nb = 1\n\n" + added},
		{"no last newline", "a = 1", "a = 1\n\n" + added},
		{"CRLF", "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(added, "\n", "\r\n")},
		{"other servers", "[mcp_servers.x]\ncommand = 'y'\n\n[mcp_servers.x.env]\nA = \"b\"\n", "[mcp_servers.x]\ncommand = 'y'\n\n[mcp_servers.x.env]\nA = \"b\"\n\n" + added},
		{"there, older", "[mcp_servers.reprise] # mine\n# why\ncommand = '/old' # c\nargs = [ # a\n  \"mcp\",\n]\nstartup_timeout_sec = 5\n\n[z]\n", "[mcp_servers.reprise] # mine\n# why\ncommand = \"/r\" # c\nargs = [ # a\n  \"mcp\",\n]\nstartup_timeout_sec = 5\n\n[z]\n"},
		{"there, in part", "[mcp_servers.\"reprise\"]\nenabled = true\n# next\n[z]\na = 1\n", "[mcp_servers.\"reprise\"]\nenabled = true\ncommand = \"/r\"\nargs = [\"mcp\"]\n# next\n[z]\na = 1\n"},
		{"there, same", added + "x = 1", added + "x = 1"},
		{"there, empty at the end", "[mcp_servers.reprise]", "[mcp_servers.reprise]\ncommand = \"/r\"\nargs = [\"mcp\"]\n"},
		{"header like text", "a = '''\n[mcp_servers.reprise]\n'''\n", "a = '''\n[mcp_servers.reprise]\n'''\n\n" + added},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := setTOML([]byte(tc.before), []string{"mcp_servers", "reprise"}, entry)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, string(got)); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(tc.name, "there") {
				return
			}
			back, found, err := removeTOML(got, []string{"mcp_servers", "reprise"})
			want := tc.before
			if tc.name == "no last newline" {
				want += "\n" // only the note of the install knows
			}
			if err != nil || !found || string(back) != want {
				t.Errorf("back: %v %v\n%q\n%q", found, err, back, want)
			}
		})
	}
	for name, text := range map[string]string{
		"inline": "mcp_servers = { x = { command = 'y' } }\n", "inline entry": "[mcp_servers]\nreprise = { command = 'y' }\n", "dotted": "mcp_servers.reprise.command = 'y'\n",
		"broken": "a = \n", "a list": "[[mcp_servers]]\na = 1\n", "twice": "[a]\n[a]\n", "a text": "mcp_servers = 'x'\n",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if out, err := setTOML([]byte(text), []string{"mcp_servers", "reprise"}, entry); err == nil {
				t.Errorf("wrote %q", out)
			}
		})
	}
	t.Run("remove with tables below and comments", func(t *testing.T) {
		src := "a = 1\n\n[mcp_servers.reprise]\ncommand = 'x'\n\n[mcp_servers.reprise.env]\nA = 'b'\n\n# about z\n[z]\nb = 2\n"
		out, found, err := removeTOML([]byte(src), []string{"mcp_servers", "reprise"})
		if want := "a = 1\n\n# about z\n[z]\nb = 2\n"; err != nil || !found || string(out) != want {
			t.Errorf("%v %v %q", found, err, out)
		}
	})
	t.Run("variables in a table of their own", func(t *testing.T) {
		src := "[mcp_servers.reprise]\ncommand = '/r'\n[mcp_servers.reprise.env]\nA = 'b' # keep\n"
		out, err := setTOML([]byte(src), []string{"mcp_servers", "reprise"}, object{{"command", "/r"}, {"env", object{{"A", "b"}, {"REPRISE_HOME", "/h"}}}})
		if want := src + "REPRISE_HOME = \"/h\"\n"; err != nil || string(out) != want {
			t.Errorf("%v %q", err, out)
		}
	})
}

func FuzzTOML(f *testing.F) {
	for _, s := range []string{"", "a = 1\n", "[mcp_servers.reprise]\ncommand='x'\n[mcp_servers.reprise.env]\n", "[[a]]\n[mcp_servers]\n", "a='''\n'''", "[mcp_servers.x]\r\nb={c=1}#d"} {
		f.Add([]byte(s))
	}
	path := []string{"mcp_servers", "reprise"}
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := setTOML(src, path, object{{"command", "/r"}, {"args", []string{"mcp"}}})
		if err != nil {
			return
		}
		if back, found, err := removeTOML(out, path); err != nil || !found {
			t.Fatalf("%v %v\n%q\n%q\n%q", found, err, src, out, back)
		}
	})
}
