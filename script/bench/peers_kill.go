package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// writer is a server that is told things, killed and started again.
type writer struct {
	shown, name string
	before      func(home string) error                 // what its store holds already
	write       func(s *peer, key string) error         // returns when that is confirmed
	has         func(s *peer, key string) (bool, error) // an error where its store cannot be read
}

// keptLook is how many of the confirmed writes are looked for once more after the last kill.
const keptLook = 200

// durability tells each one thing after the other and kills it at a moment of chance
// (SIGKILL), so often; each new start is asked for what was confirmed since the kill before,
// and the last one for [keptLook] of all. A store that cannot be read any more is counted and
// begun anew.
func (p *peers) durability() ([]figure, error) {
	docs, _, err := ownSet(1)
	if err != nil {
		return nil, err
	}
	for _, w := range p.writers(docs) {
		k, err := p.killed(w, peerKills)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		p.addKilled(w.name, w.shown, k)
	}
	k, err := p.killedWorker(peerKills)
	if err != nil {
		return nil, err
	}
	p.addKilled("claude-mem", p.version("claude-mem")+" (prompts whose hook ended with 0, its worker killed after each)", k)
	for _, t := range p.trackers() {
		k, err := p.killedTracker(t, peerKills)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.key, err)
		}
		p.addKilled(t.key+"-items", t.shown+", a command an item", k)
	}
	return p.all, nil
}

// kills is what killing a program came to.
type kills struct{ confirmed, gone, unreadable, times int }

func (p *peers) addKilled(key, shown string, k kills) {
	// How many are confirmed before a kill is a matter of the clock and of chance.
	p.add("kill", key, shown, "confirmed", "confirmed writes", float64(k.confirmed), 2, "")
	p.add("kill", key, shown, "gone", "of them gone, %", 100*float64(k.gone)/float64(max(1, k.confirmed)), noiseCPU, fmt.Sprint(k.gone))
	p.add("kill", key, shown, "unreadable", "kills after which the store could not be read, %", 100*float64(k.unreadable)/float64(max(1, k.times)), noiseCPU, fmt.Sprintf("%d of %d", k.unreadable, k.times))
}

// writers are the servers that are told things.
func (p *peers) writers(docs []peerDoc) []writer {
	block := func(key string) string { return "reference-" + key }
	all := []writer{
		{"reprise (`create_memory_block`)", "reprise", nil,
			func(s *peer, key string) error {
				_, err := s.tool("create_memory_block", map[string]any{"name": block(key), "content": "It is " + key + "."})
				return err
			},
			func(s *peer, key string) (bool, error) {
				out, err := s.tool("memory_read", map[string]any{"name": block(key)})
				if err != nil {
					return false, nil // it says that there is no such block
				}
				return strings.Contains(fmt.Sprint(out), "It is "+key+"."), nil
			}},
		{fmt.Sprintf("%s (`create_entities`, %d there before)", p.version("server-memory"), len(docs)), "server-memory",
			func(home string) error {
				var b strings.Builder
				for _, d := range docs {
					fmt.Fprintf(&b, "{\"type\":\"entity\",\"name\":%q,\"entityType\":\"note\",\"observations\":[%q]}\n", d.ID, "some words that were known before this began, about "+d.ID)
				}
				return os.WriteFile(filepath.Join(home, "memory.jsonl"), []byte(b.String()), 0o600)
			},
			func(s *peer, key string) error {
				_, err := s.tool("create_entities", map[string]any{"entities": entities([]peerDoc{{ID: key, Text: "It is " + key}})})
				return err
			},
			func(s *peer, key string) (bool, error) {
				out, err := s.tool("open_nodes", map[string]any{"names": []string{key}})
				list, _ := out["entities"].([]any)
				return len(list) == 1, err
			}},
	}
	if p.of["engram"] == "" {
		return all
	}
	return append(all, writer{p.version("engram") + " (`mem_save`)", "engram", nil,
		func(s *peer, key string) error {
			_, err := s.text("mem_save", map[string]any{"title": key, "content": "It is " + key, "project": "own"})
			return err
		},
		func(s *peer, key string) (bool, error) {
			out, err := s.text("mem_search", map[string]any{"query": key})
			return strings.Contains(out, "It is "+key+"\n"), err
		}})
}

func (p *peers) killed(w writer, rounds int) (k kills, err error) {
	chance := rand.New(rand.NewPCG(1, 2))
	var home string
	var env, confirmed []string
	asked := 0 // of the confirmed ones, for so many
	k.times = rounds
	for round := range rounds {
		if home == "" {
			if home, env, err = p.home(w.name); err != nil {
				return k, err
			}
			if w.before != nil {
				if err := w.before(home); err != nil {
					return k, err
				}
			}
		}
		s, err := p.mcp(w.name, home, env)
		if err != nil {
			return k, err
		}
		if err := s.handshake(); err != nil {
			return k, err
		}
		// One that was started again may have more to do at its first call: the time runs
		// from there.
		var timer *time.Timer
		for i := 0; ; i++ {
			key := fmt.Sprintf("r%dn%d", round, i)
			if err := w.write(s, key); err != nil {
				break // killed
			}
			confirmed = append(confirmed, key)
			k.confirmed++
			if timer == nil {
				timer = time.AfterFunc(time.Duration(50+chance.IntN(450))*time.Millisecond, func() { _ = s.cmd.Process.Kill() }) // it may have ended
			}
		}
		_ = s.end() // it was killed
		if timer == nil {
			return k, fmt.Errorf("nothing was confirmed in round %d", round)
		}
		// To ask for all of it each time would take longer than all else.
		lost, err := p.lost(w, home, env, confirmed[asked:])
		if err != nil {
			k.unreadable, k.gone = k.unreadable+1, k.gone+len(confirmed)
			home, confirmed, asked = "", nil, 0
			continue
		}
		k.gone += len(lost)
		confirmed = append(confirmed[:asked:asked], without(confirmed[asked:], lost)...)
		asked = len(confirmed)
	}
	if asked == 0 {
		return k, nil
	}
	lost, err := p.lost(w, home, env, confirmed[max(0, asked-keptLook):])
	k.gone += len(lost)
	return k, err
}

// lost are those of the confirmed things that a new start does not have.
func (p *peers) lost(w writer, home string, env, confirmed []string) (out []string, err error) {
	s, err := p.mcp(w.name, home, env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.end() }() // what it knew was heard
	if err := s.handshake(); err != nil {
		return nil, err
	}
	for _, key := range confirmed {
		has, err := w.has(s, key)
		if err != nil {
			return nil, err
		}
		if !has {
			out = append(out, key)
		}
	}
	return out, nil
}

func without(list, gone []string) []string {
	is := map[string]bool{}
	for _, g := range gone {
		is[g] = true
	}
	var out []string
	for _, x := range list {
		if !is[x] {
			out = append(out, x)
		}
	}
	return out
}

// killedWorker is the same for claude-mem: prompts that its hook has confirmed, with its
// worker killed after each; the next hook starts it again. What it would make of them with
// a model is not looked at.
func (p *peers) killedWorker(rounds int) (k kills, err error) {
	mem, env, stop, err := p.claudeMem()
	if err != nil {
		return k, err
	}
	defer stop()
	home := strings.TrimPrefix(env[0], "HOME=")
	for i := range rounds {
		in := fmt.Appendf(nil, `{"session_id":"00000000-0000-4000-8000-%012d","transcript_path":"/none.jsonl","cwd":%q,"prompt":"remember marker%dx","hook_event_name":"UserPromptSubmit"}`, i, home, i)
		if _, _, _, err := p.hook(home, env, in, append(mem, "session-init")...); err == nil {
			k.confirmed++
		}
		k.times += killWorkers(p.pkgs)
	}
	script := filepath.Join(p.r.dir, "count.js")
	if err := os.WriteFile(script, []byte(`const {Database}=require('bun:sqlite');const db=new Database(process.argv[2]);console.log(db.query("select count(distinct prompt_text) c from user_prompts where prompt_text like 'remember marker%x'").get().c)`), 0o600); err != nil {
		return k, err
	}
	cmd := exec.Command(filepath.Join(p.r.dir, "bin", "bun"), script, filepath.Join(home, ".claude-mem", "claude-mem.db"))
	cmd.Dir, cmd.Env = home, env
	out, err := cmd.Output()
	there := 0
	if err != nil {
		k.unreadable = 1
	} else if _, err := fmt.Sscan(string(out), &there); err != nil {
		return k, err
	}
	k.gone = k.confirmed - there
	return k, nil
}
