package guard

import "testing"

// vetSources are sources, and whether go vet may take in other files for them.
var vetSources = map[string]struct {
	file, text string
	want       Decision
}{
	"plain":               {"sub/a.go", "package a\n\nimport \"fmt\"\n", Allow},
	"cgo":                 {"sub/a.go", "package a\n\n// #include \"/etc/passwd\"\nimport \"C\"\n", Ask},
	"cgo at the end":      {"sub/a.go", "package a; import \"C\"", Ask},
	"without a blank":     {"sub/a.go", "package a; import\"C\";", Ask},
	"backquoted":          {"sub/a.go", "package a\nimport `C`\n", Ask},
	"a comment between":   {"sub/a.go", "package a\nimport /* #include \"x\" */ \"C\" // x\n", Ask},
	"in brackets":         {"sub/a.go", "package a\nimport (\"C\")\n", Ask},
	"a bracket and lines": {"sub/a.go", "package a\nimport (\n\t\"fmt\"\n\t\"C\"\n)\n", Ask},
	"a text":              {"sub/a.go", "package a\nvar x = \"C\"\n", Allow},
	"a list":              {"sub/a.go", "package a\nvar x = []string{\n\t\"C\",\n}\n", Allow},
	"an argument":         {"sub/a.go", "package a\nvar x = f(\"C\")\n", Allow},
	"later than a text":   {"sub/a.go", "package a\nvar x = f(\"C\")\nimport \"C\"\n", Ask},
	"assembler":           {"sub/a.s", "#include \"textflag.h\"\nTEXT x(SB)\n", Allow},
	"assembler elsewhere": {"sub/a.s", "# include \"/etc/passwd\"\n", Ask},
	"a great assembler":   {"sub/a.S", "#include <../x>\n", Ask},
	"no assembler":        {"sub/a.txt", "#include \"/etc/passwd\"\n", Allow},
	"a wrapper":           {"sub/a.swig", "", Ask},
	"one of C++":          {"sub/a.swigcxx", "", Ask},
	"git's own":           {".git/a.go", "package a; import \"C\"", Allow},
}

// go vet has a C compiler or an assembler look at what sources include, and their messages
// show lines of it: such a project is asked about as one that runs its code.
func TestVetOfWhatIncludesFiles(t *testing.T) {
	for name, tt := range vetSources {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put(t, map[string]string{tt.file: tt.text, "sub/b/c.go": "package b\n"})
			for _, c := range []string{"go vet ./...", "cd sub/b && go vet .", "go vet -C sub ./..."} {
				if v := p.rules().Command(c, p.dir); v.Decision != tt.want || tt.want == Ask && v.Rule != "project-code" {
					t.Errorf("%s: %s (%s), want %s: %s", c, v.Decision, v.Rule, tt.want, v.Reason)
				}
			}
			if v := p.rules().Command("go doc fmt", p.dir); v.Decision != Allow {
				t.Errorf("go doc: %s: %s", v.Decision, v.Reason)
			}
		})
	}
}
