//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loopFormats are testdata/formats/loop-vN-M.txtar: what programs left behind of a loop that
// was killed, at version N of its state and with fields as they were at the time. In each of
// them the item ask waits for an answer, the run of long was killed with the loop, and rest
// is ready.
func loopFormats(t *testing.T) []string {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join("testdata", "formats", "loop-v*.txtar"))
	if err != nil || len(archives) < 3 {
		t.Fatalf("fixtures: %v, %v", archives, err)
	}
	return archives
}

const loopSteps = `steps:
  - when: "A person has answered what you asked"
  - shell: {command: "cat \"$REPRISE_SYSTEM_PROMPT_FILE\" > answer.txt"}
  - when: "Ask first"
  - write: {path: ask.txt, content: "x"}
  - when: "Write the rest"
  - write: {path: rest.txt, content: "x"}
  - when: "Wait for the file"
  - write: {path: long.txt, content: "x"}
`

// TestEveryLoopIsGoneOnWith: the loop of today goes on with what each program before left:
// it shows the question, takes the answer to the session that asked, settles the run that was
// killed, and does everything that is left.
func TestEveryLoopIsGoneOnWith(t *testing.T) {
	for _, archive := range loopFormats(t) {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			run, root := openFormats(t, archive)
			git := inShop(t, root)
			want := func(args string, texts ...string) {
				t.Helper()
				out, code := run(args)
				for _, text := range texts {
					if code != 0 || !strings.Contains(out, text) {
						t.Fatalf("reprise %s: exit code %d, and it lacks %q:\n%s", args, code, text, out)
					}
				}
			}
			steps := filepath.Join(root, "steps.yaml")
			if err := os.WriteFile(steps, []byte(loopSteps), 0o600); err != nil {
				t.Fatal(err)
			}
			want("loop status", "waits for a person", "which of the two?", "long")
			want("loop report", "which of the two?")
			want("loop audit --item ask", "which of the two?")
			want("loop metrics", `"parked": 1`)
			want("loop resume --item ask --answer the-second", "the next `reprise loop run` begins with this answer")
			if strings.HasSuffix(archive, "v1-4.txtar") { // from here on a loop's settings are its own
				want("loop run", "begins again", "merged into trunk")
				want("loop status", "of 59.00 USD")
				if text := git("show", "trunk:rest.txt"); text != "x" {
					t.Errorf("what is done was not merged: %q", text)
				}
			} else {
				want("loop run --until-empty --delay 0s --agent-script " + steps)
			}
			want("queue list --all --json", `"total": 3`)
			for _, id := range []string{"ask", "long", "rest"} {
				want("queue show "+id+" --json", `"state": "done"`)
			}
			branch := "loop-ask"
			if strings.HasSuffix(archive, "v1-4.txtar") {
				branch = "trunk"
			}
			if text := git("show", branch+":answer.txt"); !strings.Contains(text, "which of the two?") || !strings.Contains(text, "the-second") {
				t.Errorf("the session that asked was told\n%s", text)
			}
			want("loop audit --item long", "launched", "crash", "done")
		})
	}
}

// TestNewerLoopIsRefused: of a loop's state in a format newer than it knows, a program says
// so, names the file, and does nothing: file, queue and requests stay to the byte.
func TestNewerLoopIsRefused(t *testing.T) {
	archives := loopFormats(t)
	run, root := openFormats(t, archives[len(archives)-1])
	inShop(t, root)
	project := filepath.Join(root, "home/.local/share/reprise/projects/shop")
	path := filepath.Join(project, "loop/loop.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"a newer one": `"v": 9`, "none at all": `"w": 1`, "no number": `"v": 0`} {
		newer := strings.Replace(string(data), `"v": 1`, to, 1)
		if newer == string(data) {
			t.Fatalf("%s has no version", path)
		}
		if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
		before := everyFile(t, project)
		says := "newer reprise"
		if to != `"v": 9` {
			says = "no format"
		}
		for _, args := range []string{
			"loop run --until-empty --agent script", "loop status", "loop report", "loop metrics", "loop resume --answer yes",
			"loop resume --item ask --no-answer", "queue unpark ask",
		} {
			out, code := run(args)
			if code == 0 || !strings.Contains(out, says) || !strings.Contains(out, path) {
				t.Errorf("%s: reprise %s: exit code %d, want one, %q and the file:\n%s", name, args, code, says, out)
			}
		}
		if after := everyFile(t, project); !slices.Equal(before, after) {
			t.Errorf("%s: files changed:\n%s\nbefore:\n%s", name, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	}
}

// inShop makes the project's directory a repository, and gives what runs git in it.
func inShop(t *testing.T, root string) func(args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not here")
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false"}, args...)...)
		cmd.Dir, cmd.Env = filepath.Join(root, "shop"), []string{"HOME=" + filepath.Join(root, "home"), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	git("init", "-q", "-b", "trunk")
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	return git
}

// everyFile are the files of the queue, of the runs and of the loop, each with what is in it.
func everyFile(t *testing.T, project string) (all []string) {
	t.Helper()
	for _, part := range []string{"queue", "runs", "loop"} {
		err := filepath.WalkDir(filepath.Join(project, part), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
				return err
			}
			data, err := os.ReadFile(path)
			all = append(all, fmt.Sprintf("%s %q", path, data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
