package web

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"reprise/internal/loop/tell"
	"reprise/internal/memory"
	"reprise/internal/term"
	"reprise/internal/web/output"
)

// errorPage is what a page says of something that was not done. What was written into the
// form is on it, so that it is not lost.
type errorPage struct {
	Status         int
	Text           string
	Back, BackName string // where the form was, "" for the overview
	Wrote          []wrote
	// Again is where what was written is sent once more, as it stands or changed; "" where a
	// form would change some of it unseen, and it can be copied only.
	Again string
	Kept  []hidden // what the form said beside that
}

// wrote is a field of a form, as a person has filled it in.
type wrote struct {
	Name, Label, Text string
	Rows              int // 0 for a field of one line
}

// hidden is a field of a form that nobody sees.
type hidden struct{ Name, Value string }

// written are the fields of forms into which people write, with their names on the page.
var written = []wrote{
	{Name: "answer", Label: "Your answer", Rows: 3}, {Name: "say", Label: "What is to be done further", Rows: 3}, {Name: "title", Label: "Title"}, {Name: "name", Label: "Name"},
	{Name: "summary", Label: "Line in the index"}, {Name: "body", Label: "What is to be done", Rows: 4}, {Name: "text", Label: "Text", Rows: 8}, {Name: "why", Label: "Why"},
	{Name: "because", Label: "Because"}, {Name: "over", Label: "What it was decided against, one a line", Rows: 2}, {Name: "minutes", Label: "More minutes"},
	{Name: "attempts", Label: "More attempts"}, {Name: "hours", Label: "More hours"}, {Name: "usd", Label: "More US dollars"}, {Name: "tokens", Label: "More tokens"},
}

func (s *Server) errorPage(r *http.Request, status int, err error) errorPage {
	p := errorPage{Status: status, Text: sentence(inOurWords(err))}
	if r.Method != http.MethodPost {
		return p
	}
	p.keep(r)
	part, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	for _, n := range s.nav {
		if n.ID == part {
			p.Back, p.BackName = n.Path, n.Name
		}
	}
	if r.PostForm.Get("back") == "item" {
		p.Back, p.BackName = "/work/items/"+r.PathValue("id"), "the item"
	}
	return p
}

// keep takes up what was written into the form that came to this.
func (p *errorPage) keep(r *http.Request) {
	said := map[string]bool{}
	p.Again = r.URL.EscapedPath()
	for _, w := range written {
		text := normal(r.PostForm.Get(w.Name))
		said[w.Name] = strings.TrimSpace(text) != ""
		if !said[w.Name] {
			continue
		}
		w.Text = output.Hide(text)
		if w.Text != text || term.SafeText(text) != text {
			p.Again = ""
		}
		p.Wrote = append(p.Wrote, w)
	}
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		for _, value := range r.PostForm[name] {
			if name != "csrf" && !said[name] && value != "" {
				p.Kept = append(p.Kept, hidden{name, value})
			}
		}
	}
}

// ways are what there is to do on the pages where a person's word could not be taken; a
// terminal has flags and commands for it.
var ways = map[tell.Way]string{
	tell.WayWhich:   "answer each in its own box",
	tell.WayTell:    "answer each in its own box",
	tell.WayAnswer:  "answer it, or let the work go on without one",
	tell.WayItem:    "answer it, or let it go on without an answer, in its box",
	tell.WayGoOn:    "without an answer it goes on",
	tell.WayHigher:  "a higher ceiling, and no answer, lets it go on",
	tell.WayCeiling: "raise the ceiling",
}

// inOurWords is an error as the dashboard says it: with what can be done on its pages.
func inOurWords(err error) error {
	if errors.Is(err, memory.ErrExists) {
		return errors.New("a block of this name is there already, with other content: open that one and edit it, or choose another name")
	}
	if unsaid := (*tell.Unsaid)(nil); errors.As(err, &unsaid) {
		return errors.New(unsaid.In(ways[unsaid.Way]) + unsaid.Asks())
	}
	return err
}
