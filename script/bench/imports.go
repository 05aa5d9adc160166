package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// importBench is "bench import": a home directory with transcripts of Claude
// Code and Codex, half of each, taken in by the built program; then again, where
// nothing is new, and again without its cursors, where the log has to tell.
func importBench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	mb := flags.Int("mb", 100, "megabytes of transcripts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := newRig(dir, 1)
	if err != nil {
		return err
	}
	w := &transcripts{home: filepath.Join(dir, "home"), r: rand.New(rand.NewPCG(1, 2))}
	total, err := w.write(int64(*mb) << 20)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs, %.0f MB of transcripts in %d files, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), float64(total)/1e6, w.files, load())
	fmt.Fprintln(out, "| what | took | rate | processor time | RSS |\n|---|---|---|---|---|")
	env := append(r.env, "HOME="+w.home, "REPRISE_HOME="+filepath.Join(dir, "data"))
	for _, step := range []string{"import", "import again: nothing is new", "import without cursors: the log tells"} {
		if strings.Contains(step, "without") {
			if err := os.RemoveAll(filepath.Join(dir, "data", "state", "import")); err != nil {
				return err
			}
		}
		cmd := exec.Command(r.reprise, "import", "transcripts", "--json")
		cmd.Env, cmd.Stderr = env, os.Stderr
		began := time.Now()
		answer, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		took := time.Since(began)
		var report struct {
			Clients []struct{ Added int }
		}
		if err := json.Unmarshal(answer, &report); err != nil {
			return err
		}
		added := 0
		for _, c := range report.Clients {
			added += c.Added
		}
		rate := fmt.Sprintf("%.0f MB/s, %d events", float64(total)/1e6/took.Seconds(), added)
		if strings.Contains(step, "nothing") {
			rate = ""
		}
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Fprintf(out, "| %s | %.2f s | %s | %.2f s | %s |\n", step, took.Seconds(), rate, cpu.Seconds(), childRSS(cmd.ProcessState))
	}
	return nil
}

// transcripts writes sessions like those that people have: mostly tool output.
type transcripts struct {
	home  string
	r     *rand.Rand
	files int
}

func (t *transcripts) write(size int64) (total int64, err error) {
	for total < size {
		t.files++
		var data []byte
		var file string
		if t.files%2 == 0 {
			file, data = t.claude()
		} else {
			file, data = t.codex()
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return total, err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return total, err
		}
		total += int64(len(data))
	}
	return total, nil
}

func (t *transcripts) text(bytes int) string {
	words := strings.Fields("func return error err nil package import string internal/server/handler.go:42 expected got test FAIL ok the of a and is to in was not found build main branch commit fix parse config value := if != { } ( ) // 127.0.0.1 0x7f3a go.mod v1.24.3 node_modules index.ts undefined")
	var b strings.Builder
	for b.Len() < bytes {
		b.WriteString(words[t.r.IntN(len(words))])
		if t.r.IntN(9) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func jsonLine(b *strings.Builder, v map[string]any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are made here
	}
	b.Write(data)
	b.WriteByte('\n')
}

const sessionTurns = 40

func (t *transcripts) when(i int) string {
	return time.Date(2026, time.Month(1+t.files%10), 1+t.files%27, 9, 0, i, t.files*1000, time.UTC).Format(time.RFC3339Nano)
}

func (t *transcripts) claude() (string, []byte) {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", t.files)
	var b strings.Builder
	n := 0
	add := func(kind string, kv map[string]any) {
		n++
		kv["type"], kv["sessionId"], kv["cwd"], kv["uuid"], kv["timestamp"] = kind, id, "/home/ann/work", fmt.Sprintf("%s-%d", id, n), t.when(n)
		jsonLine(&b, kv)
	}
	content := func(blocks ...map[string]any) map[string]any {
		return map[string]any{"message": map[string]any{"content": blocks}}
	}
	for i := range sessionTurns {
		if i%8 == 0 {
			add("user", map[string]any{"message": map[string]any{"content": t.text(300)}})
		}
		call := fmt.Sprintf("toolu_%d_%d", t.files, i)
		add("assistant", content(map[string]any{"type": "tool_use", "id": call, "name": "Bash", "input": map[string]any{"command": "go test ./" + t.text(20)}}))
		out := t.text(500 + t.r.IntN(8000))
		result := content(map[string]any{"type": "tool_result", "tool_use_id": call, "content": out, "is_error": i%5 == 0})
		result["toolUseResult"] = map[string]any{"stdout": out, "stderr": ""} // the client writes it twice
		add("user", result)
		add("attachment", map[string]any{"attachment": map[string]any{"type": "prompt_snapshot", "systemPrompt": []string{t.text(6000)}}})
		if i%8 == 7 {
			add("assistant", content(map[string]any{"type": "text", "text": t.text(800)}))
		}
	}
	return filepath.Join(t.home, ".claude", "projects", "-home-ann-work", id+".jsonl"), []byte(b.String())
}

func (t *transcripts) codex() (string, []byte) {
	id := fmt.Sprintf("0199aaaa-0000-7000-8000-%012d", t.files)
	var b strings.Builder
	n := 0
	add := func(kind string, payload map[string]any) {
		n++
		jsonLine(&b, map[string]any{"timestamp": t.when(n), "type": kind, "payload": payload})
	}
	add("session_meta", map[string]any{"id": id, "cwd": "/home/ann/work"})
	for i := range sessionTurns {
		if i%8 == 0 {
			add("response_item", map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": t.text(300)}}})
		}
		call := fmt.Sprintf("call_%d_%d", t.files, i)
		add("response_item", map[string]any{"type": "function_call", "name": "exec_command", "call_id": call, "arguments": `{"cmd":"make all"}`})
		out := t.text(500 + t.r.IntN(8000))
		add("event_msg", map[string]any{"type": "item_completed", "item": map[string]any{"type": "CommandExecution", "id": call, "exit_code": i % 5 % 2, "aggregated_output": out}})
		add("response_item", map[string]any{"type": "function_call_output", "call_id": call, "output": "Process exited with code 0\nOutput:\n" + out})
		add("token_usage_record", map[string]any{"usage": map[string]any{"input_tokens": 100}})
		if i%8 == 7 {
			add("response_item", map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": t.text(800)}}})
		}
	}
	return filepath.Join(t.home, ".codex", "sessions", "2026", "01", "01", "rollout-2026-01-01T09-00-00-"+id+".jsonl"), []byte(b.String())
}
