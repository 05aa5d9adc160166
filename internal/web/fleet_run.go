package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/web/output"
	"reprise/internal/worker/elsewhere"
)

// notYet is how often it is looked whether a run has said its first word.
const notYet = time.Second

// afarPiece is a part of what a run of another machine said, as the servers have it.
type afarPiece struct {
	Said     []output.Said
	First    uint64 // number of its first piece on the servers, 0 for none
	Last     uint64 // of its last one
	Earlier  uint64 // where the page before begins, 0 without one
	Later    uint64 // where the page after begins, 0 without one
	Before   int64  // bytes before it
	Missing  int64  // of these that the servers have no more
	Followed bool   // it reaches the end of what there is
}

// errEnough ends the reading of pieces.
var errEnough = errors.New("enough")

// readAfar reads about a window of what a run said, from the piece of a number, or with 0
// the last window.
func readAfar(ctx context.Context, r *relay.Relay, id, client string, from uint64) (p afarPiece, err error) {
	places, _, err := r.Places(ctx, id)
	if errors.Is(err, relay.ErrNotFound) {
		return afarPiece{Followed: true}, nil // it has not said anything
	}
	if err != nil || len(places) == 0 {
		return afarPiece{Followed: true}, err
	}
	size := func(i int) int64 { return places[i].To - places[i].From }
	begin := func(first int) int { // of the window that ends with this piece
		for sum := size(first); first > 0 && sum+size(first-1) <= output.Window; first-- {
			sum += size(first - 1)
		}
		return first
	}
	first := 0
	if from == 0 {
		first = begin(len(places) - 1)
	} else {
		for first < len(places)-1 && places[first].Seq < from {
			first++
		}
	}
	last := first
	for sum := size(first); last+1 < len(places) && sum+size(last+1) <= output.Window; last++ {
		sum += size(last + 1)
	}
	p = afarPiece{First: places[first].Seq, Last: places[last].Seq, Before: places[first].From, Missing: places[0].From, Followed: last+1 == len(places)}
	if !p.Followed {
		p.Later = places[last+1].Seq
	}
	if first > 0 {
		p.Earlier = places[begin(first-1)].Seq
	}
	var text bytes.Buffer
	_, err = r.Pieces(ctx, id, p.First-1, false, func(one relay.Piece) error {
		if one.Seq <= p.Last {
			text.Write(one.Text)
		}
		if one.Seq >= p.Last {
			return errEnough
		}
		return nil
	}, func() error { return nil })
	if err != nil && !errors.Is(err, errEnough) {
		return p, err
	}
	p.Said = output.Of(client, text.Bytes())
	return p, nil
}

type fleetRunPage struct {
	Run     afarRow
	Settled bool
	Output  afarPiece
	Answer  string
	Tools   []toolCount
	Files   []fileAfar
	Trouble []string
}

// fileAfar is a file that a worker sent of a run.
type fileAfar struct {
	Name  string
	Bytes int64
}

// runAfar is a run of another machine; answered says that the request was answered without
// one.
func (s *Server) runAfar(ctx context.Context, w http.ResponseWriter, r *http.Request) (one elsewhere.Run, answered bool) {
	id := r.PathValue("id")
	if s.deps.Fleet.Project == "" {
		s.fail(w, r, http.StatusNotFound, errors.New("runs of workers are shown in their project: start `reprise web` in it"))
		return one, true
	}
	one, err := s.deps.Fleet.Run(ctx, id)
	if err != nil {
		if errors.Is(err, relay.ErrNotFound) {
			err = fmt.Errorf("run %.40q: %w", id, err)
		}
		s.fleetFail(w, r, err)
		return one, true
	}
	return one, false
}

func (s *Server) fleetRunShow(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*FleetPatience)
	defer cancel()
	if _, err := s.deps.Runs.Get(r.PathValue("id")); !errors.Is(err, run.ErrNotFound) {
		s.done(w, r, "/runs/"+r.PathValue("id"), "") // it is of this machine
		return
	}
	one, answered := s.runAfar(ctx, w, r)
	if answered {
		return
	}
	titles, err := s.titles(ctx)
	p := fleetRunPage{Settled: one.Over()}
	if err != nil {
		p.Trouble = append(p.Trouble, sentence(err))
	}
	from, _ := strconv.ParseUint(r.URL.Query().Get("from"), 10, 64) // what is no number is the end
	link := s.deps.Fleet.Relay()
	if p.Output, err = readAfar(ctx, link, one.ID, one.Client, from); err != nil {
		p.Trouble = append(p.Trouble, sentence(err))
	}
	if p.Settled {
		if res := s.deps.Fleet.Result(ctx, one.ID); res != nil {
			one.Result, p.Answer = res, output.Hide(res.Text)
		}
		files, err := link.Files(ctx, one.ID)
		if err != nil {
			p.Trouble = append(p.Trouble, sentence(err))
		}
		for _, file := range files {
			p.Files = append(p.Files, fileAfar{file.Name, int64(min(file.Bytes, math.MaxInt64))})
		}
		p.Tools = toolCounts(one.Result)
	}
	p.Run = s.afarRow(one, titles)
	s.show(w, r, "fleetrun", s.view(r, "fleet", oneLine(80, p.Run.Title), p))
}

// fleetRunStream sends what a run of another machine says, as the servers get it, from the
// piece after the one that the page or the last event had, until the run has ended.
func (s *Server) fleetRunStream(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("from"), 10, 64)
	if last, lerr := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); lerr == nil {
		after, err = last, nil
	}
	if err != nil {
		s.fail(w, r, http.StatusBadRequest, fmt.Errorf("from %.40q is no place in an output", r.URL.Query().Get("from")))
		return
	}
	one, answered := s.runAfar(r.Context(), w, r)
	if answered {
		return
	}
	out, closed, err := openStream(w, &s.streams)
	if err != nil {
		s.fail(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer closed()
	var rest []byte // of a line that is longer than a piece
	each := func(p relay.Piece) error {
		text := append(rest, p.Text...)
		whole := bytes.LastIndexByte(text, '\n') + 1
		if whole == 0 && len(text) >= output.Window {
			whole = len(text) // shown in parts, and makes no sense as JSON
		}
		rest = bytes.Clone(text[whole:])
		list := output.Of(one.Client, text[:whole])
		if len(list) == 0 {
			return nil
		}
		body, err := s.pages.execute("run", "said", list)
		if err != nil {
			return err
		}
		return out.event("output", strconv.FormatUint(p.Seq, 10), string(body))
	}
	beat := s.deps.Now()
	quiet := func() error {
		if s.deps.Now().Sub(beat) < beatEvery {
			return nil
		}
		beat = s.deps.Now()
		return out.beat()
	}
	tick := time.NewTicker(notYet)
	defer tick.Stop()
	for {
		end, err := s.deps.Fleet.Relay().Pieces(r.Context(), one.ID, after, true, each, quiet)
		switch {
		case err == nil && end.Over:
			if list := output.Of(one.Client, rest); len(list) > 0 {
				if body, err := s.pages.execute("run", "said", list); err == nil && out.event("output", "", string(body)) != nil {
					return
				}
			}
			_ = out.event("ended", "", "") // the page may be closed
			return
		case !errors.Is(err, relay.ErrNotFound) || quiet() != nil:
			return // the browser asks again from where it is
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) fleetRunStop(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*FleetPatience)
	defer cancel()
	one, answered := s.runAfar(ctx, w, r)
	if answered {
		return
	}
	if one.Over() {
		s.fail(w, r, http.StatusConflict, fmt.Errorf("%s had ended already: %s", one.ID, strings.TrimSpace(string(one.Status)+" "+one.StatusReason)))
		return
	}
	if err := s.deps.Fleet.Cancel(ctx, one, "stopped on the dashboard"); err != nil {
		s.fleetFail(w, r, err)
		return
	}
	s.forgetFleet()
	s.done(w, r, "/fleet/runs/"+one.ID, "asked-stop")
}
