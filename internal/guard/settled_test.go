package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/settled.txt has commands that are judged otherwise where the settings say so. A
// line is what they say, a verdict and a command, as in classes.txt: code and writes are
// the settings of these names, hosts lets *.example.org be read from, plain is none.
func TestSettled(t *testing.T) {
	p := newProject(t)
	data, err := os.ReadFile(filepath.Join("testdata", "settled.txt"))
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`)
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if strings.HasPrefix(l, "# ") {
			continue
		}
		settings, rest, _ := strings.Cut(l, " ")
		want, c, _ := strings.Cut(rest, " ")
		r := p.rules()
		for _, s := range strings.Split(settings, ",") {
			switch s {
			case "code":
				r.ProjectCode = true
			case "writes":
				r.Writes = true
			case "hosts":
				r.Hosts = []string{"*.example.org"}
			case "plain":
			default:
				t.Fatalf("no setting: %s", l)
			}
		}
		if v := r.Command(unescape.Replace(c), p.dir); v.Decision != Decision(want) {
			t.Errorf("%s: %s, want %s: %s\n\t%s", settings, v.Decision, want, c, v.Reason)
		}
	}
}
