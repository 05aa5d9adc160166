package meta

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reprise/internal/mdfile"
)

// Enough is the score that an agent's prompt must reach.
const Enough = 8.0

// Score is how a prompt does by the rubric of docs/meta.md, out of ten.
type Score struct {
	File   string   `json:"file"`
	Points float64  `json:"points"`
	Lacks  []string `json:"lacks"` // each with the points that it costs
}

var (
	openTag  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^<(` + strings.Join(sections, "|") + `)>$`) })
	mention  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^A-Za-z0-9._-])@([a-z0-9][a-z0-9-]*)`) })
	levelRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`Level [123]`) })
	number   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d`) })
)

// Rate scores an agent's prompt by what stands in it.
func Rate(f File) Score {
	s := Score{File: f.Name, Points: 10, Lacks: []string{}}
	lose := func(points float64, format string, args ...any) {
		s.Points -= points
		s.Lacks = append(s.Lacks, fmt.Sprintf("%.1f: ", points)+fmt.Sprintf(format, args...))
	}
	body := f.Text
	if m, err := mdfile.Parse([]byte(f.Text)); err == nil {
		body = string(m.Body())
	}
	parts, order := split(body)
	// 2 points: the seven components, in their order.
	for _, name := range sections {
		if strings.TrimSpace(parts[name]) == "" {
			lose(0.5, "no <%s>", name)
		}
	}
	if !slices.Equal(order, sections) {
		lose(1, "the components stand in the order %s", strings.Join(order, ", "))
	}
	// 3 points: their shares.
	total := 0
	for _, name := range sections {
		total += len(strings.Fields(parts[name]))
	}
	for _, name := range sections {
		band, ok := bands[name]
		if !ok || total == 0 {
			continue
		}
		if share := 100 * float64(len(strings.Fields(parts[name]))) / float64(total); share < band[0] || share > band[1] {
			lose(0.6, "<%s> is %.0f %% of the prompt; %.0f to %.0f is good", name, share, band[0], band[1])
		}
	}
	// 2 points: routing.
	if !mention().MatchString(body) {
		lose(0.5, "no agent is named with @")
	}
	if !levelRef().MatchString(body) {
		lose(0.5, "no level of context is named")
	}
	if !strings.Contains(parts["instructions"], "JSON object") || !strings.Contains(body, `"status"`) {
		lose(0.5, "what is to be handed back is not said")
	}
	if !number().MatchString(parts["validation"]) {
		lose(0.5, "no gate has a number")
	}
	// 1 point: the context goes from the system to the execution.
	at := -1
	for _, word := range []string{"System:", "Domain:", "Task:", "Execution:"} {
		i := strings.Index(parts["context"], word)
		if i < 0 || i < at {
			lose(0.25, "the context does not go on to %q", word)
			continue
		}
		at = i
	}
	// 1 point: examples.
	if n := strings.Count(strings.TrimSpace(parts["examples"]), "\n") + 1; n < 2 {
		lose(1, "fewer than two examples")
	}
	// 1 point: gates.
	if n := len(number().FindAllString(parts["validation"], -1)); n < 3 {
		lose(1, "fewer than three figures in the validation")
	}
	s.Points = max(0, s.Points)
	return s
}

// split takes a prompt's components apart.
func split(body string) (parts map[string]string, order []string) {
	parts = map[string]string{}
	for _, m := range openTag().FindAllStringSubmatchIndex(body, -1) {
		name := body[m[2]:m[3]]
		rest := body[m[1]:]
		if end := strings.Index(rest, "</"+name+">"); end >= 0 {
			parts[name] = strings.TrimSpace(rest[:end])
			order = append(order, name)
		}
	}
	return parts, order
}

// Check looks at a generated system as a whole: every agent that is named exists, so
// does every file; context files have 50 to 200 lines; front matters can be read;
// names are taken once; agents reach [Enough]. It gives the scores and what is wrong.
func Check(files []File) (scores []Score, wrong []string) {
	names := map[string]bool{}
	agents := map[string]bool{}
	for _, f := range files {
		if names[f.Name] {
			wrong = append(wrong, f.Name+": is there twice")
		}
		names[f.Name] = true
		if f.Kind == "agent" {
			agents[strings.TrimSuffix(path.Base(f.Name), ".md")] = true
		}
	}
	for _, f := range files {
		for _, m := range mention().FindAllStringSubmatch(f.Text, -1) {
			if !agents[strings.TrimRight(m[1], "-")] {
				wrong = append(wrong, fmt.Sprintf("%s: names @%s, which is no agent of it", f.Name, m[1]))
			}
		}
		for _, ref := range pathRef().FindAllString(f.Text, -1) {
			ref = strings.TrimRight(ref, ".")
			if strings.HasSuffix(ref, ".md") && !names[ref] {
				wrong = append(wrong, fmt.Sprintf("%s: names %s, which is not made", f.Name, ref))
			}
		}
		if n := mdfile.CountLines([]byte(f.Text)); f.Kind == "context" && (n < 50 || n > 200) {
			wrong = append(wrong, fmt.Sprintf("%s: has %d lines; 50 to 200 are good", f.Name, n))
		}
		if f.Kind == "agent" || f.Kind == "command" || f.Kind == "skill" {
			m, err := mdfile.Parse([]byte(f.Text))
			if err == nil {
				var top map[string]any
				if top, err = m.Map(); err == nil && top["description"] == nil {
					err = fmt.Errorf("no description")
				}
			}
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", f.Name, err))
			}
		}
		if f.Kind == "agent" {
			s := Rate(f)
			scores = append(scores, s)
			if s.Points < Enough {
				wrong = append(wrong, fmt.Sprintf("%s: %.1f of 10 points, %.0f are wanted: %s", f.Name, s.Points, Enough, strings.Join(s.Lacks, "; ")))
			}
		}
	}
	return scores, wrong
}

var pathRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.claude/[A-Za-z0-9_./-]+`) })
