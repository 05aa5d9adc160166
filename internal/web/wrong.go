package web

import (
	"errors"
	"net/http"
	"strings"

	"reprise/internal/loop"
	"reprise/internal/memory"
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
			p.Wrote = append(p.Wrote, wrote{w.name, hide(text)})
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

// terminal are words of errors that say what to do in a terminal, and what stands for them
// on a page.
var terminal = strings.NewReplacer(
	" by --no-answer", "",
	"say by --item which the answer is for", "answer each in its own box",
	"answer it for its worker by", "answer it on the page of the fleet",
	"say by --item which it is for", "answer each in its own box",
	"`reprise loop resume`, without an answer, lets it go on", "without an answer it goes on",
	"`reprise loop resume --more-usd N`, without an answer, lets it go on", "a higher ceiling, and no answer, lets it go on",
	"`reprise loop resume --more-tokens N`, without an answer, lets it go on", "a higher ceiling, and no answer, lets it go on",
)

// inOurWords is an error as the dashboard says it: with what can be done on its pages.
func inOurWords(err error) error {
	switch {
	case errors.Is(err, memory.ErrExists):
		return errors.New("a block of this name is there already, with other content: open that one and edit it, or choose another name")
	case errors.Is(err, loop.ErrUnanswered), errors.Is(err, loop.ErrCeiling), errors.Is(err, loop.ErrWhich), errors.Is(err, loop.ErrNothingWaits):
		var kept []string
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(strings.TrimSpace(line), "reprise ") { // a command
				kept = append(kept, strings.TrimRight(line, "\n"))
			}
		}
		return errors.New(terminal.Replace(strings.Join(kept, "\n")))
	}
	return err
}
