package web

import (
	"errors"
	"net/http"
	"strings"

	"reprise/internal/loop/tell"
	"reprise/internal/memory"
	"reprise/internal/web/output"
)

// errorPage is what a page says of something that was not done. What was written into the
// form is on it, so that it is not lost.
type errorPage struct {
	Status         int
	Text           string
	Back, BackName string // where the form was, "" for the overview
	Wrote          []wrote
}

type wrote struct{ Field, Text string }

// written are the fields of forms into which people write, with their names on the page.
var written = []struct{ field, name string }{
	{"answer", "Your answer"}, {"title", "Title"}, {"name", "Name"}, {"summary", "Summary"}, {"body", "What is to be done"}, {"text", "Text"}, {"why", "Why"}, {"because", "Because"},
}

func (s *Server) errorPage(r *http.Request, status int, err error) errorPage {
	p := errorPage{Status: status, Text: sentence(inOurWords(err))}
	if r.Method != http.MethodPost {
		return p
	}
	for _, w := range written {
		if text := strings.TrimSpace(normal(r.PostForm.Get(w.field))); text != "" {
			p.Wrote = append(p.Wrote, wrote{w.name, output.Hide(text)})
		}
	}
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
