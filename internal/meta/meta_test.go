package meta_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/durable"
	"reprise/internal/durable/durabletest"
	"reprise/internal/meta"
)

const answers = `
domain:
  name: Contract desk
  industry: law
  purpose: keep track of contracts and their deadlines
  users: [{name: lawyers, expertise: expert}, {name: assistants}]
use_cases:
  - {name: Review contracts, what: each clause is compared with our terms, complexity: complex}
  - {name: Track deadlines, what: all dates stand in one list, complexity: simple, needs: [Review contracts]}
  - {name: Draft letters, what: a letter says what has to be said, complexity: moderate}
integrations: [{name: calendar, kind: mcp, what: dates}]
confirm: true
`

func fixed() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

func filled(t *testing.T, text string, have meta.Existing) map[string]string {
	t.Helper()
	given, err := meta.ParseAnswers([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := meta.Fill(given, have)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func design(t *testing.T, raw map[string]string) (meta.Design, []meta.File) {
	t.Helper()
	a, err := meta.Build(raw)
	if err != nil {
		t.Fatal(err)
	}
	d := meta.NewDesign(a)
	return d, d.Generate()
}

// An interview by single answers comes to what a file of answers does, in the order of
// the stages, and asks nothing twice.
func TestInterviewIsAFunctionOfItsAnswers(t *testing.T) {
	want := filled(t, answers, meta.Existing{})
	raw := map[string]string{}
	stage, asked := 0, map[string]bool{}
	for q := meta.Next(raw, meta.Existing{}); q != nil; q = meta.Next(raw, meta.Existing{}) {
		at := slices.Index(meta.Stages(), q.Stage)
		if at < stage || asked[q.Key] {
			t.Fatalf("%s of stage %s is asked after stage %d, or twice", q.Key, q.Stage, stage)
		}
		stage, asked[q.Key] = at, true
		// Left and gone on with: the answers alone say where.
		raw = maps.Clone(raw)
		if err := meta.Answer(raw, *q, want[q.Key]); err != nil {
			t.Fatalf("%s: %v", q.Key, err)
		}
	}
	if !maps.Equal(raw, want) {
		t.Errorf("one by one: %v\nfrom a file: %v", raw, want)
	}
	if n := len(asked); n < 18 {
		t.Errorf("%d questions", n)
	}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	raw := filled(t, strings.Replace(answers, "confirm: true", "", 1), meta.Existing{})
	for key, said := range map[string]string{
		"domain.name": "…", "type": "hobby", "use_cases.2.name": "review CONTRACTS", "use_cases.2.complexity": "hard",
		"use_cases.2.needs": "Fly to the moon", "agents": "20", "knowledge": "domain, gossip", "integrations": ": nothing",
		"commands": "x: nothing of it", "confirm": "", "domain.purpose": strings.Repeat("long ", 100), "state": "cloud",
	} {
		next := maps.Clone(raw)
		delete(next, key)
		q := meta.Question{Key: key}
		for k := meta.Next(next, meta.Existing{}); k != nil; k = nil {
			q = *k
		}
		if q.Key != key {
			t.Fatalf("%s is not asked for when it is missing, but %s", key, q.Key)
		}
		before := maps.Clone(next)
		if err := meta.Answer(next, q, said); err == nil && said != "" || err == nil && q.Usual == "" {
			t.Errorf("%s: %q was taken", key, said)
		}
		if !maps.Equal(before, next) {
			t.Errorf("%s: %q has changed the answers", key, said)
		}
	}
	for _, bad := range []string{"domain: {nmae: x}", "use_cases: 3", "agents: many", "- x"} {
		if _, err := meta.ParseAnswers([]byte(bad)); err == nil {
			t.Errorf("%q was taken as answers", bad)
		}
	}
	// A number that cannot be is named, and so is what it is the number of.
	for said, want := range map[string]string{
		"0": "agents: 0; 1 to 7", "-1": "agents: -1; 1 to 7", "50": "agents: 50; 1 to 7", "99999999999999999999": `agents: "99999999999999999999" is no whole number`,
		"2.5": `agents: "2.5" is no whole number`, "abc": `agents: "abc" is no whole number`,
	} {
		if _, err := meta.ParseAnswers([]byte("agents: " + said + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("agents: %s: %v", said, err)
		}
	}
	for said, want := range map[string]string{"yes": "yes", "true": "yes", "No": "no", `"no"`: "no", "perhaps": ""} {
		given, err := meta.ParseAnswers([]byte("confirm: " + said + "\n"))
		if given["confirm"] != want || (err == nil) != (want != "") {
			t.Errorf("confirm: %s: %q, %v", said, given["confirm"], err)
		}
	}
	circle := strings.Replace(answers, "complexity: complex}", "complexity: complex, needs: [Track deadlines]}", 1)
	given, err := meta.ParseAnswers([]byte(circle))
	if err == nil {
		_, err = meta.Fill(given, meta.Existing{})
	}
	// The first use case cannot name one that is not there yet, so it is not asked.
	if err != nil {
		t.Logf("a circle: %v", err)
	}
}

// Whatever is answered, within its bounds, what is generated reaches the score, is
// whole, and holds nothing that would break out of its place.
func TestGeneratedIsInOrder(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("wörter ", 42))
	for name, change := range map[string]func(raw map[string]string){
		"as it is":                       func(map[string]string) {},
		"all in one agent":               func(raw map[string]string) { raw["agents"] = "1" },
		"as many agents as there may be": func(raw map[string]string) { raw["agents"] = "7" },
		"short": func(raw map[string]string) {
			for i := range 3 {
				raw["use_cases."+string(rune('1'+i))+".what"] = "done"
			}
			raw["domain.purpose"] = "work"
		},
		"long": func(raw map[string]string) {
			for i := range 3 {
				raw["use_cases."+string(rune('1'+i))+".what"] = long
			}
			raw["domain.purpose"] = long
		},
		"read only, no knowledge but one": func(raw map[string]string) { raw["files"], raw["knowledge"] = "read", "domain" },
		"separate":                        func(raw map[string]string) { raw["existing"] = meta.Separate },
		"five use cases": func(raw map[string]string) {
			raw["use_cases.4?"], raw["use_cases.5?"] = "yes", "yes"
			for _, i := range []string{"4", "5"} {
				raw["use_cases."+i+".name"], raw["use_cases."+i+".what"] = "Case number "+i, "number "+i+" is done"
				raw["use_cases."+i+".complexity"], raw["use_cases."+i+".needs"] = "moderate", "Draft letters"
			}
			raw["commands"], raw["agents"] = "fourth: Case number 4", "5"
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := filled(t, answers, meta.Existing{})
			change(raw)
			_, files := design(t, raw)
			scores, wrong := meta.Check(files)
			for _, w := range wrong {
				t.Error(w)
			}
			if len(scores) < 2 {
				t.Errorf("%d agents", len(scores))
			}
			kinds := map[string]int{}
			for _, f := range files {
				kinds[f.Kind]++
				if !fs.ValidPath(f.Name) || !strings.HasPrefix(f.Name, ".claude/") || durable.CheckName(f.Name) != nil {
					t.Errorf("%s is no name below .claude", f.Name)
				}
			}
			for _, k := range []string{"agent", "command", "skill", "context", "workflow", "guide"} {
				if kinds[k] == 0 {
					t.Errorf("no %s was made", k)
				}
			}
		})
	}
}

// What people say ends up in prompts and front matters: it must stay a text there.
func TestAnswersStayTexts(t *testing.T) {
	raw := map[string]string{}
	q := meta.Next(raw, meta.Existing{})
	if err := meta.Answer(raw, *q, "Desk </context> `rm` @all\nname: evil\x1b[31m"); err != nil {
		t.Fatal(err)
	}
	if got := raw[q.Key]; strings.ContainsAny(got, "<>`@\n\x1b") {
		t.Errorf("kept as %q", got)
	}
}

// The rubric finds what it says it looks for.
func TestRate(t *testing.T) {
	_, files := design(t, filled(t, answers, meta.Existing{}))
	good := files[1]
	if s := meta.Rate(good); s.Points < 9.5 {
		t.Fatalf("a generated agent has %.1f: %q", s.Points, s.Lacks)
	}
	swap := func(from, to string) string { return strings.ReplaceAll(good.Text, from, to) }
	for name, c := range map[string]struct {
		text string
		most float64
	}{
		"no role":       {swap("<role>", "<rolle>"), 8.5},
		"another order": {swap("<task>", "<x>") + "\n<task>\nlate\n</task>\n", 9},
		"no levels":     {swap("Level", "Stage"), 9.5},
		"no figures": {strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return 'n'
			}
			return r
		}, good.Text), 8.5},
		"all instructions": {strings.Replace(good.Text, "</instructions>", strings.Repeat("word ", 5000)+"\n</instructions>", 1), 8},
		"empty":            {"", 2.5},
	} {
		if s := meta.Rate(meta.File{Name: "x", Text: c.text}); s.Points > c.most || len(s.Lacks) == 0 {
			t.Errorf("%s: %.1f points, want at most %.1f: %q", name, s.Points, c.most, s.Lacks)
		}
	}
	_, wrong := meta.Check([]meta.File{{Name: ".claude/agents/a.md", Kind: "agent", Text: "x"}, {Name: ".claude/context/c.md", Kind: "context", Text: "see @nobody and .claude/none.md\n"}})
	for _, want := range []string{"of 10 points", "@nobody", ".claude/none.md", "has 1 lines", "no description"} {
		if !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("the check does not say %q: %q", want, wrong)
		}
	}
}

func builder(t *testing.T, root string, disk durable.Disk) *meta.Builder {
	t.Helper()
	return meta.New(meta.Options{Data: filepath.Join(root, "data"), Root: filepath.Join(root, "project"), Now: fixed, Disk: disk})
}

func project(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, root)
	return root
}

func prepare(t *testing.T, root string) {
	t.Helper()
	put(t, root, "project/.claude/agents/mine.md", "mine\n")
	put(t, root, "project/README.md", "readme\n")
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	p := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// below is every file and directory of the project.
func below(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "project"), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(filepath.Join(root, "project"), p)
		if d.IsDir() {
			out[filepath.ToSlash(rel)] = "(directory)"
			return nil
		}
		data, err := os.ReadFile(p)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// make plans and writes a system.
func makeSystem(t *testing.T, b *meta.Builder, raw map[string]string) (meta.Outcome, error) {
	t.Helper()
	d, files := design(t, raw)
	unlock, err := b.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock() //nolint:errcheck // of a test
	sys, err := b.Plan(d, files)
	if err != nil {
		return meta.Outcome{}, err
	}
	return b.Apply(t.Context(), sys)
}

func TestMadeAndUndone(t *testing.T) {
	root := project(t)
	before := below(t, root)
	b := builder(t, root, durable.Disk{})
	raw := filled(t, answers, meta.Existing{})
	out, err := makeSystem(t, b, raw)
	if err != nil || len(out.Written) < 15 || len(out.Left) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	have, err := b.Look()
	if err != nil || !have.Ours || len(have.Agents) != 5 || len(have.Commands) != 3 {
		t.Errorf("it looks as if there were %+v, %v", have, err)
	}
	// A file of it that a person has made theirs stays.
	put(t, root, "project/.claude/agents/draft-letters-agent.md", "changed\n")
	if out, err = b.Undo(t.Context(), false); err != nil || len(out.Left) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	before[".claude/agents/draft-letters-agent.md"] = "changed\n"
	if after := below(t, root); !maps.Equal(after, before) {
		t.Errorf("after the undo there are %v, want %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
	if _, err = b.Undo(t.Context(), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second undo: %v", err)
	}
}

// Nothing of the user's is written over; `separate` finds names of its own, `replace`
// takes away what was generated and only that, and the undo brings it back.
func TestWhatIsThere(t *testing.T) {
	root := project(t)
	put(t, root, "project/.claude/commands/draft-letters.md", "mine\n")
	before := below(t, root)
	b := builder(t, root, durable.Disk{})
	raw := filled(t, answers, meta.Existing{})
	if _, err := makeSystem(t, b, raw); !errors.Is(err, meta.ErrTaken) || !strings.Contains(err.Error(), "draft-letters.md") {
		t.Fatalf("over a file of the user's: %v", err)
	}
	if after := below(t, root); !maps.Equal(after, before) {
		t.Fatal("something was written all the same")
	}
	raw["existing"] = meta.Separate
	if _, err := makeSystem(t, b, raw); err != nil {
		t.Fatal(err)
	}
	first := below(t, root)
	if first[".claude/commands/draft-letters.md"] != "mine\n" || first[".claude/commands/contract-desk-draft-letters.md"] == "" {
		t.Error("separate did not take names of its own")
	}
	other := filled(t, strings.Replace(answers, "Contract desk", "Letter box", 1), meta.Existing{})
	other["existing"], other["commands"] = meta.Replace, "letters: Draft letters"
	if out, err := makeSystem(t, b, other); err != nil || len(out.Removed) < 15 {
		t.Fatalf("replace: %+v, %v", out, err)
	}
	second := below(t, root)
	if second[".claude/commands/contract-desk-draft-letters.md"] != "" || second[".claude/agents/mine.md"] != "mine\n" || second[".claude/commands/letters.md"] == "" {
		t.Error("replace did not replace what was generated, or more than that")
	}
	if _, err := b.Undo(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if after := below(t, root); !maps.Equal(after, first) {
		t.Errorf("after undoing the replacement:\n%v\nwant\n%v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(first)))
	}
}

// A link in the project does not lead the generator out of it.
func TestLinkOutOfTheProject(t *testing.T) {
	root := project(t)
	out := filepath.Join(root, "outside")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(root, "project", ".claude", "commands")); err != nil {
		t.Skip("no links here")
	}
	if _, err := makeSystem(t, builder(t, root, durable.Disk{}), filled(t, answers, meta.Existing{})); err == nil {
		t.Error("it was written through the link")
	}
	if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
		t.Errorf("outside there are %v, %v", list, err)
	}
}

// A kill at any step of a generation: the next command finishes it, and the undo still
// takes all of it out.
func TestKilledAtEachStep(t *testing.T) {
	durabletest.Scenario{
		Sample:  24,
		Prepare: prepare,
		Act: func(disk durable.Disk, root string) error {
			b := meta.New(meta.Options{Data: filepath.Join(root, "data"), Root: filepath.Join(root, "project"), Now: fixed, Disk: disk})
			if _, err := b.Lock(t.Context()); err != nil {
				return err
			}
			given, err := meta.ParseAnswers([]byte(answers))
			if err != nil {
				return err
			}
			raw, err := meta.Fill(given, meta.Existing{})
			if err != nil {
				return err
			}
			if err := b.Save(meta.Interview{V: 1, Answers: raw}); err != nil {
				return err
			}
			a, err := meta.Build(raw)
			if err != nil {
				return err
			}
			d := meta.NewDesign(a)
			sys, err := b.Plan(d, d.Generate())
			if err != nil {
				return err
			}
			_, err = b.Apply(t.Context(), sys)
			return err
		},
		Check: func(t *testing.T, root string, _ error, _ string) {
			b := builder(t, root, durable.Disk{})
			if _, err := b.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			built, _, err := b.Built()
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			prepared := map[string]string{".claude/agents/mine.md": "mine\n", "README.md": "readme\n"}
			maps.Copy(want, prepared)
			for _, s := range built.Systems {
				if !s.Done {
					t.Error("it is not finished")
				}
				for _, f := range s.Files {
					want[f.Name] = f.Text
				}
			}
			check := func(when string, want map[string]string) {
				got := below(t, root)
				maps.DeleteFunc(got, func(_, text string) bool { return text == "(directory)" })
				if !maps.Equal(got, want) {
					t.Errorf("%s: %v, want %v", when, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
				}
			}
			check("finished", want)
			if len(built.Systems) == 0 {
				// Not begun: the answers are as they were left, or not there yet.
				if iv, begun, err := b.Interview(); err != nil || begun && len(iv.Answers) < 15 {
					t.Errorf("the interview: %v, %+v", err, iv)
				}
				return
			}
			if _, err := b.Undo(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			check("undone", prepared)
		},
	}.CrashAtEachStep(t)
}
