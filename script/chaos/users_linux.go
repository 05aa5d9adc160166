package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"reprise/internal/agent/dialect/fixture"
)

// What keeps each kind of promise.
const (
	keptEvents = "an event that a hook acknowledged is in the log"
	keptMemory = "a memory write that was acknowledged is in its file"
	keptState  = "a state entry that was acknowledged is on its branch, here and at the remote"
	keptQueue  = "an item that was acknowledged is in the queue"
	keptTasks  = "a task that was acknowledged is in the list"
)

// hookCase is a recorded payload that comes to an event.
type hookCase struct {
	client, event string
	payload       map[string]any
	session       string // name of the field
}

// makeHooks makes two clients whose hooks are called with recorded payloads of all four.
func (w *world) makeHooks() error {
	all, err := fixture.Load(fixture.Builtin())
	if err != nil {
		return err
	}
	var cases []hookCase
	for _, c := range all {
		e := fixture.Expect(c)
		if e.Error != "" || e.Type == "" || e.Event == nil || e.Event.Session == "" {
			continue
		}
		h := hookCase{client: c.Client, event: c.Event}
		text := strings.NewReplacer("/home/dev/shop", w.shop, "/home/dev/project", w.shop).Replace(string(c.Stdin))
		if json.Unmarshal([]byte(text), &h.payload) != nil {
			continue
		}
		for _, f := range []string{"session_id", "sessionId"} {
			if h.payload[f] == e.Event.Session { // a subagent's events are of the session above it
				h.session = f
			}
		}
		if h.session != "" {
			cases = append(cases, h)
		}
	}
	if len(cases) < 50 {
		return fmt.Errorf("only %d recorded payloads come to an event", len(cases))
	}
	for _, name := range []string{"hooka", "hookb"} {
		w.actor(name, func(ctx context.Context, a *actor) error {
			c := cases[a.rand.IntN(len(cases))]
			session := a.mark()
			payload := map[string]any{}
			for k, v := range c.payload {
				payload[k] = v
			}
			payload[c.session] = session
			if _, ok := payload["cwd"]; ok {
				payload["cwd"] = w.shop
			}
			in, err := json.Marshal(payload)
			if err != nil {
				return err
			}
			o := a.call(ctx, in, "reprise-hook", c.client, c.event)
			if o.done() {
				a.keep(keptEvents, session, o.hit == "few files" || w.spells.since(o.began, "readonly"))
			}
			return nil
		})
	}
	return nil
}

// makeMemory makes two people who write into the memory and the queue at the same time, by
// commands of which each is a process.
func (w *world) makeMemory() {
	for _, name := range []string{"mema", "memb"} {
		w.actor(name, func(ctx context.Context, a *actor) error {
			mark := a.mark()
			done := func(of string, args ...string) {
				if a.call(ctx, nil, with(args...)...).done() {
					a.keep(of, mark, false)
				}
			}
			switch n := a.rand.IntN(100); {
			case n < 25:
				done(keptMemory, "memory", "append", "--title", "Seen", "--text", "we saw "+mark)
			case n < 35:
				done(keptMemory, "memory", "create", "reference-"+mark, "--summary", "Of "+mark, "--content", "# "+mark+"\n\nIt is so.")
			case n < 55:
				a.writeBoard(ctx, mark)
			case n < 65:
				done(keptMemory, "memory", "learn", "--global", "The door "+mark+" opens to the left side")
			case n < 72:
				done(keptMemory, "memory", "decide", "--global", "Use the door "+mark)
			case n < 76 && w.opt.parts["loop"]:
				done(keptQueue, "queue", "add", "write "+mark, "--max-attempts", "6")
			case n < 84:
				done(keptTasks, "task", "new", "Look at "+mark)
			case n < 90:
				a.call(ctx, nil, with("memory", "search", "door")...)
			case n < 94:
				a.call(ctx, nil, with("memory", "list")...)
			case n < 97:
				a.call(ctx, nil, with("task", "list")...)
			default:
				a.call(ctx, nil, with("events", "list", "--since", "1m")...)
			}
			return nil
		})
	}
}

// writeBoard puts a line on the page that others write on, too: from the version that was
// read, so that it is refused when somebody else was quicker.
func (a *actor) writeBoard(ctx context.Context, mark string) {
	page := a.w.board.page()
	read := a.call(ctx, nil, with("memory", "read", page, "--json")...)
	if read.code == 3 {
		if a.call(ctx, nil, with("memory", "create", page, "--summary", "A board", "--content", "# Board\n\n- "+mark)...).done() {
			a.keep(keptMemory, mark, false)
			a.w.board.added()
		}
		return
	}
	var doc struct{ Hash, Content string }
	if !read.done() || json.Unmarshal([]byte(read.out), &doc) != nil {
		return
	}
	o := a.call(ctx, []byte(strings.TrimRight(bodyOf(doc.Content), "\n")+"\n- "+mark+"\n"), with("memory", "update", page, "--if-hash", doc.Hash, "--content", "-")...)
	if o.done() {
		a.keep(keptMemory, mark, false)
		a.w.board.added()
	} else if o.code == 4 {
		a.w.blows.add("board conflicts", 1)
	}
}

// bodyOf is a file without its front matter.
func bodyOf(text string) string {
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if _, body, ok := strings.Cut(rest, "\n---\n"); ok {
			return strings.TrimLeft(body, "\n")
		}
	}
	return text
}

// makeState makes two agents that keep what they learn and exchange it.
func (w *world) makeState() error {
	dir := filepath.Join(w.dir, "net")
	if err := tool("mkdir", "-m", "700", dir); err != nil {
		return err
	}
	url, err := w.net.open(dir)
	if err != nil {
		return err
	}
	w.remote = filepath.Join(dir, "state.git")
	if out, err := w.run("reprise", "state", "init", "--remote", url); err != nil {
		return fmt.Errorf("state init: %w\n%s", err, out)
	}
	for _, name := range []string{"tidy", "docs"} {
		a := w.actor(name, func(ctx context.Context, a *actor) error {
			mark := a.mark()
			done := func(args ...string) {
				if a.call(ctx, nil, with(args...)...).done() {
					a.keep(keptState, mark, false)
				}
			}
			switch n := a.rand.IntN(100); {
			case n < 35:
				done("log", "add", "went through "+mark)
			case n < 50:
				done("learn", "The gate "+mark+" shuts at night and opens at dawn")
			case n < 60:
				done("decide", "Keep the gate "+mark, "--private")
			case n < 68:
				done("note", mark, "the gate "+mark+" squeaks") // a note is replaced as a whole
			case n < 72:
				a.call(ctx, nil, with("checkpoint", mark)...)
			case n < 80:
				a.call(ctx, nil, with("log", "--limit", "5")...)
			case n < 83:
				a.call(ctx, nil, with("state", "show")...)
			default:
				a.call(ctx, nil, with("state", oneOf(a, "sync", "push", "pull"))...)
			}
			return nil
		})
		a.env = w.place(name)
	}
	return nil
}
