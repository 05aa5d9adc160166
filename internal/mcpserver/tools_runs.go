package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"reprise/internal/run"
)

const (
	// maxWait bounds every wait: some clients cut a call at 60 s, whatever is
	// set and whatever progress they are shown.
	maxWait = 50 * time.Second

	maxTimeoutSeconds = 24 * 60 * 60
)

var modelPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]*$`) })

func spawnParams() []param {
	return []param{
		{name: "task", kind: text, required: true, bytes: 512 << 10, lines: true,
			about:  "What the agent should do, with everything it needs to know: it sees nothing of this conversation.",
			remedy: "describe the task in plain text; put long material into a file and name its path"},
		{name: "system_prompt", kind: text, bytes: 128 << 10, lines: true, blank: true,
			about:  "Instructions for this task, added to the standing ones (for example the form of the answer).",
			remedy: "give plain text, or leave it out"},
		{name: "model", kind: text, bytes: 200,
			about: "Model as the agent program spells it, for example sonnet or opus. Default: the program's own.",
			check: func(s string) error {
				if !modelPattern().MatchString(s) {
					return errors.New("is not the form of a model's name")
				}
				return nil
			},
			remedy: "use letters, digits and . _ : / @ - as in \"sonnet\", or leave it out"},
		{name: "working_directory", kind: text, bytes: 4096, check: checkPath,
			about:  "Absolute path of the directory the agent works in. Default: the user's home directory.",
			remedy: "give the absolute path of an existing directory"},
		{name: "additional_dirs", kind: list, bytes: 4096, entries: 32, check: checkPath,
			about:  "Absolute paths of further directories the agent may use.",
			remedy: "give a list of absolute paths of existing directories; for the memory use allow_memory_read"},
		{name: "timeout_seconds", kind: integer, min: 1, max: maxTimeoutSeconds,
			about:  "The run is stopped after this time. Default 300 unless configured.",
			remedy: "give whole seconds, or leave it out for the default"},
		{name: "max_output_tokens", kind: integer, min: 1, max: maxPayloadTokens,
			about:  "The result is cut at this length; the whole stays in a file. Default 4000 unless configured.",
			remedy: "give a smaller number and read the rest from the file that the result names"},
		{name: "allow_memory_read", kind: boolean,
			about:  "Let the agent read the memory directory. It can never write it. Default false.",
			remedy: "give true or false, not a word in quotes"},
		{name: "agent", kind: text, bytes: 40, enum: []string{"claude", "codex", "gemini", "copilot", "script"},
			about:  "Agent program. Default: the configured one. script is the built-in one for trying things out.",
			remedy: "leave it out for the configured one"},
		{name: "resume", kind: text, bytes: 100,
			about:  "run_id of a run that has ended or was stopped: the task is then said in its session, which knows all that was done there. Agent, directory and limits are those of that run.",
			remedy: "give the run_id of a run that has ended, as list_agents shows them, or leave it out to begin anew"},
		{name: "idempotency_key", kind: text, bytes: 200,
			about:  "Any string of your own. Repeating a call with the same key returns the first call's job and starts nothing: use it when you may have to retry.",
			remedy: "give a short string such as a name and a number"},
	}
}

// checkPath refuses what could only be a mistake or a trick. Whether the
// directory exists is checked when the run starts.
func checkPath(s string) error {
	if !filepath.IsAbs(s) {
		return fmt.Errorf("is not an absolute path (%q)", shorten(s, 100))
	}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == filepath.Separator }) {
		if part == ".." {
			return errors.New(`has ".." in it`)
		}
	}
	return nil
}

// agentState is what spawn_agent and check_agent answer.
type agentState struct {
	Status  string  `json:"status"`
	JobID   *string `json:"job_id"`
	Result  *string `json:"result"`
	Error   *string `json:"error"`
	Started string  `json:"started_at"`
	Elapsed float64 `json:"elapsed_seconds"`

	RunID     string        `json:"run_id"`
	Record    string        `json:"record,omitempty"`      // path of the run's record
	Output    string        `json:"output_path,omitempty"` // of the whole output
	Truncated bool          `json:"truncated,omitempty"`
	Progress  *agentDoing   `json:"progress,omitempty"`
	Next      string        `json:"next,omitempty"`
	Denied    []deniedTools `json:"denied,omitempty"`
}

type agentDoing struct {
	Messages  int    `json:"messages"`
	ToolCalls int    `json:"tool_calls"`
	Retrying  string `json:"retrying,omitempty"`
}

type deniedTools struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

func (s *Server) spawnAgent(c *call) (any, error) {
	began := s.deps.Now()
	window := time.Duration(s.deps.Settings.SubAgent.SyncWindowSeconds) * time.Second
	ctx, cancel := context.WithTimeout(c.ctx, min(window, maxWait))
	defer cancel()

	req, err := s.spawnRequest(c.args, principalOf(c.req))
	if err != nil {
		return nil, err
	}
	// The start itself must not be cut in half by the window or by the client.
	j, rec, err := s.spawn(context.WithoutCancel(c.ctx), req)
	if err != nil {
		return nil, spawnError(err)
	}
	s.log.LogAttrs(c.ctx, slog.LevelInfo, LogLaunched, slog.String("job_id", j.id),
		slog.String("model", rec.Model), slog.String("working_dir", rec.WorkDir))

	c.wait(ctx, j.settled, func() string { return s.doing(j.id) })
	rec, err = s.record(c.ctx, j)
	if err != nil {
		return nil, err
	}
	state, err := s.state(rec, j.tokens)
	if err != nil {
		return nil, err
	}
	state.Elapsed = seconds(s.deps.Now().Sub(began))
	if rec.Status != run.Completed {
		// A run that ended badly keeps its job: its result is never only in a
		// reply that may get lost.
		state.JobID = &j.id
	}
	switch {
	case !rec.Status.Settled():
		state.Next = fmt.Sprintf("call check_agent with job_id %s and wait_seconds up to %d", j.id, int(maxWait.Seconds()))
		s.log.LogAttrs(c.ctx, slog.LevelInfo, LogHandoff, slog.String("job_id", j.id), slog.Float64("elapsed", state.Elapsed))
	case rec.Status == run.Completed && c.ctx.Err() == nil:
		s.jobs.collect(j.id)
		fallthrough
	default:
		s.log.LogAttrs(c.ctx, slog.LevelInfo, LogSync, slog.String("job_id", j.id), slog.String("status", state.Status),
			slog.Float64("elapsed", state.Elapsed), slog.Int("output_size", size(state.Result)))
	}
	return state, nil
}

func size(s *string) int {
	if s == nil {
		return 0
	}
	return len(*s)
}

func (s *Server) spawnRequest(a args, principal string) (run.Request, error) {
	set := s.deps.Settings.SubAgent
	req := run.Request{
		Task:            a.text("task"),
		SystemPrompt:    a.text("system_prompt"),
		Model:           a.text("model"),
		WorkDir:         a.text("working_directory"),
		AddDirs:         a.list("additional_dirs"),
		Timeout:         time.Duration(a.number("timeout_seconds", set.DefaultTimeoutSeconds)) * time.Second,
		MaxOutputTokens: min(a.number("max_output_tokens", set.DefaultMaxOutputTokens), maxPayloadTokens),
		AllowMemoryRead: a.flag("allow_memory_read"),
		Client:          a.text("agent"),
		IdempotencyKey:  a.text("idempotency_key"),
		Origin:          "mcp",
		Principal:       principal,
	}
	if id := a.text("resume"); id != "" {
		return s.resumeRequest(req, a, id)
	}
	if req.WorkDir == "" {
		req.WorkDir = s.deps.WorkDir
	}
	if err := existingDir("working_directory", req.WorkDir); err != nil {
		return req, err
	}
	for _, dir := range req.AddDirs {
		if err := existingDir("additional_dirs", dir); err != nil {
			return req, err
		}
		if inside(dir, s.deps.Memory.Dir()) {
			return req, fmt.Errorf("spawn_agent: parameter \"additional_dirs\" names the memory directory (%s), which no run may write: leave it out and set allow_memory_read to let the agent read it", dir)
		}
	}
	return req, nil
}

// resumeRequest is one to go on with a run. Who comes from elsewhere goes on with their own
// only: what another's session has read is not theirs to ask for.
func (s *Server) resumeRequest(req run.Request, a args, id string) (run.Request, error) {
	rec, err := s.deps.Runs.Get(id)
	if errors.Is(err, run.ErrNotFound) || err == nil && req.Principal != "" && rec.Principal != req.Principal {
		return req, fmt.Errorf("spawn_agent: parameter \"resume\": there is no run %s: list_agents shows them", shorten(id, 60))
	}
	if err != nil {
		return req, err
	}
	req.Resume, req.Timeout = id, time.Duration(a.number("timeout_seconds", 0))*time.Second
	req.MaxOutputTokens = min(a.number("max_output_tokens", rec.MaxOutputTokens), maxPayloadTokens)
	for _, dir := range req.AddDirs {
		if err := existingDir("additional_dirs", dir); err != nil {
			return req, err
		}
	}
	return req, nil
}

func existingDir(name, dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("spawn_agent: parameter %q: %w: give the absolute path of an existing directory", name, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("spawn_agent: parameter %q: %s is not a directory: give the absolute path of an existing directory", name, dir)
	}
	return nil
}

// inside reports whether dir is parent or below it, by identity and not by
// spelling: links and upper and lower case make no difference.
func inside(dir, parent string) bool {
	want, err := os.Stat(parent)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		if have, err := os.Stat(real); err == nil && os.SameFile(have, want) {
			return true
		}
		up := filepath.Dir(real)
		if up == real {
			return false
		}
		real = up
	}
}

func spawnError(err error) error {
	if errors.Is(err, run.ErrKeyReused) {
		return fmt.Errorf("spawn_agent: parameter \"idempotency_key\": %w", err)
	}
	return err
}

// doing says in a line what a run is at, for progress notifications.
func (s *Server) doing(id string) string {
	rec, err := s.deps.Runs.Get(id)
	if err != nil {
		return "waiting for " + id
	}
	line := fmt.Sprintf("%s is %s: %d messages, %d tool calls", id, rec.MCPStatus(), rec.Heartbeat.MessageCount, rec.Heartbeat.ToolCalls)
	if rec.Heartbeat.Retrying != "" {
		line += ", " + shorten(rec.Heartbeat.Retrying, 100)
	}
	return line
}

// state turns a record into an answer; the result only once the run settled.
func (s *Server) state(rec run.Record, maxTokens int) (*agentState, error) {
	out := &agentState{
		Status:  rec.MCPStatus(),
		Started: rec.StartedAt.UTC().Format(time.RFC3339Nano),
		Elapsed: seconds(rec.Elapsed(s.deps.Now())),
		RunID:   rec.ID,
		Record:  rec.Path(),
	}
	if !rec.Status.Settled() {
		out.Progress = &agentDoing{rec.Heartbeat.MessageCount, rec.Heartbeat.ToolCalls, shorten(rec.Heartbeat.Retrying, 200)}
		return out, nil
	}
	if maxTokens <= 0 || maxTokens > maxPayloadTokens {
		maxTokens = maxPayloadTokens
	}
	o, err := s.deps.Runs.Output(rec.ID, maxTokens)
	if err != nil {
		return nil, fmt.Errorf("read output of %s: %w; the run's record is %s", rec.ID, err, rec.Path())
	}
	out.Output, out.Truncated = o.Path, o.Truncated
	// One more bound, in case the output's own marker and limit disagree with
	// what fits into an answer.
	textual, cut := cutText(o.Text, maxPayloadTokens, "the whole is in "+o.Path)
	out.Truncated = out.Truncated || cut
	out.Result = &textual
	if rec.Status != run.Completed {
		reason := rec.StatusReason
		if rec.Result != nil && rec.Result.Reason != "" && !strings.Contains(reason, rec.Result.Reason) {
			reason = strings.TrimPrefix(reason+": "+rec.Result.Reason, ": ")
		}
		if reason == "" {
			reason = "the run ended as " + string(rec.Status) + " and its record gives no reason"
		}
		reason = shorten(reason, 1000)
		out.Error = &reason
	}
	if rec.Result != nil {
		for _, d := range rec.Result.PermissionDenials[:min(5, len(rec.Result.PermissionDenials))] {
			out.Denied = append(out.Denied, deniedTools{shorten(d.Tool, 100), shorten(d.Reason, 200)})
		}
	}
	return out, nil
}

func jobParam(about string) param {
	return param{name: "job_id", kind: text, required: true, bytes: 100, about: about,
		remedy: "give the job_id that spawn_agent returned; list_agents shows them"}
}

func checkParams() []param {
	return []param{
		jobParam("job_id from spawn_agent."),
		{name: "wait_seconds", kind: integer, min: 0, max: int(maxWait.Seconds()),
			about:  "Wait up to this long for the end of the run. Default 0: answer at once.",
			remedy: "wait up to 50 seconds and call again"},
	}
}

func (s *Server) checkAgent(c *call) (any, error) {
	id := c.args.text("job_id")
	j, ok := s.jobs.get(id)
	if !ok {
		return nil, s.unknownJob(id)
	}
	if wait := c.args.number("wait_seconds", 0); wait > 0 && !j.done() {
		ctx, cancel := context.WithTimeout(c.ctx, time.Duration(wait)*time.Second)
		c.wait(ctx, j.settled, func() string { return s.doing(id) })
		cancel()
	}
	rec, err := s.record(c.ctx, j)
	if err != nil {
		return nil, err
	}
	state, err := s.state(rec, j.tokens)
	if err != nil {
		return nil, err
	}
	state.JobID = &id
	if !rec.Status.Settled() {
		s.log.LogAttrs(c.ctx, slog.LevelDebug, LogPoll, slog.String("job_id", id), slog.String("status", state.Status), slog.Float64("elapsed", state.Elapsed))
		return state, nil
	}
	if err := c.ctx.Err(); err != nil {
		return nil, err // nobody reads the answer: keep the job
	}
	if !s.jobs.collect(id) {
		return nil, s.unknownJob(id)
	}
	s.log.LogAttrs(c.ctx, slog.LevelInfo, LogCollected, slog.String("job_id", id), slog.String("status", state.Status),
		slog.Float64("elapsed", state.Elapsed), slog.Int("output_size", size(state.Result)))
	return state, nil
}

// record is a job's record. A run that has ended but whose end could not be
// written is never told as running, which a client would wait for in vain.
func (s *Server) record(ctx context.Context, j *job) (run.Record, error) {
	rec, err := s.deps.Runs.Get(j.id)
	if err == nil && !rec.Status.Settled() && j.done() {
		return s.deps.Runs.Settle(ctx, j.id)
	}
	return rec, err
}

// unknownJob says where the run is that a job was about, if there is one.
func (s *Server) unknownJob(id string) error {
	rec, err := s.deps.Runs.Get(id)
	if err != nil {
		//lint:ignore ST1005 the words that the first design gives this answer, shown to a model
		return fmt.Errorf("Unknown job_id: %s. There is no run of that name; list_agents shows what there is", shorten(id, 60))
	}
	//lint:ignore ST1005 the words that the first design gives this answer, shown to a model
	return fmt.Errorf("Unknown job_id: %s. Its result was collected already, it expired, or it was started elsewhere. The run is %s and its record is whole: %s (output: %s; also as resource run://%s/log)",
		id, rec.MCPStatus(), rec.Path(), rec.Logs.Stdout, id)
}

func cancelParams() []param {
	return []param{
		jobParam("job_id from spawn_agent."),
		{name: "reason", kind: text, bytes: 500, blank: true,
			about:  "Why, for the run's record.",
			remedy: "give one line, or leave it out"},
	}
}

func (s *Server) cancelAgent(c *call) (any, error) {
	id := c.args.text("job_id")
	j, ok := s.jobs.get(id)
	if !ok {
		return nil, s.unknownJob(id)
	}
	reason := c.args.text("reason")
	if reason == "" {
		reason = "cancelled by cancel_agent"
	}
	window := time.Duration(max(1, s.deps.Settings.SubAgent.SyncWindowSeconds)) * time.Second
	ctx, cancel := context.WithTimeout(c.ctx, window)
	defer cancel()
	stop := c.progress(func() string { return "stopping " + id })
	rec, err := s.deps.Runs.Cancel(ctx, id, reason)
	stop()
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if rec.ID == "" {
		if rec, err = s.record(c.ctx, j); err != nil {
			return nil, err
		}
	}
	state, err := s.state(rec, j.tokens)
	if err != nil {
		return nil, err
	}
	state.JobID = &id
	if rec.Status.Settled() && c.ctx.Err() == nil {
		s.jobs.collect(id)
	} else {
		state.Next = "it is being stopped; call check_agent to see its end"
	}
	return state, nil
}

func listParams() []param {
	return []param{
		{name: "status", kind: text, enum: []string{"all", "running", "ended"}, bytes: 20,
			about:  "Which runs. Default all.",
			remedy: "leave it out for all"},
		{name: "limit", kind: integer, min: 1, max: 30, about: "Most runs in the answer. Default 20.", remedy: "leave it out for 20"},
		{name: "cursor", kind: text, bytes: 100, about: "next_cursor of the answer before.",
			remedy: "give next_cursor of the answer before, or leave it out to begin"},
	}
}

type agentList struct {
	Agents  []agentLine `json:"agents"`
	Active  int         `json:"active"` // of this server
	Max     int         `json:"max_active"`
	Cursor  string      `json:"next_cursor,omitempty"`
	Problem string      `json:"problem,omitempty"`
}

type agentLine struct {
	JobID       string  `json:"job_id"`
	Status      string  `json:"status"`
	Collectable bool    `json:"collectable"` // check_agent knows it
	Task        string  `json:"task,omitempty"`
	Client      string  `json:"client"`
	Model       string  `json:"model,omitempty"`
	WorkDir     string  `json:"working_directory"`
	Started     string  `json:"started_at"`
	Elapsed     float64 `json:"elapsed_seconds"`
	Reason      string  `json:"reason,omitempty"`
	Record      string  `json:"record"`
}

func (s *Server) listAgents(c *call) (any, error) {
	records, err := s.deps.Runs.List(c.ctx)
	if err != nil && len(records) == 0 {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	out := agentList{Agents: []agentLine{}, Active: s.jobs.running(), Max: s.jobs.max}
	if err != nil {
		out.Problem = shorten(err.Error(), 500)
	}
	which, limit := c.args.text("status"), c.args.number("limit", 20)
	cursor, found := c.args.text("cursor"), false
	for _, rec := range records {
		if cursor != "" && !found {
			found = rec.ID == cursor
			continue
		}
		settled := rec.Status.Settled()
		if which == "running" && settled || which == "ended" && !settled {
			continue
		}
		if len(out.Agents) == limit {
			out.Cursor = out.Agents[limit-1].JobID
			break
		}
		line := agentLine{
			JobID: rec.ID, Status: rec.MCPStatus(), Client: rec.Client, Model: shorten(rec.Model, 100),
			WorkDir: shorten(rec.WorkDir, 200), Started: rec.StartedAt.UTC().Format(time.RFC3339),
			Elapsed: seconds(rec.Elapsed(s.deps.Now())), Reason: shorten(rec.StatusReason, 200), Record: rec.Path(),
		}
		if j, ok := s.jobs.get(rec.ID); ok {
			line.Collectable, line.Task = true, j.task
		}
		out.Agents = append(out.Agents, line)
	}
	if cursor != "" && !found {
		return nil, fmt.Errorf("list_agents: parameter \"cursor\" is not one of a list before (%q): leave it out to begin", shorten(cursor, 40))
	}
	return out, nil
}
