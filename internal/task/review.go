package task

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/internal/clip"
	"reprise/internal/mdfile"
)

// reviewsDir is below specs/: the reports of reviews.
const reviewsDir = "reviews"

// Review is a look through the project, as state.json has it.
type Review struct {
	Number  int        `json:"number"`
	Scope   string     `json:"scope,omitempty"` // "" is the whole project
	Status  string     `json:"status"`          // in_progress, completed, partial, failed, blocked
	Session string     `json:"session,omitempty"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Report  string     `json:"report,omitempty"` // below specs/
	// Findings is how many the report has, and Tasks those that stand for them.
	Findings int    `json:"findings,omitempty"`
	Tasks    []int  `json:"tasks,omitempty"`
	Reason   string `json:"reason,omitempty"`

	Operation *Operation `json:"operation,omitempty"`
}

const reviewing = "in_progress"

// beginReview begins a review, or goes on with one of the same scope whose agent is
// gone.
func (s *step) beginReview(b *Board, want Operation) (*Operation, error) {
	for _, r := range b.State.Reviews {
		o := r.Operation
		switch {
		case o == nil:
		case o.By != "" && o.By == want.By && r.Scope == want.Focus:
			s.review = r
			return o, nil
		case s.f.dead(o):
			r.Operation, r.Status, r.Reason = nil, "failed", "nobody works at it any more"
			now := b.now
			r.Ended = &now
		}
	}
	n := 1
	for _, r := range b.State.Reviews {
		n = max(n, r.Number+1)
	}
	want.Started = b.now
	want.Artifact = path.Join(reviewsDir, fmt.Sprintf("review-%03d.md", n))
	for {
		if _, err := b.Read(want.Artifact); errors.Is(err, fs.ErrNotExist) {
			break
		}
		n++
		want.Artifact = path.Join(reviewsDir, fmt.Sprintf("review-%03d.md", n))
	}
	s.review = &Review{Number: n, Scope: want.Focus, Status: reviewing, Session: want.Session, Started: b.now, Operation: &want}
	b.State.Reviews = append(b.State.Reviews, s.review)
	return &want, nil
}

// endReview files a review and makes tasks of what it found.
func (s *step) endReview(b *Board, res *StepResult) {
	var r *Review
	for _, one := range b.State.Reviews {
		if one.Session == s.d.Session {
			r = one
		}
	}
	now := b.now
	r.Ended, r.Operation, r.Status, r.Reason = &now, nil, res.Status, clip.Line(res.Reason)
	if s.tooLong() {
		return // it says so
	}
	text, err := b.Read(s.o.Artifact)
	if err != nil || strings.TrimSpace(string(text)) == "" {
		if res.Status == "completed" {
			res.Status, res.Reason = "partial", fmt.Sprintf("it was to write specs/%s and did not", s.o.Artifact)
			r.Status, r.Reason = res.Status, res.Reason
		}
		return
	}
	r.Report = s.o.Artifact
	if res.Status != "completed" {
		return // part of a review is kept, and makes no tasks
	}
	found, err := ParseFindings(text)
	if err != nil {
		res.Status, res.Reason = "partial", err.Error()
		r.Status, r.Reason = res.Status, res.Reason
		return
	}
	r.Findings, r.Tasks, res.Made = len(found), nil, nil
	for i, f := range found {
		if i == maxFindings {
			res.Next = strings.TrimSpace(res.Next + fmt.Sprintf(" %d findings more stand in the report only.", len(found)-maxFindings))
			break
		}
		n, err := b.finding(f, r)
		if err != nil {
			res.Reason = strings.TrimSpace(res.Reason + " " + err.Error())
			continue
		}
		r.Tasks = append(r.Tasks, n)
	}
	res.Made = r.Tasks
}

// maxFindings is how many tasks one review makes.
const maxFindings = 20

// finding makes a task of what a review found, unless there is one of that name that
// has not ended.
func (b *Board) finding(f Found, r *Review) (int, error) {
	for _, n := range b.State.Numbers() {
		if t := b.State.Tasks[n]; !t.Status.Ended() && strings.EqualFold(t.Title, f.Title) {
			return n, nil
		}
	}
	body := f.Text
	if body != "" {
		body += "\n\n"
	}
	body += fmt.Sprintf("Found by [review-%03d.md](%s).", r.Number, r.Report)
	if len(f.Files) > 0 {
		body = "Files: " + strings.Join(f.Files, ", ") + "\n\n" + body
	}
	d := Draft{Title: &f.Title, Priority: &f.Severity, Body: body}
	if f.Language != "" {
		d.Language = &f.Language
	}
	t, err := b.Add(d)
	if err != nil {
		return 0, err
	}
	return t.Number, nil
}

// Found is one thing that a review found.
type Found struct {
	Title, Severity, Language, Text string
	Files                           []string
}

var findingPatterns = sync.OnceValue(func() (p struct{ heading, field *regexp.Regexp }) {
	p.heading = regexp.MustCompile(`^(?i:finding)(?:\s+\d+)?\s*[:.\-–—]\s*(.+)$`)
	p.field = regexp.MustCompile(`(?i)^[ \t]*[-*+][ \t]+\*\*(severity|priority|language|files):?\*\*:?[ \t]*(.*?)[ \t]*$`)
	return p
})

// ParseFindings reads a review's report: each finding is a heading "Finding: What is
// wrong" with the fields Severity, Language and Files below it. The error is
// [mdfile.ErrNotText].
func ParseFindings(data []byte) ([]Found, error) {
	file, err := mdfile.Parse(data)
	if err != nil {
		return nil, err
	}
	var out []Found
	all := file.Sections()
	for i, s := range all {
		m := findingPatterns().heading.FindStringSubmatch(s.Heading)
		if m == nil {
			continue
		}
		end := sectionEnd(all, i, len(data))
		f := Found{Title: clip.Bytes(clip.Line(m[1]), 200), Severity: DefaultPriority}
		var rest []string
		for line := range strings.Lines(string(data[s.Text:end])) {
			line = strings.TrimRight(line, "\r\n")
			m := findingPatterns().field.FindStringSubmatch(line)
			if m == nil {
				if strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
					line = "    " + line // no heading of the list
				}
				rest = append(rest, line)
				continue
			}
			switch strings.ToLower(m[1]) {
			case "severity", "priority":
				if p := priorityOf(strings.Trim(m[2], "[]`*")); p != "" {
					f.Severity = p
				}
			case "language":
				if l := strings.ToLower(clip.Line(m[2])); l != "" && len(l) <= 40 && !strings.ContainsAny(l, "[]*`") {
					f.Language = l
				}
			case "files":
				f.Files = filesOf(m[2])
			}
		}
		f.Text = clip.Bytes(strings.TrimSpace(strings.Join(rest, "\n")), 4000)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Found) int {
		return slices.Index(Priorities, a.Severity) - slices.Index(Priorities, b.Severity)
	})
	return out, nil
}

// filesOf reads a list of paths: "`a.go`, b/c.go".
func filesOf(text string) []string {
	var out []string
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		if name = strings.Trim(strings.TrimSpace(name), "`"); name != "" {
			out = append(out, name)
		}
	}
	return out
}
