package lexicon

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// stemsOf are the stems of a text in their order, without parts of others.
func stemsOf(text string) []string {
	var out []string
	Words(text, func(w Word) bool {
		if !w.Part {
			out = append(out, w.Term)
		}
		return true
	})
	return out
}

// kindsOf reads kinds.txt: "phrases with commas between = attributes with commas
// between > members"; attributes may be left out, and "?" follows a phrase that is
// one of everyday talk.
func kindsOf(source string) string {
	var b strings.Builder
	list := func(s string) []string {
		var out []string
		for p := range strings.SplitSeq(s, ",") {
			if p = strings.TrimSpace(p); p != "" {
				out = append(out, p)
			}
		}
		return out
	}
	for line := range strings.Lines(source) {
		names, members, _ := strings.Cut(strings.TrimSpace(line), ">")
		names, attributes, _ := strings.Cut(names, "=")
		var phrases []string
		for _, p := range list(names) {
			p, weak := strings.CutSuffix(p, "?")
			s := strings.Join(stemsOf(p), " ")
			if weak {
				s = "?" + s
			}
			if !slices.Contains(phrases, s) {
				phrases = append(phrases, s)
			}
		}
		var stems []string
		for m := range strings.FieldsSeq(members) {
			for _, s := range stemsOf(m) {
				if !slices.Contains(stems, s) {
					stems = append(stems, s)
				}
			}
		}
		b.WriteString(strings.Join(phrases, ";") + "\t" + strings.Join(list(attributes), ";") + "\t" + strings.Join(stems, " ") + "\n")
	}
	return b.String()
}

func TestKindsTable(t *testing.T) {
	source, err := os.ReadFile("kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := kindsOf(string(source))
	if *update {
		if err := os.WriteFile("kinds.tab", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		kindsTable = want
	}
	if kindsTable != want {
		t.Fatal("kinds.tab is not what kinds.txt gives: run go test ./internal/recall/lexicon -update")
	}
}

// TestStemTables: the tables are what their sources give.
func TestStemTables(t *testing.T) {
	for name, table := range map[string]*string{"light": &lightTable, "roles": &rolesTable} {
		source, err := os.ReadFile(name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		stems := stemsOf(string(source))
		slices.Sort(stems)
		want := " " + strings.Join(slices.Compact(stems), " ") + " "
		if *update {
			if err := os.WriteFile(name+".tab", []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			*table = want
		}
		if *table != want {
			t.Fatalf("%s.tab is not what %s.txt gives: run go test ./internal/recall/lexicon -update", name, name)
		}
	}
	for w, want := range map[string]bool{"discov": true, "happen": true, "first": true, "kafka": false, "": false, "dis": false} {
		if Light(w) != want {
			t.Errorf("%q: light is %t", w, !want)
		}
	}
	for w, want := range map[string]bool{"sister": true, "dog": true, "kafka": false, "": false, "sist": false} {
		if Role(w) != want {
			t.Errorf("%q: role is %t", w, !want)
		}
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		"which package manager do we use":          "packag manag",
		"What are the package managers?":           "packag manag",
		"パッケージマネージャは何を使いますか":                       "パッ ッケ ケー ージ ジマ マネ ネー ージ ジャ",
		"the manager of the package":               "",
		"packaged managerial work":                 "",
		"Who hosted the dinner?":                   "",
		"which cloud do we use":                    "cloud",
		"what testing framework and which linter?": "test framework|linter",
		"": "",
	} {
		var got []string
		for _, k := range Kinds(stemsOf(text)) {
			got = append(got, strings.Join(k.Words, " "))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q names %q, want %q", text, s, want)
		}
	}
	k := Kinds([]string{"packag", "manag"})
	if len(k) != 1 || !slices.Contains(k[0].Members, "pnpm") || !slices.Equal(k[0].Attributes, []string{"package manager"}) {
		t.Errorf("got %+v", k)
	}
}
