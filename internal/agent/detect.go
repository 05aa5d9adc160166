package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/proc"
)

// Info is what a program said about itself.
type Info struct {
	Kind    string `json:"kind"`              // KindClaude or KindGeneric
	Version string `json:"version,omitempty"` // "" when it did not say
	Path    string `json:"path"`              // the program that was asked

	silent bool // it gave no answer, or none in time
}

var errNoAnswer = errors.New("no answer in time")

const (
	detectTime = 5 * time.Second
	detectMax  = 4 << 10 // bytes of the answer that are looked at
	// claudeMark is how Claude Code ends its one line of version, such as
	// "2.1.332 (Claude Code)".
	claudeMark = "(Claude Code)"
)

// Detect asks a program for its version and says which adapter it needs. It
// is asked with nothing on standard input, in the root of the file system,
// with a small environment and without the API key, and has 5 s. What does
// not answer as Claude Code does, be it by other words, by silence, by an
// error or by sleeping on, is generic. An error means that the program cannot
// be started at all.
//
// A program that knows no --version takes the question for a task: that is
// why the answers are kept by Detector.
func Detect(ctx context.Context, program string, env []string) (Info, error) {
	if _, err := checkProgram(program); err != nil {
		return Info{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, detectTime, errNoAnswer)
	defer cancel()
	info := Info{Kind: KindGeneric, Path: program}
	out, err := proc.Run(ctx, proc.Cmd{Path: program, Args: []string{"--version"}, Env: smallEnv(env), Dir: rootDir(program)}, detectMax)
	if err != nil {
		if errors.Is(err, errNoAnswer) {
			info.silent = true
			return info, nil // it hangs: not a client that knows the question
		}
		return Info{}, fmt.Errorf("ask %s for its version: %w", program, err)
	}
	if out.Exit.Code != 0 || out.Exit.Signal != "" {
		info.silent = true
		return info, nil
	}
	if out.Cut() {
		return info, nil
	}
	line := strings.TrimSpace(string(out.Stdout))
	if v, ok := strings.CutSuffix(line, claudeMark); ok && isVersion(strings.TrimSpace(v)) {
		return Info{Kind: KindClaude, Version: strings.TrimSpace(v), Path: program}, nil
	}
	if isVersion(line) {
		info.Version = line
	}
	return info, nil
}

// isVersion accepts words like 2.1.332 or 3.0.0-beta.1.
func isVersion(s string) bool {
	if s == "" || len(s) > 64 || s[0] < '0' || s[0] > '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '.' && r != '-' && r != '+' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// smallEnv keeps what a program needs to start at all.
func smallEnv(env []string) []string {
	out := []string{"LANG=C.UTF-8", "TERM=dumb", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SystemRoot", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "ComSpec", "TEMP", "TMP"} {
		if v := proc.EnvValue(env, name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

func rootDir(program string) string {
	return filepath.VolumeName(program) + string(filepath.Separator)
}

// checkProgram finds out before anything is started what would go wrong.
func checkProgram(program string) (fs.FileInfo, error) {
	if !filepath.IsAbs(program) {
		return nil, fmt.Errorf("find program %q: it is not an absolute path", program)
	}
	st, err := os.Stat(program)
	if err != nil {
		return nil, fmt.Errorf("find program: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("find program: %s is not a file", program)
	}
	if runtime.GOOS != "windows" && st.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("find program: %s is not executable; try chmod +x", program)
	}
	return st, nil
}

// Detector remembers what Detect found for as long as the program's file
// stays the same, so that a run does not pay for the question and a program
// that takes it for a task is not started twice.
type Detector struct {
	// File keeps the answers from one process to the next; "" keeps none.
	// It is derived: losing it costs one question. It is replaced whole and
	// without a lock, so of two writers the last one's answers stay.
	File string
}

// detected is one line of the detector's file.
type detected struct {
	Info
	Target string `json:"target"` // behind symbolic links
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime"` // ns since 1970
}

type detectedFile struct {
	V        int        `json:"v"`
	Programs []detected `json:"programs"`
}

const maxRemembered = 32

// Detect is the function Detect with memory.
func (d *Detector) Detect(ctx context.Context, program string, env []string) (Info, error) {
	if d == nil || d.File == "" {
		return Detect(ctx, program, env)
	}
	st, err := checkProgram(program)
	if err != nil {
		return Info{}, err
	}
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Info{}, fmt.Errorf("find program: %w", err)
	}
	mem := d.load()
	kept := mem.Programs[:0]
	for _, p := range mem.Programs {
		if p.Path != program {
			kept = append(kept, p)
			continue
		}
		if p.Target == target && p.Size == st.Size() && p.MTime == st.ModTime().UnixNano() && (p.Kind == KindClaude || p.Kind == KindGeneric) {
			return p.Info, nil
		}
	}
	info, err := Detect(ctx, program, env)
	if err != nil {
		return info, err
	}
	if info.silent && !isScript(program) {
		// A real client can be late or fail once, on a loaded machine or
		// while it is being installed, and that must not stick. A script that
		// slept through the question will do it again, and 5 s for each run
		// is a high price.
		return info, nil
	}
	mem.Programs = append(kept, detected{Info: info, Target: target, Size: st.Size(), MTime: st.ModTime().UnixNano()})
	if n := len(mem.Programs) - maxRemembered; n > 0 {
		mem.Programs = mem.Programs[n:]
	}
	mem.V = 1
	if data, err := json.Marshal(mem); err == nil && durable.MkdirAll(filepath.Dir(d.File), 0o700) == nil {
		// What cannot be remembered is asked again; the answer stands.
		_ = durable.WriteFile(d.File, append(data, '\n'), 0o600)
	}
	return info, nil
}

// isScript reports whether a file is run by an interpreter other than node,
// which is what clients from npm come as.
func isScript(path string) bool {
	f, err := durable.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 128)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	return strings.HasPrefix(line, "#!") && !strings.Contains(line, "node")
}

func (d *Detector) load() detectedFile {
	var f detectedFile
	data, err := durable.Read(d.File)
	if err != nil || json.Unmarshal(data, &f) != nil || f.V != 1 {
		return detectedFile{}
	}
	return f
}
