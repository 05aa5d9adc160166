package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"reprise/internal/agent"
	"reprise/internal/config"
	"reprise/internal/fleet"
	"reprise/internal/fleet/fleettest"
	"reprise/internal/loop"
	"reprise/internal/loop/core"
	"reprise/internal/queue"
	"reprise/internal/relay"
	"reprise/internal/run"
	"reprise/internal/term"
	"reprise/internal/worker/elsewhere"
)

// abroad is a dashboard of a fleet, and a worker of it on another machine.
type abroad struct {
	*house
	server *server.Server
	conn   *fleet.Conn // the worker's
	relay  *relay.Relay
	asked  chan string // what the worker was asked for
	ended  atomic.Bool // the run is
	copied sync.WaitGroup
	out    string // what the run says, on the worker's machine
}

const (
	liveRun = "run-aaaaaaaaaa"
	pastRun = "run-bbbbbbbbbb"
)

func spoken(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"type":"assistant","message":{"content":[{"type":"text","text":` + string(data) + `}]}}` + "\n"
}

func fleetHouse(t *testing.T, change func(*Deps)) *abroad {
	t.Helper()
	a := &abroad{server: fleettest.Server(t), asked: make(chan string, 10), out: filepath.Join(t.TempDir(), "stdout.jsonl")}
	connect := func(name string) *fleet.Conn {
		c, err := fleet.Connect(t.Context(), fleet.Options{Servers: a.server.ClientURL(), Settings: config.Fleet{Namespace: "t"}, Name: name, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	a.conn = connect("worker")
	a.relay = relay.Open(a.conn, "shop")
	a.house = open(t, func(d *Deps) {
		d.Fleet = &elsewhere.Fleet{Conn: connect("dashboard"), Project: "shop", LoopDir: d.LoopDir, Runs: d.Runs, Queue: func(string) (queue.Queue, error) { return d.Queue, nil }, Now: testNow}
		if change != nil {
			change(d)
		}
	})
	return a
}

// begin has the worker say what it does: it works at one item, and asks about another.
func (a *abroad) begin() {
	t := a.t
	t.Helper()
	a.add(queue.Item{ID: "colour", Title: "Ask the colour " + strings.Join(strings.Fields(hostile), " ")}, queue.Item{ID: "slow", Title: "Go slowly"})
	if _, err := a.deps.Queue.Park(t.Context(), "colour", "", "asks"); err != nil {
		t.Fatal(err)
	}
	a.beat()
	s := core.New("loop-1", core.DefaultLimits(), core.Time{Wall: testNow()})
	s.Items["colour"] = core.Memory{Parked: true, Kind: core.ByAgent, Asked: "Which colour? " + hostile, Number: 7}
	data, err := json.Marshal(s)
	if err == nil {
		err = a.relay.PutState(t.Context(), "build-1", data)
	}
	if err == nil {
		err = os.WriteFile(a.out, []byte(spoken("the first words")+spoken(hostile)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		a.copied.Wait()
	})
	a.copied.Go(func() {
		_ = a.relay.Mirror(ctx, liveRun, a.out, func() []byte {
			if !a.ended.Load() {
				return nil
			}
			return record(t, liveRun, run.Completed)
		})
	})
	a.copied.Go(func() {
		_ = a.relay.Asked(ctx, "build-1", func(_ string, data []byte) error {
			a.asked <- string(data)
			return nil
		})
	})
}

func (a *abroad) beat() {
	a.t.Helper()
	err := relay.Beat(a.t.Context(), a.conn, relay.Worker{Name: "build-1", Host: "far " + hostile, Since: testNow(), Clients: []string{"script"}, Projects: []string{"shop"}, Room: 2, Doing: []relay.Doing{
		{Project: "shop", Item: "slow", Step: "running", Run: liveRun, Client: "claude", Since: testNow(), ToolCalls: 3, LastTool: "Bash", Tokens: 1234},
	}})
	if err != nil {
		a.t.Fatal(err)
	}
}

// record is the record of a run as its worker sends it. Its files are on that machine.
func record(t testing.TB, id string, status run.Status) []byte {
	now, code := testNow().UTC(), 0
	data, err := json.Marshal(run.Record{V: 1, ID: id, Status: status, StatusReason: hostile, StartedAt: now.Add(-time.Minute), StatusUpdatedAt: now, EndedAt: &now, ExitCode: &code,
		Client: "claude", Project: "shop", WorkDir: "/far/away", Origin: "loop", DelegationPath: []string{}, Logs: run.Logs{Stdout: "/etc/passwd"}})
	if err != nil {
		t.Error(err)
	}
	return data
}

// until waits for a page to be as it is asked for.
func (a *abroad) until(path string, ok func(body string) bool) string {
	a.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		body := a.page(path)
		if ok(body) {
			return body
		}
		if time.Now().After(deadline) {
			a.t.Fatalf("not within a minute: GET %s is\n%s", path, body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func has(words ...string) func(string) bool {
	return func(body string) bool {
		for _, w := range words {
			if !strings.Contains(body, w) {
				return false
			}
		}
		return true
	}
}

// What workers do is shown from any machine, and nothing that they say does anything there;
// what is asked on the page reaches the worker.
func TestFleet(t *testing.T) {
	a := fleetHouse(t, nil)
	if body := a.page("/fleet"); !strings.Contains(body, "reprise worker") || !strings.Contains(body, "no worker lives") {
		t.Errorf("the page without a worker: %s", body)
	}
	a.begin()
	body := a.until("/fleet", has("build-1", "Which colour?", "Go slowly", "/fleet/runs/"+liveRun, term.Num(1234), "with room for 2 items"))
	checkHarmless(t, "/fleet", body)
	overview := a.page("/")
	checkHarmless(t, "/", overview)
	if !has("The worker build-1 waits for your answer about colour: Which colour?", "room for 2 items, 1 run at work")(overview) {
		t.Errorf("the overview: %s", overview)
	}
	page := a.until("/fleet/runs/"+liveRun, has("the first words", "build-1", "data-stream=", "Go slowly"))
	checkHarmless(t, "/fleet/runs", page)

	// An answer is for its question; silence, another item and another worker are refused.
	for path, bad := range map[string]url.Values{
		"/fleet/loops/build-1/resume": {"item": {"colour"}, "answer": {" "}}, "/fleet/loops/build-1/resume?2": {"item": {"other"}, "answer": {"red"}},
	} {
		if code, _ := a.send(path, bad); code != http.StatusConflict {
			t.Errorf("%s %v: %d", path, bad, code)
		}
	}
	for path, want := range map[string]int{"/fleet/loops/build-2/resume": http.StatusNotFound, "/fleet/loops/build-1/eat": http.StatusNotFound, "/fleet/runs/run-cccccccccc/stop": http.StatusNotFound} {
		if code, _ := a.send(path, url.Values{"item": {"colour"}, "answer": {"red"}}); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if code, text := a.send("/work/items/colour/unpark", url.Values{}); code != http.StatusConflict || !strings.Contains(text, "build-1") {
		t.Errorf("put back in silence: %d %s", code, text)
	}
	if code, to := a.send("/fleet/loops/build-1/resume", url.Values{"item": {"colour"}, "answer": {"red,\r\nplease"}}); code != http.StatusSeeOther || !strings.HasSuffix(to, "/fleet?done=asked") {
		t.Fatalf("%d %s", code, to)
	}
	var req loop.Request
	if got := a.heard(); json.Unmarshal([]byte(got), &req) != nil || req.Kind != "resume" || req.Answer != "red,\nplease" || len(req.Items) != 1 || req.Items[0] != "colour" || req.Number != 7 {
		t.Errorf("the worker was asked %s", got)
	}
	for op, want := range map[string]string{"pause": `"pause"`, "stop": `"stop"`} {
		if code, _ := a.send("/fleet/loops/build-1/"+op, url.Values{}); code != http.StatusSeeOther {
			t.Fatalf("%s: %d", op, code)
		}
		if got := a.heard(); !strings.Contains(got, want) || !strings.Contains(got, `"loop-1"`) {
			t.Errorf("%s: the worker was asked %s", op, got)
		}
	}
	if code, _ := a.send("/fleet/runs/"+liveRun+"/stop", url.Values{}); code != http.StatusSeeOther {
		t.Fatal(code)
	}
	if c, ok := elsewhere.CancelAsked([]byte(a.heard())); !ok || c.Run != liveRun {
		t.Errorf("the worker was asked to stop %+v", c)
	}
}

// heard is the next thing that the worker was asked for.
func (a *abroad) heard() string {
	a.t.Helper()
	select {
	case got := <-a.asked:
		return got
	case <-time.After(time.Minute):
		a.t.Fatal("the worker heard nothing within a minute")
		return ""
	}
}

// What a run on another machine says comes as it is said, from where the page was, and its
// end; then the run is among those that have ended, with its result and its files.
func TestFleetRunStreams(t *testing.T) {
	a := fleetHouse(t, nil)
	a.begin()
	a.until("/fleet/runs/"+liveRun, has("the first words"))
	said := func(s string) {
		f, err := os.OpenFile(a.out, os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(s)
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	result := filepath.Join(t.TempDir(), "result.json")
	data, err := json.Marshal(agent.Result{Text: "It is **done**. " + hostile, NumTurns: 3, Tools: map[string]int{"Bash": 4}})
	if err == nil {
		err = os.WriteFile(result, data, 0o600)
	}
	if err == nil {
		err = a.relay.PutFile(t.Context(), liveRun, "result.json", result)
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	got := a.events("/fleet/runs/"+liveRun+"/stream?from=0", func(e []string) bool { return strings.Contains(strings.Join(e, ""), "event: ended") }, func(n int) {
		switch n {
		case 1:
			said(spoken("the second words"))
		case 2:
			said(spoken("the last words"))
			a.ended.Store(true)
		}
	})
	all := strings.Join(got, "")
	checkHarmless(t, "the stream", all)
	if !has("<p>the first words</p>", "<p>the second words</p>", "<p>the last words</p>")(all) || strings.Count(all, "first words") != 1 {
		t.Errorf("the stream is %q", got)
	}
	for _, e := range got {
		if id, ok := strings.CutPrefix(e, "id: "); ok {
			id, _, _ = strings.Cut(id, "\n")
			ids = append(ids, id)
		}
	}
	// Who lost the connection goes on where it was.
	if again := strings.Join(a.events("/fleet/runs/"+liveRun+"/stream?from="+ids[0], func(e []string) bool { return strings.Contains(strings.Join(e, ""), "event: ended") }, nil), ""); strings.Contains(again, "first words") || !has("second words", "last words")(again) {
		t.Errorf("from %s on the stream is %q", ids[0], again)
	}
	if code, _ := a.get("/fleet/runs/" + liveRun + "/stream?from=x"); code != http.StatusBadRequest {
		t.Errorf("from=x: %d", code)
	}
	page := a.until("/fleet/runs/"+liveRun, has("completed", "<strong>done</strong>", "the last words", "result.json", "Bash <b>4</b>"))
	checkHarmless(t, "the run's page", page)
	if strings.Contains(page, "root:") || strings.Contains(page, "data-stream") {
		t.Error("the page has a file of this machine, or follows what has ended")
	}
}

// A page of a run that said much is a window of it, and what came before is a page away.
func TestFleetRunInParts(t *testing.T) {
	a := fleetHouse(t, nil)
	long := strings.Repeat("x", 90<<10)
	var b strings.Builder
	for _, n := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight"} {
		b.WriteString(spoken("word " + n))
		b.WriteString(spoken(long))
	}
	if err := os.WriteFile(a.out, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.relay.Mirror(t.Context(), pastRun, a.out, func() []byte { return record(t, pastRun, run.Failed) }); err != nil {
		t.Fatal(err)
	}
	last := a.until("/fleet/runs/"+pastRun, has("word eight"))
	if strings.Contains(last, "word one") || !strings.Contains(last, "Earlier output") {
		t.Fatal("the last window is not what the page shows")
	}
	_, rest, _ := strings.Cut(last, `href="?from=`)
	from, _, _ := strings.Cut(rest, `"`)
	first := a.page("/fleet/runs/" + pastRun + "?from=" + from)
	if !has("word one", "Later output")(first) || strings.Contains(first, "word eight") {
		t.Errorf("the page before does not begin at the beginning, or shows all")
	}
	if body := a.until("/fleet", has(pastRun)); !strings.Contains(body, "failed") {
		t.Error("a run that has ended is not in the list")
	}
}

// Who only looks has no form; where the servers are away, pages say so, and quickly.
func TestFleetReadOnlyAndAway(t *testing.T) {
	a := fleetHouse(t, func(d *Deps) { d.ReadOnly = true })
	a.begin()
	body := a.until("/fleet", has("Which colour?", "Go slowly"))
	if strings.Contains(body, `method="post"`) || strings.Contains(a.page("/fleet/runs/"+liveRun), `method="post"`) {
		t.Error("a page that changes nothing has a form")
	}
	a.server.Shutdown()
	a.server.WaitForShutdown()
	a.until("/fleet", has("cannot be reached"))
	a.until("/", has("cannot be reached"))
}

// A queue whose servers are away is not an empty one, and is asked once for a page.
func TestQueueIsAway(t *testing.T) {
	asked := 0
	a := fleetHouse(t, func(d *Deps) { d.Queue = awayQueue{d.Queue, &asked} })
	for path, want := range map[string]string{"/": "Not known at the moment", "/work": "Nothing is known of the queue"} {
		asked = 0
		body := a.page(path)
		if !has(want, "the servers are away")(body) || has("Nothing is ready")(body) || has("<span>ready</span>")(body) {
			t.Errorf("%s:\n%s", path, body)
		}
		if asked > 1 {
			t.Errorf("%s asks %d times", path, asked)
		}
	}
}

// awayQueue is a queue whose servers are away.
type awayQueue struct {
	queue.Queue
	asked *int
}

func (q awayQueue) List(context.Context, queue.Filter) (queue.Listing, error) {
	*q.asked++
	return queue.Listing{}, queue.Away(errors.New("the servers are away"))
}

// What workers say is drawn anew by itself, and a look at files does not wait for servers.
func TestFleetIsLive(t *testing.T) {
	a := fleetHouse(t, nil)
	a.begin()
	seen := 0
	a.events("/live", func(e []string) bool {
		seen = strings.Count(strings.Join(e, ""), "fleet")
		return seen >= 2
	}, func(int) { a.beat() })
}

// Where the queue is on this machine there is no such page.
func TestNoFleetNoPage(t *testing.T) {
	h := open(t, nil)
	if strings.Contains(h.page("/"), "/fleet") {
		t.Error("the overview leads to a page that is not there")
	}
	if code, _ := h.get("/fleet"); code != http.StatusNotFound {
		t.Errorf("GET /fleet: %d", code)
	}
}
