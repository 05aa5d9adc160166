package done

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// The corpus is what the detector is held to: nothing that is no claim may be
// taken for one, and what is plainly said must be heard.
func TestCorpus(t *testing.T) {
	data, err := os.ReadFile("testdata/corpus.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := map[Claim]int{}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		want, text, ok := strings.Cut(line, "\t")
		if !ok || want != string(Done) && want != string(Open) && want != string(None) {
			t.Fatalf("line %d: %q", i+1, line)
		}
		text = strings.ReplaceAll(text, `\n`, "\n")
		n[Claim(want)]++
		if got, why := Detect(text); string(got) != want {
			t.Errorf("line %d: %q is %s (%q), want %s", i+1, text, got, why, want)
		}
		// What is only quoted is nobody's claim.
		if got, why := Detect("> " + strings.ReplaceAll(text, "\n", "\n> ")); got != None {
			t.Errorf("line %d: quoted, %q is %s (%q)", i+1, text, got, why)
		}
		if got, why := Detect("````\n" + text + "\n````"); got != None {
			t.Errorf("line %d: as code, %q is %s (%q)", i+1, text, got, why)
		}
		// A marker settles it, whatever is said before.
		if got, _ := Detect(strings.ReplaceAll(text, "```", "") + "\n\n[PARTIAL]\n"); !strings.Contains(text, "~~~") && got != Open {
			t.Errorf("line %d: %q with [PARTIAL] is %s", i+1, text, got)
		}
	}
	t.Log(n)
	if n[Done]+n[Open]+n[None] < 200 || n[None] < 80 || n[Open] < 60 {
		t.Errorf("the corpus has become small: %v", n)
	}
}

func TestLongTexts(t *testing.T) {
	long := strings.Repeat("I looked at another file of the project and read it.\n", 20_000)
	if got, _ := Detect(long + "All done.\n"); got != Done {
		t.Errorf("the end of a long text is %s", got)
	}
	if got, _ := Detect("All done.\n" + long); got != None {
		t.Errorf("the beginning of a long text is %s", got)
	}
}

func FuzzDetect(f *testing.F) {
	data, err := os.ReadFile("testdata/corpus.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if _, text, ok := strings.Cut(line, "\t"); ok && i%7 == 0 {
			f.Add(strings.ReplaceAll(text, `\n`, "\n"))
		}
	}
	f.Add("\xff\xfe[DONE]")
	f.Add(strings.Repeat("「", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		claim, why := Detect(text)
		if claim != Done && claim != Open && claim != None {
			t.Fatalf("%q", claim)
		}
		if (claim == None) != (why == "") {
			t.Fatalf("%s because of %q", claim, why)
		}
		if !utf8.ValidString(why) {
			t.Fatalf("%q is no text", why)
		}
		if quoted, _ := Detect("> " + strings.NewReplacer("\n", "\n> ", "\r", " ").Replace(text)); quoted != None {
			t.Fatalf("quoted, %q is %s", text, quoted)
		}
	})
}
