package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A repository's files do not decide where reprise is and whether it speaks; the user's own do.
func TestImposedBy(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "work", "shop")
	put := func(t *testing.T, file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(file) })
	}
	vars := map[string]string{"HOME": home, "PATH": "/bin", "REPRISE_HOME": "/evil", "REPRISE_HOOK_DEPTH": "1", "XDG_CONFIG_HOME": "/evil"}
	settings, local, dotenv := filepath.Join(project, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json"), filepath.Join(project, ".env")
	for _, c := range []struct {
		name, client, file, text string
		want                     []string
	}{
		{"depth", "claude", settings, `{"env":{"REPRISE_HOOK_DEPTH":"1"}}`, []string{"REPRISE_HOOK_DEPTH"}},
		{"more", "claude", settings, `{"env":{"REPRISE_HOOK_DEPTH":"1","XDG_CONFIG_HOME":"/x","PATH":"/x","OTHER":"x"}}`, []string{"REPRISE_HOOK_DEPTH", "XDG_CONFIG_HOME"}},
		{"local", "claude", local, `{"env" : { "REPRISE_HOME"  : "x" } }`, []string{"REPRISE_HOME"}},
		{"escaped", "claude", settings, `{"env":{"\u0052EPRISE_HOM\u0045":"x"}}`, []string{"REPRISE_HOME"}},
		{"escaped wrongly", "claude", settings, `{"env":{"\uZZZZ":"x","REPRISE_HOME":"x"}, "x":"\u12`, []string{"REPRISE_HOME"}},
		{"with comments", "claude", settings, "{ // x\n\"env\":{\"REPRISE_HOME\":\"x\",}}", []string{"REPRISE_HOME"}},
		{"a value", "claude", settings, `{"env":{"X":"REPRISE_HOME"},"allow":["HOME"]}`, nil},
		{"nothing", "claude", settings, ``, nil},
		{"another client's", "claude", dotenv, "REPRISE_HOME=x\n", nil},
		{"dotenv", "gemini", dotenv, "# x\nexport REPRISE_HOME = x\nXREPRISE_HOOK_DEPTH=1\n", []string{"REPRISE_HOME"}},
		{"dotenv above", "gemini", filepath.Join(home, "work", ".gemini", ".env"), "REPRISE_HOOK_DEPTH: 1\r\n", []string{"REPRISE_HOOK_DEPTH"}},
		{"dotenv of the user", "gemini", filepath.Join(home, ".env"), "REPRISE_HOME=x\n", nil},
		{"dotenv with a mark", "gemini", dotenv, "\ufeffREPRISE_HOME=x", []string{"REPRISE_HOME"}},
		{"of whichever client", "", settings, `{"env":{"REPRISE_HOME":"x"}}`, []string{"REPRISE_HOME"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			put(t, c.file, c.text)
			var got []string
			for _, i := range ImposedBy(c.client, vars, project, home) {
				got = append(got, i.Name)
				if i.File != c.file {
					t.Errorf("%s is said to be of %s", i.Name, i.File)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
	t.Run("in the home directory", func(t *testing.T) {
		put(t, filepath.Join(home, ".claude", "settings.json"), `{"env":{"REPRISE_HOME":"x"}}`)
		if got := ImposedBy("claude", vars, home, home); got != nil {
			t.Errorf("the user's own settings: %v", got)
		}
		// A repository that names itself the user's home is believed nothing.
		put(t, settings, `{"env":{"REPRISE_HOME":"x","HOME":"x"}}`)
		own := map[string]string{"HOME": project, "REPRISE_HOME": "/evil"}
		if got := Disown("claude", own, project); len(got) != 2 || len(own) != 0 {
			t.Errorf("%v is taken out, %v left", got, own)
		}
	})
	t.Run("a file full of escapes", func(t *testing.T) {
		// Each letter written so: what a hook does with it does not grow with the square.
		put(t, settings, `{"env":{"`+strings.Repeat(`\u0041`, 170_000)+`":"1","\u0052EPRISE_HOME":"x"}}`)
		if got := ImposedBy("claude", vars, project, home); len(got) != 1 || got[0].Name != "REPRISE_HOME" {
			t.Errorf("%v", got)
		}
	})
	t.Run("no file", func(t *testing.T) {
		if err := os.MkdirAll(settings, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := ImposedBy("claude", vars, project, home); got != nil {
			t.Errorf("a directory: %v", got)
		}
	})
}
