package fact

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func show(facts []Fact) string {
	var parts []string
	for _, f := range facts {
		parts = append(parts, f.Subject+"|"+f.Attribute+"|"+f.Value)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ; ")
}

func TestStatements(t *testing.T) {
	data, err := os.ReadFile("testdata/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") && !strings.Contains(line, " => ") {
			continue
		}
		i := strings.LastIndex(line, " => ")
		if i < 0 {
			t.Fatalf("no => in %q", line)
		}
		text := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(line[:i])
		n++
		if got, want := show(Find(text)), strings.TrimSpace(line[i+4:]); got != want {
			t.Errorf("%s\n got %s\nwant %s", line[:i], got, want)
		}
	}
	if n < 120 {
		t.Errorf("only %d lines", n)
	}
}

func TestHeadingNamesTheSubject(t *testing.T) {
	for _, c := range []struct{ heading, text, want string }{
		{"Postgres", "port: 5432", "postgres|port|5432"},
		{"Shop > Postgres", "The port is 5432.", "postgres|port|5432"},
		{"Notes", "The port is 5432.", "|port|5432"},
		{"Staging", "The port of billing is 1234", "billing@staging|port|1234"},
		{"2026-11-03 — What we learnt about the port and why", "The port is 5432.", "|port|5432"},
	} {
		if got := show(FindUnder(c.heading, c.text)); got != c.want {
			t.Errorf("%s / %s: got %s, want %s", c.heading, c.text, got, c.want)
		}
	}
}

func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		attr, a, b string
		same       bool
	}{
		{"timeout", "30 s", "30 seconds", true}, {"timeout", "30s", "0.5 min", true}, {"timeout", "30 s", "30 min", false},
		{"timeout", "30", "30 s", true}, {"timeout", "30", "60 s", false}, {"timeout", "30秒", "30 s", true},
		{"limit", "1,000", "1000", true}, {"limit", "1 MB", "1024 kB", true}, {"limit", "5", "6", false},
		{"day", "Thursdays", "木曜日", true}, {"day", "Thursday", "Friday", false},
		{"owner", "Aiko", "Aiko Tanaka", true}, {"owner", "Aiko", "Ben", false},
		{"version", "1.26", "1.26.3", true}, {"version", "v1.26", "1.26", true}, {"version", "1.2", "1.26", false},
		{"go version", "1.26", "1.25", false},
		{"url", "https://a.example/x/", "a.example/x", true}, {"port", "５４３２", "5432", true},
		{"database", "PostgreSQL", "postgres", true}, {"time", "9:30", "9:45", false},
	} {
		if got := SameValue(c.attr, c.a, c.b); got != c.same {
			t.Errorf("%s: %q and %q: same %v, want %v", c.attr, c.a, c.b, got, c.same)
		}
		if SameValue(c.attr, c.a, c.b) != SameValue(c.attr, c.b, c.a) {
			t.Errorf("%s: %q and %q: the order matters", c.attr, c.a, c.b)
		}
	}
}

// What a text says in two ways, or in two languages, has one key; what is said
// of two places, or of nothing named, is never a contradiction.
func TestContradict(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"the port of billing is 5432", "billing listens on 5433", true},
		{"the port of billing is 5432", "billingのポートは5433です", true},
		{"the port of billing is 5432", "billing listens on 5432", false},
		{"we use npm", "We use pnpm, not npm.", true},
		{"we use yarn", "npmではなくpnpmを使います", true},
		{"max_connections: 200", "max connections = 300", false}, // two words are no setting's name
		{"max_connections: 200", "max-connections = 300", true},
		{"the API port on staging is 1234", "the API port in production is 4321", false},
		{"timeout is 30 s", "timeout is 60 s", false},
		{"Staging runs on port 6543", "Staging moved to port 7001", true},
		{"Staging runs on port 6543", "Production runs on port 7001", false},
		{"Staging runs on port 6543", "ステージングのポートは7001番です", true},
		{"We use Postgres for everything", "Our database is MySQL", true},
		{"We indent with tabs", "インデントはスペースを使う", true},
		{"We use Go 1.25", "The project uses Go 1.26", true},
		{"we use tabs, not spaces", "we use spaces, not tabs", true},
		{"we use zerolog, not logrus", "we use logrus instead of zerolog", true},
		{"deploys go out on Thursdays", "デプロイは金曜日です", true},
		{"owner of billing is Aiko", "Ben owns billing", true},
	} {
		a, b := Find(c.a), Find(c.b)
		got := false
		for _, x := range a {
			for _, y := range b {
				got = got || Contradict(x, y)
			}
		}
		if got != c.want {
			t.Errorf("%q and %q: contradict %v, want %v (%s, %s)", c.a, c.b, got, c.want, show(a), show(b))
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"the port of X is 5432", "a: b", "(((", "Xのポートは", "=", "use", "is is is", "**a_b:**", "# \n- ", "we use , not", "\xff is 3", "a of"} {
		f.Add(s, "h")
	}
	f.Fuzz(func(t *testing.T, text, heading string) {
		facts := FindUnder(heading, text)
		for _, x := range facts {
			if x.Value == "" || x.Attribute == "" || !utf8.ValidString(x.Value) {
				t.Fatalf("%q: %+v", text, x)
			}
			if Contradict(x, x) {
				t.Fatalf("%+v contradicts itself", x)
			}
		}
		for i, x := range facts {
			for _, y := range facts[:i] {
				if x.Subject == y.Subject && x.Attribute == y.Attribute {
					t.Fatalf("%q says %+v and %+v", text, x, y)
				}
			}
		}
	})
}

// A text without a statement costs nothing on the heap: most have none, and
// every document is read when the index is made.
func TestNothingFoundAllocatesNothing(t *testing.T) {
	text := strings.Repeat("Ran the tests again and looked at the output of the build, which went through this time.\n", 5)
	if n := testing.AllocsPerRun(100, func() { Find(text) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	text := fmt.Sprintf("## Billing\n%s- the port of billing is 5432\n- We use pnpm, not npm\n", strings.Repeat("Ran the tests again and looked at the output of the build.\n", 5))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Find(text)
	}
}
