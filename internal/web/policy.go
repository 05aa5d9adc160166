package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"reprise/internal/learn"
	"reprise/internal/learn/improve"
	"reprise/internal/recall"
)

// Policies are what recall ranks by, as the pages use it. They are called one at a time.
type Policies struct {
	// All are the changes of every policy, as far as the logs are worked out, the oldest
	// first.
	All func(ctx context.Context) ([]learn.PolicyVersion, error)
	// InForce is the policy that ranks here.
	InForce func(ctx context.Context) (recall.Policy, error)
	// Rollback makes an earlier version the one in force for whom it was; "default"
	// takes a scope's own policy away.
	Rollback func(ctx context.Context, whose learn.PolicyScope, id, reason string) (learn.PolicyVersion, error)
}

func (s *Server) policyRoutes() {
	s.mux.HandleFunc("GET /policy", s.policyShow)
	s.mux.HandleFunc("GET /policy/{id}", s.policyVersion)
	s.mux.HandleFunc("POST /policy/{id}/rollback", s.policyRollback)
}

type policyRow struct {
	learn.PolicyVersion
	InForce bool // here
	Gain    float64
}

type policyPage struct {
	Rows    []policyRow
	InForce string              // id
	Version learn.PolicyVersion // that is in force, where it was learnt
	Values  []valueRow
}

// valueRow is a value of a policy beside another's.
type valueRow struct {
	Name     string
	From, To float64
	Percent  string
}

func valueRows(a, b recall.Policy) []valueRow {
	var out []valueRow
	for _, d := range improve.Differences(a, b) {
		row := valueRow{Name: d.Name, From: d.From, To: d.To}
		if d.From != 0 {
			row.Percent = fmt.Sprintf("%+.0f %%", 100*(d.To/d.From-1))
		}
		out = append(out, row)
	}
	return out
}

// versions are all changes and the policy in force.
func (s *Server) versions(ctx context.Context) ([]learn.PolicyVersion, recall.Policy, error) {
	if _, err := s.workedOut(ctx, policyPatience); err != nil {
		return nil, recall.Policy{}, err
	}
	s.thinking.Lock()
	defer s.thinking.Unlock()
	all, err := s.deps.Policy.All(ctx)
	if err != nil {
		return nil, recall.Policy{}, err
	}
	now, err := s.deps.Policy.InForce(ctx)
	return all, now, err
}

func (s *Server) policyShow(w http.ResponseWriter, r *http.Request) {
	all, now, err := s.versions(r.Context())
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	p := policyPage{InForce: now.ID, Values: valueRows(recall.DefaultPolicy(), now)}
	for _, v := range slices.Backward(all) {
		row := policyRow{PolicyVersion: v, InForce: v.ID == now.ID}
		if row.InForce {
			p.Version = v
		}
		if v.Replay != nil {
			row.Gain = v.Replay.After.Total - v.Replay.Before.Total
		}
		p.Rows = append(p.Rows, row)
	}
	s.show(w, r, "policy", s.view(r, "policy", "Policy", p))
}

type policyVersionPage struct {
	Version learn.PolicyVersion
	InForce bool
	Before  string // id of the one before it, "" where that is not known any more
	Values  []valueRow
	Whole   []valueRow // against no policy at all
	Score   []scoreRow
	CanGoTo bool
}

// scoreRow is a part of what the replay came to.
type scoreRow struct {
	Name, Before, After string
	Better              bool
	Same                bool
}

func scoreRows(r *learn.Replay) []scoreRow {
	if r == nil || r.Recalls == 0 {
		return nil
	}
	row := func(name, format string, before, after float64, moreIsBetter bool) scoreRow {
		return scoreRow{name, fmt.Sprintf(format, before), fmt.Sprintf(format, after), (after > before) == moreIsBetter, after == before}
	}
	return []scoreRow{
		row("Score, which decides", "%.4f", r.Before.Total, r.After.Total, true),
		row("How near the top what was used stood", "%.4f", r.Before.Gain, r.After.Gain, true),
		row("Tokens of what was not used, a recall", "%.0f", r.Before.Tokens, r.After.Tokens, false),
		row("How far what was used lay above the rest", "%+.4f", r.Before.Margin, r.After.Margin, true),
	}
}

func (s *Server) policyVersion(w http.ResponseWriter, r *http.Request) {
	all, now, err := s.versions(r.Context())
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	v, err := improve.Find(all, r.PathValue("id"))
	if err != nil {
		s.fail(w, r, http.StatusNotFound, err)
		return
	}
	p := policyVersionPage{Version: v, InForce: v.ID == now.ID, Score: scoreRows(v.Replay), CanGoTo: v.Policy != nil && v.ID != now.ID}
	own, before := recall.DefaultPolicy(), recall.DefaultPolicy()
	if v.Policy != nil {
		own = *v.Policy
	}
	if b, err := improve.Find(all, v.Parent); err == nil {
		p.Before = b.ID
		if b.Policy != nil {
			before = *b.Policy
		}
	}
	p.Values, p.Whole = valueRows(before, own), valueRows(recall.DefaultPolicy(), own)
	s.show(w, r, "policyversion", s.view(r, "policy", fmt.Sprintf("Policy version %d", v.Version), p))
}

func (s *Server) policyRollback(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	all, now, err := s.versions(ctx)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	id, why := r.PathValue("id"), strings.TrimSpace(r.PostForm.Get("why"))
	var scope learn.PolicyScope
	if id == "default" {
		// What is in force here goes, for whom it was.
		if v, err := improve.Find(all, now.ID); err == nil {
			scope = v.For
		}
	} else {
		v, err := improve.Find(all, id)
		if err != nil {
			s.fail(w, r, http.StatusNotFound, err)
			return
		}
		scope, id = v.For, v.ID
	}
	if why == "" {
		why = "on the dashboard"
	}
	if err := s.deps.Claim(ctx); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	s.thinking.Lock()
	defer s.thinking.Unlock()
	if _, err := s.deps.Policy.Rollback(ctx, scope, id, oneLine(400, why)); err != nil {
		status := http.StatusInternalServerError
		switch {
		case improve.NotFound(err):
			status = http.StatusNotFound
		case errors.Is(err, improve.ErrPolicy):
			status = http.StatusConflict
		}
		s.fail(w, r, status, err)
		return
	}
	s.done(w, r, "/policy", "rolled")
}
