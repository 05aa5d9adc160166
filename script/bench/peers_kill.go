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

// durability tells each server one thing after the other and kills it at a moment of chance
// (SIGKILL), so often; each new start is asked for all that was confirmed. A store that
// cannot be read any more is counted and begun anew.
func (p *peers) durability(rounds int) ([][]string, error) {
	docs, _, err := ownSet(1)
	if err != nil {
		return nil, err
	}
	block := func(key string) string { return "reference-" + key }
	writers := []writer{
		{"reprise (`create_memory_block`, 0 there before)", "reprise", nil,
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
		{fmt.Sprintf("server-memory (`create_entities`, %d there before)", len(docs)), "server-memory",
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
	var rows [][]string
	for _, w := range writers {
		row, err := p.killed(w, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		rows = append(rows, row)
	}
	row, err := p.killedWorker(rounds)
	if err != nil {
		return nil, err
	}
	return append(rows, row), nil
}

func (p *peers) killed(w writer, rounds int) ([]string, error) {
	chance := rand.New(rand.NewPCG(1, 2))
	var home string
	var env, confirmed []string
	all, gone, unreadable := 0, 0, 0
	for round := range rounds {
		if home == "" {
			var err error
			if home, env, err = p.home(w.name); err != nil {
				return nil, err
			}
			if w.before != nil {
				if err := w.before(home); err != nil {
					return nil, err
				}
			}
		}
		s, err := p.mcp(w.name, home, env)
		if err != nil {
			return nil, err
		}
		if err := s.handshake(); err != nil {
			return nil, err
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
			all++
			if timer == nil {
				timer = time.AfterFunc(time.Duration(50+chance.IntN(450))*time.Millisecond, func() { _ = s.cmd.Process.Kill() }) // it may have ended
			}
		}
		_ = s.end() // it was killed
		if timer == nil {
			return nil, fmt.Errorf("nothing was confirmed in round %d", round)
		}
		lost, err := p.lost(w, home, env, confirmed)
		if err != nil {
			unreadable, gone = unreadable+1, gone+len(confirmed)
			home, confirmed = "", nil
			continue
		}
		gone += len(lost)
		confirmed = without(confirmed, lost)
	}
	return []string{w.shown, fmt.Sprint(all), fmt.Sprint(gone), fmt.Sprintf("%d of %d", unreadable, rounds)}, nil
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
func (p *peers) killedWorker(rounds int) ([]string, error) {
	mem, env, stop, err := p.claudeMem()
	if err != nil {
		return nil, err
	}
	defer stop()
	home := strings.TrimPrefix(env[0], "HOME=")
	confirmed, kills := 0, 0
	for i := range rounds {
		in := fmt.Appendf(nil, `{"session_id":"00000000-0000-4000-8000-%012d","transcript_path":"/none.jsonl","cwd":%q,"prompt":"remember marker%dx","hook_event_name":"UserPromptSubmit"}`, i, home, i)
		if _, _, _, err := p.hook(home, env, in, append(mem, "session-init")...); err == nil {
			confirmed++
		}
		kills += killWorkers(p.pkgs)
	}
	script := filepath.Join(p.r.dir, "count.js")
	if err := os.WriteFile(script, []byte(`const {Database}=require('bun:sqlite');const db=new Database(process.argv[2]);console.log(db.query("select count(distinct prompt_text) c from user_prompts where prompt_text like 'remember marker%x'").get().c)`), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(p.r.dir, "bin", "bun"), script, filepath.Join(home, ".claude-mem", "claude-mem.db"))
	cmd.Dir, cmd.Env = home, env
	out, err := cmd.Output()
	there := 0
	unreadable := "0"
	if err != nil {
		unreadable = "1"
	} else if _, err := fmt.Sscan(string(out), &there); err != nil {
		return nil, err
	}
	return []string{"claude-mem (prompts whose hook ended with 0, its worker killed after each)", fmt.Sprint(confirmed), fmt.Sprint(confirmed - there), fmt.Sprintf("%s of %d", unreadable, kills)}, nil
}
