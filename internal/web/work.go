package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/durable"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

const (
	// itemsShown is how many items of a state, or of a priority, the page shows; the rest
	// are on a list of their own, itemsPerPage at a time.
	itemsShown   = 25
	itemsPerPage = 100
)

func queueStates() []string {
	var out []string
	for _, s := range queue.States() {
		out = append(out, string(s))
	}
	return out
}

func (s *Server) workRoutes() {
	s.mux.HandleFunc("GET /work", s.workShow)
	s.mux.HandleFunc("GET /work/items", s.itemList)
	s.mux.HandleFunc("GET /work/items/{id}", s.itemShow)
	s.mux.HandleFunc("POST /work/items/{id}/{op}", s.itemChange)
	s.mux.HandleFunc("POST /work/add", s.itemAdd)
	if s.deps.LoopDir != "" {
		s.mux.HandleFunc("POST /work/loop/{op}", s.loopAsk)
	}
}

// loopView is what there is to see of the project's loop.
type loopView struct {
	Ever      bool // there was one
	Running   bool
	PID       int
	State     core.State
	Metrics   loop.Metrics
	Interrupt *core.Interrupt
	Asked     time.Time // when the interrupt came
	HoldUntil time.Time
	Workers   []workerRow
	Parked    []string
	Open      []*ask          // what waits for a person
	Given     []loop.Question // what is answered, and no session was told yet
	Trouble   string
	Stuck     []string // what cannot be done at the moment, a sentence each
	Budget    []gauge
	Idle      string // why nobody works, although nothing keeps the loop from it
	Reached   string // field of the ceiling at which it waits, "" where it does not
}

// gauge is how much of a ceiling is used up.
type gauge struct {
	Name, Used, Of string
	Part           float64 // 0 to 1
}

// ask is a question with the form that answers it.
type ask struct {
	loop.Question
	Action string // where the form goes
	Worker string // of the fleet, on which it is, "" for the loop here
}

type workerRow struct {
	N             int
	Step          string
	Item, Run     string
	Elapsed       time.Duration
	Tokens        int64
	Calls         int
	Tool, Waiting string
	Stopping      bool
}

func (s *Server) loopView() loopView {
	var v loopView
	dir := s.deps.LoopDir
	if dir == "" {
		return v
	}
	state, err := loop.ReadState(dir)
	if err != nil {
		v.Trouble = err.Error()
		return v
	}
	running, owner, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		v.Trouble = err.Error()
	}
	v.Running = running
	if running {
		v.PID = owner.Process.PID
	}
	if state == nil {
		return v
	}
	if why := loop.Unsaved(dir, state, s.deps.Now()); running && why != "" {
		v.Stuck = append(v.Stuck, "The loop cannot go on: "+why+".")
	}
	v.Ever, v.State, v.Metrics, v.Interrupt = true, *state, loop.MetricsOf(*state), state.Interrupt
	if state.Interrupt != nil {
		v.Asked = state.Interrupt.At.Wall
	}
	if state.Phase == core.Working && state.HoldUntil > state.Now.Loop {
		v.HoldUntil = state.Now.Wall.Add(state.HoldUntil - state.Now.Loop)
	}
	for i := range state.Slots {
		p := &state.Slots[i]
		if running && p.Trouble != "" {
			v.Stuck = append(v.Stuck, strings.TrimSpace(fmt.Sprintf("Worker %d could not do this, and tries again: %s %s", i+1, p.Claim.Item.ID, p.Trouble)))
		}
		w := workerRow{N: i + 1, Step: string(p.Step), Item: p.Claim.Item.ID, Run: p.Run, Stopping: p.Stop != ""}
		if r, err := s.deps.Runs.Get(p.Run); err == nil {
			w.Elapsed, w.Tokens, w.Calls, w.Tool, w.Waiting = r.Elapsed(s.deps.Now()), r.Heartbeat.Tokens, r.Heartbeat.ToolCalls, r.Heartbeat.LastTool, r.Heartbeat.Retrying
		}
		v.Workers = append(v.Workers, w)
	}
	for id, m := range state.Items {
		if m.Parked {
			v.Parked = append(v.Parked, id)
		}
	}
	slices.Sort(v.Parked)
	if s.deps.Queue != nil {
		var list []loop.Question
		err := s.queueGone.unless(s.deps.Now, func() (err error) {
			list, err = loop.Questions(context.Background(), dir, state, s.deps.Queue)
			return err
		})
		if err != nil {
			v.Trouble = err.Error()
		}
		for _, q := range list {
			switch {
			case q.Open():
				v.Open = append(v.Open, &ask{q, "/work/loop/resume", ""})
			case q.Answer != "":
				v.Given = append(v.Given, q)
			}
		}
	}
	v.Budget, v.Reached = gaugesOf(v.Metrics), reached(v.Interrupt, v.Metrics)
	if running && v.HoldUntil.IsZero() {
		v.Idle = idle(state)
	}
	return v
}

// idle is why nobody works in a loop, although nothing keeps it from that; "" where somebody
// does.
func idle(state *core.State) string {
	switch {
	case state.Phase != core.Working || state.Busy() > 0:
		return ""
	case state.Left == "" && state.Empty:
		return "the queue is empty"
	}
	return state.Left
}

// reached is the field of the form that raises the ceiling at which a loop waits: without a
// higher one it would wait there again. It is "" where the loop waits for something else.
func reached(i *core.Interrupt, m loop.Metrics) string {
	switch {
	case i == nil || i.Kind != core.ByBudget || i.Halt || len(i.Items) > 0:
		return ""
	case m.Tokens >= m.MaxTokens:
		return "tokens"
	}
	return "usd"
}

// gaugesOf are how much of a loop's ceilings is used up.
func gaugesOf(m loop.Metrics) []gauge {
	return []gauge{
		{"Attempts begun", num(m.Iterations), num(m.MaxIterations), part(float64(m.Iterations), float64(m.MaxIterations))},
		{"Time", term.Took(seconds(m.WorkedSeconds)), term.Took(seconds(m.MaxSeconds)), part(m.WorkedSeconds, m.MaxSeconds)},
		{"US dollars", term.USD(m.CostUSD), term.USD(m.MaxUSD), part(m.CostUSD, m.MaxUSD)},
		{"Tokens", num(m.Tokens), num(m.MaxTokens), part(float64(m.Tokens), float64(m.MaxTokens))},
	}
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

func part(used, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return max(0, min(1, used/of))
}

// lane are the items of one priority that are ready.
type lane struct {
	Priority int
	Word     string
	Items    []itemRow
	Count    int // with those that are not shown
}

type itemRow struct {
	queue.Item
	Detail string
	Runs   string // run that it came to, or that works at it
	Answer string // where what an agent has asked about it is answered, "" where nothing is open
	// Changed is when it came to stand as it does: of an item that is being done, when it was
	// taken.
	Changed time.Time
}

type workPage struct {
	Loop    loopView
	Checks  *CheckState
	Lanes   []lane
	Claimed []itemRow
	Blocked []itemRow
	Dead    []itemRow
	Done    []itemRow
	Counts  map[string]int
	Trouble []queue.Trouble
	Levels  []level
	Away    string // why nothing is known of the queue
}

// level is a priority that a form offers.
type level struct {
	N    int
	Name string
}

func levels() []level {
	var out []level
	for n := range queue.MaxPriority + 1 {
		name := fmt.Sprint(n)
		if w := queue.PriorityWord(n); n == 0 || w != queue.PriorityWord(n-1) {
			name += " " + w
		}
		out = append(out, level{n, name})
	}
	return out
}

func (s *Server) workShow(w http.ResponseWriter, r *http.Request) {
	list, err := s.allItems(r.Context())
	if err != nil && !queue.ForNow(err) {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	p := workPage{Loop: s.loopView(), Checks: s.checkState(r.Context()), Counts: map[string]int{}, Trouble: list.Trouble, Levels: levels()}
	if err != nil {
		p.Away = err.Error()
		s.show(w, r, "work", s.view(r, "work", "Loop & queue", p))
		return
	}
	put := func(rows *[]itemRow, it queue.Item) {
		if len(*rows) < itemsShown {
			*rows = append(*rows, s.itemRow(it))
		}
	}
	byLane := map[int]*lane{}
	for _, n := range []int{0, 2, 5, 8} { // of each word one, so that there is a place to drop an item on
		byLane[n] = &lane{Priority: n, Word: queue.PriorityWord(n)}
	}
	for _, it := range list.Items {
		p.Counts[string(it.State)]++
		switch it.State {
		case queue.Ready:
			n := it.Urgency()
			if byLane[n] == nil {
				byLane[n] = &lane{Priority: n, Word: queue.PriorityWord(n)}
			}
			if byLane[n].Count++; len(byLane[n].Items) < itemsShown {
				byLane[n].Items = append(byLane[n].Items, s.itemRow(it))
			}
		case queue.Claimed:
			put(&p.Claimed, it)
		case queue.Blocked:
			put(&p.Blocked, it)
		case queue.Dead:
			put(&p.Dead, it)
		case queue.Done:
			put(&p.Done, it)
		}
	}
	s.answerable(r.Context(), p.Blocked, p.Loop)
	for n := range queue.MaxPriority + 1 {
		if byLane[n] != nil {
			p.Lanes = append(p.Lanes, *byLane[n])
		}
	}
	s.show(w, r, "work", s.view(r, "work", "Loop & queue", p))
}

func (s *Server) itemRow(it queue.Item) itemRow {
	row := itemRow{Item: it, Changed: it.Updated}
	now := s.deps.Now()
	var d []string
	switch it.State {
	case queue.Ready:
		if it.NotBefore.After(now) {
			d = append(d, "not before "+term.Took(it.NotBefore.Sub(now))+" from now")
		}
	case queue.Claimed:
		row.Changed = it.Claim.Since
		who := it.Claim.Worker
		if who == "" {
			who = "somebody"
		}
		if left := it.Claim.Until.Sub(now); left > 0 {
			d = append(d, who+" has it")
		} else {
			d = append(d, "the lease of "+who+" ran out")
		}
		if pr := it.Progress; pr != nil {
			d = append(d, fmt.Sprintf("step %d of %d %s", pr.StepsCompleted, pr.StepsTotal, pr.CurrentStep))
		}
	case queue.Blocked:
		if it.Waits != "" {
			d = append(d, "waits for "+it.Waits)
		} else if it.Reason != "" {
			d = append(d, "set aside: "+it.Reason)
		} else {
			d = append(d, "set aside")
		}
	case queue.Dead:
		d = append(d, it.Reason, oneLine(160, it.LastError))
	case queue.Done:
		if it.Result != nil {
			d = append(d, it.Result.Summary)
		}
	}
	if it.Attempts > 0 && it.State != queue.Done && it.State != queue.Dead {
		d = append(d, fmt.Sprintf("failed %d of %d: %s", it.Attempts, it.Limit(), oneLine(120, it.LastError)))
	}
	if it.Result != nil {
		row.Runs = it.Result.Run
	}
	row.Detail = strings.Join(slices.DeleteFunc(d, func(s string) bool { return s == "" }), "; ")
	return row
}

type itemListPage struct {
	State      string
	States     []string
	Rows       []itemRow
	Total      int
	Prev, Next int // first row of the page before and after, -1 without one
}

// itemList is every item in one state, page by page.
func (s *Server) itemList(w http.ResponseWriter, r *http.Request) {
	p := itemListPage{State: r.URL.Query().Get("state"), States: queueStates(), Prev: -1, Next: -1}
	if !slices.Contains(p.States, p.State) {
		p.State = string(queue.Ready)
	}
	list, err := s.allItems(r.Context())
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	items := slices.DeleteFunc(slices.Clone(list.Items), func(it queue.Item) bool { return string(it.State) != p.State })
	p.Total = len(items)
	from := max(0, min(number(r, "from"), p.Total))
	to := min(p.Total, from+itemsPerPage)
	for _, it := range items[from:to] {
		p.Rows = append(p.Rows, s.itemRow(it))
	}
	if p.State == string(queue.Blocked) {
		s.answerable(r.Context(), p.Rows, s.loopView())
	}
	if from > 0 {
		p.Prev = max(0, from-itemsPerPage)
	}
	if to < p.Total {
		p.Next = to
	}
	s.show(w, r, "items", s.view(r, "work", "Items", p))
}

type itemPage struct {
	Item   itemRow
	Levels []level
	Data   string
	Branch *branchRow // where its work is, done and not merged
}

func (s *Server) itemShow(w http.ResponseWriter, r *http.Request) {
	it, err := s.deps.Queue.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		s.workFail(w, r, err)
		return
	}
	p := itemPage{Item: s.itemRow(it), Levels: levels(), Data: string(it.Data)}
	switch it.State {
	case queue.Done:
		p.Branch = s.branchOf(r.Context(), it.ID)
	case queue.Blocked:
		p.Item.Answer = s.boxes(r.Context(), s.loopView())[it.ID]
	case queue.Ready, queue.Claimed, queue.Dead:
	}
	s.show(w, r, "item", s.view(r, "work", it.Title, p))
}

func (s *Server) workFail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, queue.ErrNotFound):
		s.fail(w, r, http.StatusNotFound, err)
	case errors.Is(err, queue.ErrState), errors.Is(err, queue.ErrLost), errors.Is(err, queue.ErrCycle), errors.Is(err, loop.ErrUnanswered):
		s.fail(w, r, http.StatusConflict, err)
	case errors.Is(err, queue.ErrInvalid):
		s.fail(w, r, http.StatusBadRequest, err)
	default:
		s.fail(w, r, http.StatusInternalServerError, err)
	}
}

// itemChange is a person's change of an item: the same as by `reprise queue`.
func (s *Server) itemChange(w http.ResponseWriter, r *http.Request) {
	ctx, q, id := r.Context(), s.deps.Queue, r.PathValue("id")
	why := strings.TrimSpace(r.PostForm.Get("why"))
	if why == "" {
		why = "on the dashboard"
	}
	if err := s.deps.Claim(ctx); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	var err error
	note := ""
	switch r.PathValue("op") {
	case "priority":
		var n int
		if n, err = queue.ParsePriority(r.PostForm.Get("priority")); err == nil {
			_, err = q.Edit(ctx, id, queue.Edit{Priority: &n, Note: why})
		}
		note = "moved"
	case "retry":
		_, err = q.Retry(ctx, id, why)
		note = "retried"
	case "park":
		_, err = q.Park(ctx, id, "", why)
		note = "parked"
	case "unpark":
		var there fleetState // none without a fleet
		if s.deps.Fleet != nil {
			if there, err = s.fleetNow(ctx); err != nil {
				break
			}
		}
		_, err = elsewhere.PutBack(ctx, s.deps.Fleet, s.deps.LoopDir, there.Loops, q, id, why)
		note = "unparked"
	case "drop":
		_, err = q.Drop(ctx, id, why)
		note = "dropped"
	default:
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such change of an item"))
		return
	}
	if err != nil {
		s.workFail(w, r, err)
		return
	}
	s.done(w, r, back(r, "/work"), note)
}

// back is where a form wants to return to: a page of ours by its fixed name.
func back(r *http.Request, other string) string {
	if r.PostForm.Get("back") == "item" {
		return "/work/items/" + r.PathValue("id")
	}
	return other
}

func (s *Server) itemAdd(w http.ResponseWriter, r *http.Request) {
	it := queue.Item{Title: strings.TrimSpace(r.PostForm.Get("title")), Body: normal(r.PostForm.Get("body")), Source: "dashboard"}
	n, err := queue.ParsePriority(r.PostForm.Get("priority"))
	if err != nil {
		s.workFail(w, r, err)
		return
	}
	it.Priority = &n
	if err := s.deps.Claim(r.Context()); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	if _, err := s.deps.Queue.Add(r.Context(), it); err != nil {
		s.workFail(w, r, err)
		return
	}
	s.done(w, r, "/work", "added")
}

// normal is a form's text with the line ends that files have; browsers send others.
func normal(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// loopAsk leaves a request for the loop, as `reprise loop` does.
func (s *Server) loopAsk(w http.ResponseWriter, r *http.Request) {
	dir := s.deps.LoopDir
	running, owner, err := loop.Running(durable.Disk{}, dir)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, err)
		return
	}
	req := loop.Request{At: s.deps.Now()}
	var answers []loop.Request
	note, needed := "", true
	switch r.PathValue("op") {
	case "pause":
		req.Kind, note = "pause", "paused"
	case "stop":
		req.Kind, req.Why, req.Drain, note = "stop", "a person stopped it on the dashboard", r.PostForm.Get("drain") != "", "stopping"
		if req.Drain {
			note = "draining"
		}
	case "interrupt":
		if req.Kind, req.Why, note = "interrupt", strings.TrimSpace(r.PostForm.Get("why")), "interrupt"; req.Why == "" {
			s.fail(w, r, http.StatusBadRequest, errors.New("say why: it is what the agents and the report are told"))
			return
		}
	case "resume":
		note, needed = "resumed", false
		var raised bool
		var code int
		if answers, raised, code, err = s.resumeAsked(r); err != nil {
			s.fail(w, r, code, err)
			return
		}
		answered := slices.ContainsFunc(answers, func(one loop.Request) bool { return one.Answer != "" })
		switch {
		case !running && answered:
			note = "waits"
		case !running:
			note = "waits-so"
		case raised:
			note = "raised"
		case answered:
			note = "answered"
		}
	default:
		s.fail(w, r, http.StatusNotFound, errors.New("there is no such request of a loop"))
		return
	}
	if !running && needed {
		s.fail(w, r, http.StatusConflict, errors.New("no loop of this project runs; `reprise loop run` starts one"))
		return
	}
	if running {
		req.Loop = owner.Loop // a loop that begins meanwhile is not meant
	}
	if err := s.deps.Claim(r.Context()); err != nil {
		s.fail(w, r, http.StatusConflict, err)
		return
	}
	if answers == nil {
		answers = []loop.Request{req}
	}
	for _, one := range answers {
		one.At = req.At
		if one.Answer == "" {
			one.Loop = req.Loop // an answer is for its question, whichever loop reads it
		}
		if err := loop.Ask(durable.Disk{}, dir, one); err != nil {
			s.fail(w, r, http.StatusInternalServerError, err)
			return
		}
	}
	s.done(w, r, "/work", note)
}

// resumeAsked are the requests of who answers, or lets the loop go on. code is the status
// that goes with the error.
func (s *Server) resumeAsked(r *http.Request) (out []loop.Request, raised bool, code int, err error) {
	say, err := saidIn(r)
	if err != nil {
		return nil, false, http.StatusBadRequest, err
	}
	state, err := loop.ReadState(s.deps.LoopDir)
	if err != nil {
		return nil, false, http.StatusInternalServerError, err
	}
	if state == nil {
		return nil, false, http.StatusConflict, errors.New("there has been no loop here yet, so nothing waits for an answer")
	}
	list, err := loop.Questions(r.Context(), s.deps.LoopDir, state, s.deps.Queue)
	if err != nil {
		return nil, false, http.StatusInternalServerError, err
	}
	soon, err := loop.Raised(s.deps.LoopDir, state) // by what no loop has read yet, too
	if err != nil {
		return nil, false, http.StatusInternalServerError, err
	}
	out, err = loop.Requests(&soon, list, say)
	return out, say.More != nil, http.StatusConflict, err
}

// errForm says that a form has a value that cannot be taken.
var errForm = errors.New("the form cannot be taken")

// saidIn is what a form says to a loop that waits.
func saidIn(r *http.Request) (say loop.Said, err error) {
	say = loop.Said{Answer: strings.TrimSpace(normal(r.PostForm.Get("answer"))), NoAnswer: r.PostForm.Get("no_answer") != ""}
	if item := r.PostForm.Get("item"); item != "" {
		say.Items = []string{item}
	}
	if say.More, err = more(r.PostForm); err != nil {
		return say, fmt.Errorf("%w: %w", errForm, err)
	}
	return say, nil
}

// more is by how much a form raises the ceilings of a loop; nil where it does not.
func more(form url.Values) (*loop.More, error) {
	var m loop.More
	value := func(name string, most float64) (float64, error) {
		text := strings.TrimSpace(form.Get(name))
		if text == "" {
			return 0, nil
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f < 0 || f > most || math.IsNaN(f) {
			return 0, fmt.Errorf("%.40q is no number of more %s, from 0 to %s: a ceiling can be raised only", text, name, term.Num(int64(most)))
		}
		return f, nil
	}
	attempts, err := value("attempts", 1e6)
	usd, uerr := value("usd", 1e6)
	tokens, terr := value("tokens", 1e12)
	hours, herr := value("hours", 24*366)
	if err := cmp.Or(err, uerr, terr, herr); err != nil {
		return nil, err
	}
	m.USD, m.Tokens, m.Iterations, m.Time = usd, int64(tokens), int(attempts), time.Duration(hours*float64(time.Hour))
	if m == (loop.More{}) {
		return nil, nil
	}
	return &m, nil
}

// Urgency is the item's priority as a number.
func (r itemRow) Urgency() int { return r.Item.Urgency() }
