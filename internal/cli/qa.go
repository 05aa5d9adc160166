package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/learn/scopes"
	"reprise/internal/memory"
	"reprise/internal/recall"
	"reprise/internal/term"
)

func newQACmd(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "qa", Short: "See and forget what you answered to agents' questions",
		Long: `What you answered to the questions of agents is remembered. The same question with
the same options, in the same project, is answered from memory and not put to you
again, for qa.ttl_days after you answered it last; the agent is told that the
answer is from memory. Where that is not sure enough, the agent is only told what
you said: when the question is only similar, when you once said something else,
and always when it asks for leave to do something (may I, delete, deploy, yes or
no). The setting qa.auto switches it off, or to telling only.`,
	}
	cmd.AddCommand(qaList(app), qaShow(app), qaForget(app))
	return cmd
}

// answerView is an answer as it is shown.
type answerView struct {
	ID      string        `json:"id"`
	Project string        `json:"project,omitempty"`
	Status  recall.Status `json:"status,omitempty"`
	learn.Asked
	Expired    bool     `json:"expired,omitempty"`
	Confidence float64  `json:"confidence"`
	Readers    []string `json:"readers,omitempty"`
	// Would says what becomes of the question when it is asked again.
	Would string `json:"would"`
}

// answers are the answers that the reader may see, the newest first.
func answers(ctx context.Context, app *App, everywhere bool) ([]answerView, error) {
	m, err := app.Remembered()
	if err != nil {
		return nil, memoryError(err)
	}
	if _, err := m.Organizer.Run(ctx, 0); err != nil {
		return nil, err
	}
	who := m.Reader()
	person := who.Agent == "" && who.Role == ""
	var docs []recall.Doc
	err = m.Index.View(ctx, func(tx *recall.Tx) error {
		return tx.Each(recall.Filter{Class: recall.ClassAnswer}, func(d recall.Doc) bool {
			if (everywhere && person || d.Project == who.Project || slices.Contains(who.Places, d.Project)) && (person || learn.MayRead(who, d)) {
				docs = append(docs, d)
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(docs, learn.ByAge)
	o, auto := m.Answers()
	out := []answerView{}
	for _, d := range docs {
		if asked, ok := learn.AskedOf(d); ok {
			out = append(out, viewOf(d, asked, o, auto))
		}
	}
	return out, nil
}

func viewOf(d recall.Doc, asked learn.Asked, o improve.AnswerOptions, auto string) answerView {
	v := answerView{ID: d.ID, Project: d.Project, Status: d.Status, Asked: asked, Readers: d.ACL}
	r := improve.Judge(d, asked, o)
	v.Confidence = r.Confidence
	v.Expired = o.Now().Sub(asked.Last) > o.TTL
	switch {
	case d.Status == recall.Superseded:
		v.Would = "nothing: you said something else later"
	case v.Expired:
		v.Would = "you are asked: the answer is too old"
	case auto == "off":
		v.Would = "you are asked: qa.auto is off"
	case auto == "context":
		v.Would = "you are asked, and the agent is told your answer: qa.auto is context"
	case r.Auto:
		v.Would = "it is answered from memory"
	default:
		v.Would = "you are asked, and the agent is told your answer: " + r.Why
	}
	return v
}

func qaList(app *App) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Args: cobra.NoArgs, Short: "List questions and answers of this project, the newest first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := answers(cmd.Context(), app, all)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, list)
			}
			style := app.Style()
			for _, v := range list {
				mark := ""
				if v.Status == recall.Superseded {
					mark = " (superseded)"
				} else if v.Expired {
					mark = " (expired)"
				}
				fmt.Fprintf(app.Out, "%s  %s  %s%s\n  %s\n", v.ID, style.Dim(v.Last.Format(time.DateOnly)), style.Bold(term.SafeLine(clipText(v.Question, 100))), mark, term.SafeLine(clipText(v.Answer, 120)))
			}
			if len(list) == 0 {
				fmt.Fprintln(app.Err, "no question was answered here yet")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of every project")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them for programs")
	return cmd
}

func qaShow(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Args: cobra.ExactArgs(1), Short: "Show an answer, and what becomes of the question when it is asked again",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := findAnswer(cmd.Context(), app, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(app.Out, v)
			}
			app.said(v.ID+"  ", term.SafeLine(v.Question))
			line := func(name, value string) {
				if value != "" {
					app.said(fmt.Sprintf("  %-12s ", name), term.SafeLine(value))
				}
			}
			line("options", strings.Join(v.Options, " / "))
			line("answer", v.Answer)
			line("before that", v.Before)
			line("where", recall.Where(v.Project))
			line("readers", strings.Join(v.Readers, ", "))
			line("given", fmt.Sprintf("%s, from %s to %s", count(v.Times, "time"), v.First.Format(time.DateOnly), v.Last.Format(time.DateOnly)))
			if v.Memory > 0 {
				line("from memory", count(v.Memory, "time"))
			}
			line("confidence", fmt.Sprintf("%.2f", v.Confidence))
			line("asked again", v.Would)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it for programs")
	return cmd
}

// findAnswer is the answer with that id, or beginning of one.
func findAnswer(ctx context.Context, app *App, id string) (answerView, error) {
	list, err := answers(ctx, app, true)
	if err != nil {
		return answerView{}, err
	}
	var found []answerView
	for _, v := range list {
		if v.ID == id {
			return v, nil
		}
		if len(id) >= 5 && strings.HasPrefix(v.ID, id) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return answerView{}, exitWith(ExitNotFound, fmt.Errorf("no answer has the id %q; `reprise qa list --all` shows ids", clipText(id, 60)))
	case 1:
		return found[0], nil
	}
	return answerView{}, usagef("%d answers have an id that begins with %q; give more of it", len(found), clipText(id, 60))
}

func qaForget(app *App) *cobra.Command {
	var o scopes.Forgetting
	cmd := scopesCommand(app, "forget ID", "Take an answer out, so that the question is asked again", cobra.ExactArgs(1), func(ctx context.Context, s *scopes.Scopes, args []string) (scopes.Change, error) {
		if !strings.HasPrefix(args[0], "qa-") {
			return scopes.Change{}, fmt.Errorf("%w: %q is not the id of an answer; `reprise qa list` shows ids, `reprise memory forget` takes other things out", memory.ErrNotFound, clipText(args[0], 60))
		}
		return s.Forget(ctx, args[0], o)
	})
	cmd.Long = `No rebuild brings it back. The event log keeps that it was asked and answered; with
--purge that goes, too. Answered anew, it is remembered anew.`
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why; kept in the log")
	cmd.Flags().BoolVar(&o.Purge, "purge", false, "take the question and the answer out of the event logs, too; this cannot be undone")
	return cmd
}
