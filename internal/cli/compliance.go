package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/durable"
	"reprise/internal/mcpserver"
	"reprise/internal/proc"
	"reprise/internal/term"
)

// Limits of the check, from the memory skill's own rules: a session that does
// anything reads the memory first, and one that does much writes it.
const (
	loadAfter    = 5  // tool calls without a read of the memory that are too many
	persistAfter = 10 // tool calls without a write
)

// complianceSession is what one client session did with the memory.
type complianceSession struct {
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Calls   int       `json:"calls"`
	Core    bool      `json:"core_read"`
	Index   bool      `json:"index_read"`
	Reads   int       `json:"reads"`
	Writes  int       `json:"writes"`
	Errors  int       `json:"errors"`
	Flags   []string  `json:"flags"`

	readAt int // calls before the first read
	pid    int
}

type logLine struct {
	TS     time.Time       `json:"ts"`
	Level  string          `json:"level"`
	Msg    string          `json:"msg"`
	Tool   string          `json:"tool"`
	URI    string          `json:"uri"`
	PID    int             `json:"pid"` // of the server: several write one log
	Params json.RawMessage `json:"params"`
}

func newComplianceCmd(app *App) *cobra.Command {
	var since, file string
	var asJSON, last bool
	cmd := &cobra.Command{
		Use: "compliance", Args: cobra.NoArgs, Short: "Check from the log whether sessions used the memory as they should",
		Long: fmt.Sprintf(`Read reprise's log and say of each session whether core.md and index.md were
read and anything was written. Flagged are sessions of more than %d tool calls
that did not read the memory at their start, and of more than %d that wrote
nothing. Calls to other servers are not in this log. Ends with 1 if a session
is flagged.`, loadAfter, persistAfter),
		RunE: func(*cobra.Command, []string) error {
			from, err := pastTime(app, "--since", since)
			if err != nil {
				return err
			}
			if file == "" {
				home, err := app.Home()
				if err != nil {
					return err
				}
				file = home.LogFile()
			} else if !filepath.IsAbs(file) {
				file = filepath.Join(app.Env.Dir, file)
			}
			sessions, bad, err := readCompliance(file, from)
			if err != nil {
				return err
			}
			if last && len(sessions) > 1 {
				sessions = sessions[len(sessions)-1:]
			}
			return showCompliance(app, sessions, bad, asJSON)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only sessions that began since: a time back (36h, 7d) or a day (2026-02-21)")
	cmd.Flags().BoolVar(&last, "last", false, "only the latest session")
	cmd.Flags().StringVar(&file, "log", "", "log file (default: reprise's own; rotated ones beside it are read too)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// readCompliance reads the log with its rotated files, the oldest first. A line
// that is no JSON is counted, not fatal.
func readCompliance(file string, from time.Time) (sessions []complianceSession, bad int, err error) {
	found := false
	for i := 99; i >= 0; i-- {
		path := file
		if i > 0 {
			path = fmt.Sprintf("%s.%d", file, i)
		}
		f, err := durable.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read log: %w", err)
		}
		found = true
		n, err := addCompliance(f, &sessions)
		f.Close()
		bad += n
		if err != nil {
			return nil, 0, fmt.Errorf("read log %s: %w", path, err)
		}
	}
	if !found {
		return nil, 0, exitWith(ExitNotFound, fmt.Errorf("read log %s: it does not exist; nothing has been logged yet", file))
	}
	sessions = slices.DeleteFunc(sessions, func(s complianceSession) bool { return s.Started.Before(from) })
	for i := range sessions {
		sessions[i].judge()
	}
	return sessions, bad, nil
}

func addCompliance(r io.Reader, sessions *[]complianceSession) (bad int, err error) {
	lines := proc.NewLineReader(r, 1<<20)
	for {
		line, cut, _, err := lines.Next()
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return bad, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return bad, err
		}
		var l logLine
		switch {
		case len(line) == 0:
		case cut || json.Unmarshal(line, &l) != nil:
			bad++
		default:
			note(sessions, l)
		}
		if err != nil {
			return bad, nil
		}
	}
}

// note adds a line to the session it belongs to: the latest of the server that
// wrote it.
func note(sessions *[]complianceSession, l logLine) {
	if l.Msg == mcpserver.LogStarted {
		*sessions = append(*sessions, complianceSession{Started: l.TS, Ended: l.TS, Flags: []string{}, pid: l.PID})
		return
	}
	call, resource := l.Msg == mcpserver.LogToolCall, l.Msg == mcpserver.LogResource
	i := len(*sessions) - 1
	for i >= 0 && (*sessions)[i].pid != l.PID {
		i--
	}
	if i < 0 {
		if !call && !resource {
			return // a line of a command, not of a server
		}
		*sessions = append(*sessions, complianceSession{Started: l.TS, Flags: []string{}, pid: l.PID}) // its start was rotated away
		i = len(*sessions) - 1
	}
	s := &(*sessions)[i]
	s.Ended = l.TS
	if l.Level == "error" {
		s.Errors++
	}
	switch {
	case call:
		s.Calls++
		s.tool(l)
	case resource:
		s.read(l.URI)
	}
}

// tool sorts a call by what the tool does. The filesystem server's tools are
// here too, for logs that a proxy wrote.
func (s *complianceSession) tool(l logLine) {
	name := l.Tool
	if i := strings.LastIndexAny(name, ":."); i >= 0 {
		name = name[i+1:]
	}
	switch name {
	case "memory_read", "memory_search", "read_file", "read_text_file", "read_multiple_files":
		s.read(string(l.Params))
	case "create_memory_block", "update_memory_block", "append_episodic_log", "append_file", "write_file", "edit_file":
		s.Writes++
	}
}

func (s *complianceSession) read(what string) {
	if s.Reads == 0 {
		s.readAt = s.Calls
	}
	s.Reads++
	low := strings.ToLower(what)
	has := func(name string) bool {
		return strings.Contains(low, name+".md") || strings.Contains(low, `"`+name+`"`) || strings.HasSuffix(low, "/"+name)
	}
	s.Core = s.Core || has("core")
	s.Index = s.Index || has("index")
}

func (s *complianceSession) judge() {
	if s.Calls > loadAfter && (s.Reads == 0 || s.readAt > loadAfter) {
		s.Flags = append(s.Flags, "Skill not loading memory")
	}
	if s.Calls > persistAfter && s.Writes == 0 {
		s.Flags = append(s.Flags, "Skill not persisting")
	}
}

func showCompliance(app *App, sessions []complianceSession, bad int, asJSON bool) error {
	flagged := 0
	for _, s := range sessions {
		if len(s.Flags) > 0 {
			flagged++
		}
	}
	if asJSON {
		if sessions == nil {
			sessions = []complianceSession{}
		}
		err := printJSON(app.Out, struct {
			Sessions []complianceSession `json:"sessions"`
			Flagged  int                 `json:"flagged"`
			BadLines int                 `json:"bad_lines"`
		}{sessions, flagged, bad})
		if err != nil {
			return err
		}
	} else {
		yes := map[bool]string{true: "yes", false: "no"}
		for _, s := range sessions {
			fmt.Fprintf(app.Out, "%s  %3d %-5s  core.md %-3s  index.md %-3s  %-7s  %s", s.Started.Local().Format("2006-01-02 15:04"),
				s.Calls, strings.Fields(count(s.Calls, "call"))[1], yes[s.Core], yes[s.Index], count(s.Reads, "read"), count(s.Writes, "write"))
			if len(s.Flags) > 0 {
				fmt.Fprintf(app.Out, "  FLAG: %s", term.SafeText(strings.Join(s.Flags, "; ")))
			}
			fmt.Fprintln(app.Out)
		}
		fmt.Fprintf(app.Out, "%s, %d flagged\n", count(len(sessions), "session"), flagged)
		if bad > 0 {
			fmt.Fprintf(app.Err, "warning: %s of the log could not be read\n", count(bad, "line"))
		}
	}
	if flagged > 0 {
		return exitWithCode(ExitFailure)
	}
	return nil
}
