package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/internal/agent/dialect"
	"reprise/internal/durable"
	"reprise/internal/event"
	"reprise/internal/proc/handover"
)

// Proof says how one hook was found to be.
type Proof string

// The proofs, from bad to good.
const (
	Missing Proof = "missing" // it is not in the client's settings
	Failed  Proof = "failed"  // its program does not do what a hook has to
	Silent  Proof = "silent"  // its program works, and the client did not run it when it should have
	Answers Proof = "answers" // its program works; no session without a person brings the event about
	Proved  Proof = "proved"  // the client ran it, and the log has its event
)

// HookProof is one hook and how it was found to be.
type HookProof struct {
	Event string `json:"event"`
	Proof Proof  `json:"proof"`
	Why   string `json:"why,omitempty"`
	late  bool   // it may be well when it is tried alone
}

// Prober runs hooks' programs as a client would, each on a payload of its own,
// on files that are made for it.
type Prober struct {
	// Dir holds those files, and is empty: home, work and data are made there.
	Dir string
	// Env are variables that a program needs to start, as NAME=value, but for
	// HOME and REPRISE_HOME.
	Env []string
	// Patience is how long one program may take; 0 is what its event allows.
	Patience time.Duration
}

const (
	// probeMost is how long a program is waited for at most: a gate at a turn's
	// end has nothing to run here.
	probeMost = 8 * time.Second
	// probeSlow is what a program may take beyond its own deadline.
	probeSlow = 2 * time.Second
	// several programs run at once.
	several = 2
)

// Probe looks at each hook that a client should have: whether it is set up, and
// whether its program starts, ends in time, answers in the client's dialect and
// records the event. Those that are well are [Answers].
func (p Prober) Probe(ctx context.Context, h InstalledHooks) ([]HookProof, error) {
	for _, d := range []string{"home", "work", "data"} {
		if err := durable.MkdirAll(filepath.Join(p.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("probe hooks: %w", err)
		}
	}
	events := HookEvents(h.Client)
	out := make([]HookProof, len(events))
	turns := make(chan struct{}, several)
	var all sync.WaitGroup
	for i, name := range events {
		at := slices.IndexFunc(h.Hooks, func(x Hook) bool { return x.Event == name })
		if at < 0 {
			out[i] = HookProof{Event: name, Proof: Missing, Why: "it is not in " + h.File}
			continue
		}
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			out[i] = p.prove(ctx, h.Client, h.Hooks[at])
		})
	}
	all.Wait()
	if err := p.unrecorded(out); err != nil {
		return nil, err
	}
	// A machine that has much to do makes programs late, and a hook that is late
	// leaves its event for later. What is wrong is wrong alone and again.
	again := false
	for i := range out {
		if out[i].late {
			again = true
			at := slices.IndexFunc(h.Hooks, func(x Hook) bool { return x.Event == out[i].Event })
			out[i] = p.prove(ctx, h.Client, h.Hooks[at])
		}
	}
	if !again {
		return out, nil
	}
	return out, p.unrecorded(out)
}

// prove runs the program of one hook.
func (p Prober) prove(ctx context.Context, client string, h Hook) HookProof {
	out := HookProof{Event: h.Event, Proof: Answers}
	if err := p.one(ctx, client, h); err != nil {
		out.Proof, out.Why, out.late = Failed, err.Error(), errors.Is(err, handover.ErrTime)
	}
	return out
}

// unrecorded marks those whose programs answered and whose events are not in the
// log.
func (p Prober) unrecorded(proofs []HookProof) error {
	recorded := map[string]bool{}
	for e, err := range event.Read(filepath.Join(p.Dir, "data", "events")) {
		if err != nil {
			return fmt.Errorf("probe hooks: %w", err)
		}
		recorded[e.Session] = true
	}
	for i := range proofs {
		if proofs[i].Proof == Answers && !recorded[probeSession(proofs[i].Event)] {
			proofs[i].Proof, proofs[i].Why, proofs[i].late = Failed, "its program ends well and records nothing; reprise's log may say why", true
		}
	}
	return nil
}

func probeSession(event string) string { return "reprise-doctor-" + event }

// one runs the program of one hook.
func (p Prober) one(ctx context.Context, client string, h Hook) error {
	program, args := hookWords(h.Command)
	if len(args) != 2 || args[0] != hookWord(client) || args[1] != h.Event {
		return fmt.Errorf("it runs %q, not the hook program for %s", strings.Join(append([]string{filepath.Base(program)}, args...), " "), h.Event)
	}
	info, err := os.Stat(program)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return fmt.Errorf("its program %s is not there", program)
	case info.Mode().Perm()&0o111 == 0 && filepath.Ext(program) != ".exe":
		return fmt.Errorf("its program %s is not executable", program)
	}
	patience := p.Patience
	if patience == 0 {
		patience = min(probeMost, time.Duration(dialect.DeadlineMS(args[0], h.Event))*time.Millisecond+probeSlow)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("its program was not run: %w", err)
	}
	env := append(slices.Clone(p.Env), "HOME="+filepath.Join(p.Dir, "home"), "USERPROFILE="+filepath.Join(p.Dir, "home"), "REPRISE_HOME="+filepath.Join(p.Dir, "data"))
	out, code, err := handover.Do(handover.Call{
		Path: program, Dir: filepath.Join(p.Dir, "work"), Args: args, Env: env, Input: probePayload(client, h.Event, filepath.Join(p.Dir, "work")),
		MaxOutput: 1 << 20, Timeout: patience,
	})
	switch {
	case errors.Is(err, handover.ErrTime):
		return fmt.Errorf("its program does not end within %s (%w)", patience.Round(100*time.Millisecond), err)
	case err != nil:
		return fmt.Errorf("its program cannot be run: %w", err)
	case code != 0:
		return fmt.Errorf("its program ends with exit code %d", code)
	case !dialect.IsReply(out):
		return fmt.Errorf("its program prints %d bytes that are not one JSON object", len(out))
	}
	return nil
}

// hookWords are the program of a hook's command and what follows it.
func hookWords(command string) (program string, args []string) {
	rest := strings.TrimSpace(command)
	for rest != "" {
		var word string
		word, rest = firstWord(rest)
		if program == "" && isVariable(word) {
			continue
		}
		if program == "" {
			program = word
		} else {
			args = append(args, word)
		}
	}
	return program, args
}

// probePayload is a payload of the event as the client writes it, as far as the
// hook program looks.
func probePayload(client, event, dir string) []byte {
	q := strconv.Quote
	session := q(probeSession(event))
	if client == "copilot" {
		return []byte(`{"sessionId":` + session + `,"timestamp":0,"cwd":` + q(dir) + `,"source":"new","reason":"complete","trigger":"auto","prompt":"probe",` +
			`"toolName":"bash","toolCallId":"probe","toolArgs":{"command":"true"},"toolResult":{"resultType":"success","textResultForLlm":"ok"},` +
			`"error":{"message":"probe"},"agentId":"probe","agentName":"probe","response":"probe"}`)
	}
	tool := "Bash"
	if client == "gemini" {
		tool = "run_shell_command"
	}
	response := `{"stdout":"ok","stderr":""}`
	switch client {
	case "gemini":
		response = `{"llmContent":"Output: ok","returnDisplay":"ok"}`
	case "codex":
		response = `"ok"`
	}
	return []byte(`{"session_id":` + session + `,"transcript_path":"","cwd":` + q(dir) + `,"hook_event_name":` + q(event) + `,"source":"startup","reason":"other",` +
		`"trigger":"manual","prompt":"probe","tool_name":` + q(tool) + `,"tool_use_id":"probe","tool_input":{"command":"true"},"tool_response":` + response + `,` +
		`"error":"Exit code 1\nprobe","agent_id":"probe","agent_type":"probe","last_assistant_message":"probe","prompt_response":"probe"}`)
}

// cannot is why no session without a person brings an event about, by client
// and event: of what is not here, a live session is a proof.
func cannot(client, event string) string {
	switch client + " " + event {
	case "claude-code PermissionDenied":
		return "only its auto mode denies by itself"
	case "claude-code StopFailure":
		return "it takes a failing model"
	case "claude-code PreCompact", "claude-code PostCompact", "codex PreCompact", "codex PostCompact", "copilot preCompact":
		return "it takes a conversation that fills the context"
	case "codex PermissionRequest":
		return "nobody is asked in codex exec"
	case "copilot permissionRequest":
		return "nobody is asked where all tools are allowed"
	case "codex SubagentStart", "codex SubagentStop":
		return "the model has to be offered subagents"
	case "copilot subagentStart", "copilot subagentStop":
		return "the model has to start a subagent"
	case "codex Interrupt":
		return "it takes a person who stops the turn"
	case "copilot postToolUseFailure":
		return "a shell command that fails is no failure to it"
	case "copilot errorOccurred":
		return "it takes an error of the client"
	}
	return ""
}

// Seen makes of what a client's live session recorded, by kind of event, the
// proofs of its hooks.
func Seen(client string, proofs []HookProof, recorded func(event string) bool) []HookProof {
	out := slices.Clone(proofs)
	for i := range out {
		if out[i].Proof != Answers {
			continue
		}
		switch why := cannot(client, out[i].Event); {
		case recorded(out[i].Event):
			out[i].Proof = Proved
		case why != "":
			out[i].Why = why
		default:
			out[i].Proof, out[i].Why = Silent, "its program works, and a live session of the client did not run it"
		}
	}
	return out
}

// ProofFindings says of a client's hooks which are proved, which are not and
// why, and which do not work, each by its name.
func ProofFindings(h InstalledHooks, proofs []HookProof) []Finding {
	again := fmt.Sprintf("run `reprise setup %s --scope %s`", h.Client, h.Scope)
	var out []Finding
	var proved, answer []string
	for _, p := range proofs {
		switch p.Proof {
		case Proved:
			proved = append(proved, p.Event)
		case Answers:
			text := p.Event
			if p.Why != "" {
				text += " (" + p.Why + ")"
			}
			answer = append(answer, text)
		case Missing:
			out = append(out, one(Fail, again, "%s %s: %s", h.Client, p.Event, p.Why)...)
		case Silent:
			out = append(out, one(Fail, again+"; if it stays, this version of the client may name the event otherwise: `reprise hooks matrix`", "%s %s: %s", h.Client, p.Event, p.Why)...)
		case Failed:
			out = append(out, one(Fail, again+", and look at the log (`reprise paths`)", "%s %s: %s", h.Client, p.Event, p.Why)...)
		}
	}
	if len(proved) > 0 {
		out = append(out, one(OK, "", "%s: %d hooks ran in a live session: %s", h.Client, len(proved), strings.Join(proved, ", "))...)
	}
	if len(answer) > 0 {
		out = append(out, one(OK, "", "%s: %d hooks work when they are run, and were not run by the client: %s", h.Client, len(answer), strings.Join(answer, ", "))...)
	}
	if len(out) > 0 {
		out[0].Hooks = proofs
	}
	return out
}
