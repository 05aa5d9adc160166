package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testdata/settled.txt has commands that are judged otherwise where the settings say so. A
// line is what they say, a verdict and a command, as in classes.txt: code and writes are
// the settings of these names, hosts lets *.example.org be read from.
func TestSettled(t *testing.T) {
	p := newProject(t)
	for _, c := range settled(t) {
		r := p.rules()
		c.change(r)
		if v := r.Command(c.command, p.dir); v.Decision != c.want {
			t.Errorf("%s: %s: %s", v.Decision, c.line, v.Reason)
		}
	}
}

// settledCase is a line of testdata/settled.txt.
type settledCase struct {
	line, command string
	change        func(r *Rules)
	want          Decision
}

func settled(t testing.TB) (out []settledCase) {
	t.Helper()
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
		has := strings.Split(settings, ",")
		out = append(out, settledCase{l, unescape.Replace(c), func(r *Rules) {
			r.ProjectCode, r.Writes = slices.Contains(has, "code"), slices.Contains(has, "writes")
			if slices.Contains(has, "hosts") {
				r.Hosts = []string{"*.example.org"}
			}
		}, Decision(want)})
	}
	return out
}
