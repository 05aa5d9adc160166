package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"reprise/internal/event"
	"reprise/internal/mdfile"
)

// judgeStores looks at everything that is kept in files.
func (w *world) judgeStores(rep *report) error {
	for _, judge := range []func(*report) error{w.judgeEvents, w.judgeMemory, w.judgeQueue, w.judgeTasks, w.judgeState, w.judgeIndex, w.judgeFiles} {
		if err := judge(rep); err != nil {
			return err
		}
	}
	return nil
}

// quiet runs a command that has to go well now.
func (w *world) quiet(c *check, args ...string) string {
	out, err := w.run(args...)
	c.is(err == nil, "%s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(out))
	return out
}

// judgeEvents: what waited is logged, the chains hold, no event is there twice, and none
// that a hook acknowledged is missing, but for those that were counted as having no room.
func (w *world) judgeEvents(rep *report) error {
	w.quiet(rep.check("what waited in the outbox can be logged"), "reprise", "events", "outbox", "--replay")
	lost, err := w.countedLost()
	if err != nil {
		return err
	}
	chain, twice := rep.check("the event log's chains verify, line by line"), rep.check("no event is logged twice")
	ids, sessions := map[string]bool{}, map[string]bool{}
	for _, dir := range []string{filepath.Join(w.home, "events"), filepath.Join(w.data, "events")} {
		r, err := event.Verify(dir)
		if err != nil {
			return err
		}
		chain.n += r.Events
		for _, p := range r.Problems {
			chain.wrong = append(chain.wrong, p.String())
		}
		for e, err := range event.Read(dir) {
			if err != nil {
				chain.is(false, "%v", err)
				continue
			}
			twice.is(!ids[e.ID], "%s", e.ID)
			ids[e.ID], sessions[e.Session] = true, true
		}
	}
	c := rep.check(keptEvents)
	var missing, soft []string
	for _, p := range w.promises(keptEvents) {
		switch {
		case sessions[p.mark]:
			c.n++
		case p.soft:
			soft = append(soft, p.mark)
		default:
			missing = append(missing, p.mark)
		}
	}
	if len(missing) > lost {
		c.n += len(missing)
		c.wrong = append(c.wrong, fmt.Sprintf("%d are missing, and %d were counted as lost: %v", len(missing), lost, missing))
	}
	if len(missing)+len(soft) > 0 {
		rep.notes = append(rep.notes, fmt.Sprintf("events that could be kept nowhere: %d on a full disk (%d counted), %d where nothing could be written at all", len(missing), lost, len(soft)))
	}
	return nil
}

// countedLost is how many events the outbox had no room for, as it says itself.
func (w *world) countedLost() (int, error) {
	return event.NewBroker(event.BrokerOptions{Outbox: filepath.Join(w.home, "outbox")}).Lost()
}

// judgeMemory: its files can be read, hold what was acknowledged, and nothing is wrong with
// them by reprise's own look.
func (w *world) judgeMemory(rep *report) error {
	dir := filepath.Join(w.home, "memory")
	var all bytes.Buffer
	parse := rep.check("each file of the memory can be read")
	for _, sub := range []string{dir, filepath.Join(w.data, "global")} {
		err := filepath.WalkDir(sub, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
				return err
			}
			data, err := os.ReadFile(name)
			if err == nil {
				_, err = mdfile.Parse(data)
			}
			parse.is(err == nil, "%s: %v", name, err)
			all.Write(data)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	keeps(rep.check(keptMemory), w.promises(keptMemory), all.Bytes())
	c := rep.check("`memory check` finds nothing wrong")
	out, err := w.run("reprise", "memory", "check")
	c.is(err == nil, "%s", strings.TrimSpace(out))
	return nil
}

var markWord = regexp.MustCompile(`mark[a-z]+[0-9]{5}z`)

// keeps looks for each mark in a text.
func keeps(c *check, all []promise, text []byte) {
	found := map[string]bool{}
	for _, m := range markWord.FindAll(text, -1) {
		found[string(m)] = true
	}
	for _, p := range all {
		c.is(found[p.mark], "%s is missing", p.mark)
	}
}

func (w *world) judgeQueue(rep *report) error {
	promises := w.promises(keptQueue)
	if len(promises) == 0 {
		return nil
	}
	items, err := w.list()
	if err != nil {
		return err
	}
	var titles strings.Builder
	for _, it := range items {
		fmt.Fprintln(&titles, it.Title)
	}
	keeps(rep.check(keptQueue), promises, []byte(titles.String()))
	return nil
}

func (w *world) judgeTasks(rep *report) error {
	promises := w.promises(keptTasks)
	if len(promises) == 0 {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(w.shop, "specs", "TODO.md"))
	if err != nil {
		return err
	}
	keeps(rep.check(keptTasks), promises, text)
	w.quiet(rep.check("TODO.md and state.json agree (`task check`)"), "reprise", "task", "check")
	return nil
}

// judgeState: after a last exchange all that was acknowledged is on the agents' branches,
// here and at the remote, and both repositories are sound.
func (w *world) judgeState(rep *report) error {
	promises := w.promises(keptState)
	if len(promises) == 0 {
		return nil
	}
	if w.advised.Load() {
		rep.notes = append(rep.notes, "somebody was told to run `reprise state fsck --repair`, which was done at the end")
		w.quiet(rep.check("what a person was told to do helps"), "reprise", "state", "fsck", "--repair")
	}
	c := rep.check("state is exchanged once the network is back (`state sync`)")
	if w.remote != "" {
		for _, a := range w.actors {
			if slices.ContainsFunc(a.env, func(v string) bool { return strings.HasPrefix(v, "REPRISE_AGENT=") }) {
				cmd := w.command("reprise", "state", "sync")
				cmd.Env = append(cmd.Env, a.env...)
				out, err := cmd.CombinedOutput()
				c.is(err == nil, "%s: %v: %s", a.name, err, strings.TrimSpace(string(out)))
			}
		}
	}
	sound := rep.check("the state's repositories are sound (`git fsck`, `state fsck`)")
	for _, repo := range []string{filepath.Join(w.data, "state.git"), w.remote} {
		if repo == "" {
			continue
		}
		w.quiet(sound, "git", "-C", repo, "fsck", "--strict", "--no-dangling", "--no-progress")
		refs, err := w.run("git", "-C", repo, "for-each-ref", "--format=%(refname)", "refs/heads")
		if err != nil {
			return fmt.Errorf("the branches of %s: %w: %s", repo, err, refs)
		}
		var text strings.Builder
		for ref := range strings.Lines(refs) {
			out, err := w.run("git", "-C", repo, "grep", "-h", "-I", "-E", "mark[a-z]+[0-9]{5}z", strings.TrimSpace(ref))
			if err == nil { // 1 is that nothing was found
				text.WriteString(out)
			}
		}
		keeps(rep.check(keptState), promises, []byte(text.String()))
	}
	w.quiet(sound, "reprise", "state", "fsck")
	return nil
}

// judgeIndex: an index that is made anew says the same of every word as the one that grew.
func (w *world) judgeIndex(rep *report) error {
	var words []string
	for _, p := range w.promises(keptMemory) {
		words = append(words, p.mark)
	}
	if len(words) == 0 {
		return nil
	}
	slices.Sort(words)
	for len(words) > 40 { // an even choice
		words = slices.DeleteFunc(words, func(s string) bool { return len(s) > 0 && slices.Index(words, s)%2 == 1 })
	}
	c := rep.check("an index that is made anew answers as the one that grew")
	warn := rep.check("the index finds something of every file")
	ask := func() (map[string]string, error) {
		out := map[string]string{}
		for _, word := range append(words, "door", "bridge gate") {
			cmd := w.command("reprise", "memory", "search", word, "--json")
			var said bytes.Buffer
			cmd.Stderr = &said
			answer, err := cmd.Output()
			text := string(answer)
			if err != nil && !strings.HasPrefix(text, "[") {
				return nil, fmt.Errorf("memory search %s: %w: %s", word, err, said.String())
			}
			// What could not be read when the machine was ill is looked at again.
			warn.is(!strings.Contains(said.String(), "cannot be read"), "%s: %s", word, strings.TrimSpace(said.String()))
			var found []struct{ File, Heading, Snippet string }
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				return nil, fmt.Errorf("memory search %s: %w: %s", word, err, text)
			}
			var lines []string
			for _, f := range found {
				lines = append(lines, f.File+"|"+f.Heading+"|"+f.Snippet)
			}
			slices.Sort(lines)
			out[word] = strings.Join(lines, "\n")
		}
		return out, nil
	}
	grown, err := ask()
	if err != nil {
		return err
	}
	w.quiet(c, "reprise", "index", "rebuild")
	anew, err := ask()
	if err != nil {
		return err
	}
	for word, was := range grown {
		c.is(was == anew[word], "%s: %q before and %q after", word, was, anew[word])
		if strings.HasPrefix(word, "mark") {
			c.is(strings.Contains(was, word), "%s is not found", word)
		}
	}
	return nil
}

// leftover are names of files that should not outlive who made them.
var leftover = regexp.MustCompile(`^\..*\.tmp$|^\.trash-|^state\.git\.new$|^\.reprise-removed|^tmp_obj_`)

// judgeFiles: permissions, locks and what was left lying.
func (w *world) judgeFiles(rep *report) error {
	perm, held, tmp := rep.check("nothing that reprise keeps can be read by others"), rep.check("no lock is held"), rep.check("nothing half written is left")
	var young int
	for _, root := range []string{w.home, filepath.Join(w.shop, ".git"), filepath.Join(w.shop, "specs")} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			base, git := d.Name(), strings.Contains(name+"/", ".git/")
			if root == w.home && !git && fi.Mode()&fs.ModeSymlink == 0 && !strings.Contains(name, "/runs/run-") {
				perm.is(fi.Mode().Perm()&0o077 == 0, "%s: %s", name, fi.Mode())
			}
			if strings.HasSuffix(base, ".lock") && fi.Mode().IsRegular() {
				if git {
					rep.notes = append(rep.notes, "left by a git that was killed, taken away by whoever needs it next: "+name)
				} else {
					held.is(free(name), "%s is held", name)
				}
			}
			if leftover.MatchString(base) {
				// One that is young may still be somebody's: whoever writes there next takes it
				// away when it is older.
				if time.Since(fi.ModTime()) < time.Hour {
					young++
				} else {
					tmp.is(false, "%s", name)
				}
				return nil
			}
			tmp.n++
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if young > 0 {
		rep.notes = append(rep.notes, fmt.Sprintf("half-written files of killed processes, to be taken away in an hour: %d", young))
	}
	return nil
}

// free reports whether nobody holds a lock.
func free(name string) bool {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
