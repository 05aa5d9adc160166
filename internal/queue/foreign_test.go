package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/internal/queue"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// one is the only file of a directory that has the text in its name.
func one(t *testing.T, dir, text string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"+text+"*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("files with %q in %s: %v (%v)", text, dir, list, err)
	}
	return list[0]
}

// What the queue did not write is named, left byte for byte, and in nobody's way.
func TestForeignAndDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "good", Title: "good"}, queue.Item{ID: "hurt", Title: "hurt", Priority: new(int)}, queue.Item{ID: "waits", Title: "waits", DependsOn: []string{"good"}}); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "queue")
	ready := filepath.Join(root, "ready")
	hurt := one(t, ready, "~hurt.json")
	put(t, hurt, `{"v":1,"id":"hurt","title":`)
	foreign := map[string]string{
		filepath.Join(ready, "README.txt"):                                                  "notes",
		filepath.Join(ready, ".DS_Store"):                                                   "\x00\x01",
		filepath.Join(ready, "p1~c0000000000000001~n0~f0~e0~x.json"):                        `{"v":9,"id":"x","title":"from a newer program"}`,
		filepath.Join(ready, "p1~c0000000000000002~n0~f0~e0~y.json"):                        `{"v":1,"id":"other","title":"another id"}`,
		filepath.Join(ready, "p1~c0000000000000003~n0~f0~e0~z.json"):                        `[]`,
		filepath.Join(root, "claimed", "p1~cx~f1.json"):                                     "",
		filepath.Join(root, "claimed", "p1~c0000000000000004~f1~e0~s1~u2~l1000~h~w~c.json"): "\xff",
		filepath.Join(root, "blocked", "h~p1~c0000000000000005~n0~f0~e0~b.json"):            "{}",
		filepath.Join(root, "done", "Upper.json"):                                           "{}",
		filepath.Join(root, "dead", "d.json"):                                               `{"v":1,"id":"d","priority":77}`,
		hurt:                                                                                `{"v":1,"id":"hurt","title":`,
	}
	for path, text := range foreign {
		put(t, path, text)
	}
	if err := os.Mkdir(filepath.Join(ready, "p1~c0000000000000006~n0~f0~e0~dir.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	q = files(unsynced(), dir, at(time.Hour))
	for _, want := range []string{"good", "waits"} {
		c, err := q.Claim(ctx, queue.ClaimOptions{})
		if err != nil || c.Item.ID != want {
			t.Fatalf("claimed %q, want %s (%v)", c.Item.ID, want, err)
		}
		if _, err := q.Done(ctx, c.Token, queue.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
		t.Fatal(err)
	}
	l, err := q.List(ctx, queue.Filter{})
	if err != nil || len(l.Items) != 2 || len(l.Trouble) != len(foreign)+1 {
		t.Fatalf("%d items, %d troubles, want 2 and %d (%v)\n%v", len(l.Items), len(l.Trouble), len(foreign)+1, err, l.Trouble)
	}
	rep, err := q.Check(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range foreign {
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%s: now %q (%v)", path, data, err)
		}
		if !slices.ContainsFunc(rep.Problems, func(p queue.Problem) bool { return p.Where == path && !p.Mended }) {
			t.Errorf("%s is not named: %v", path, rep.Problems)
		}
	}
	if _, err := q.Get(ctx, "hurt"); !errors.Is(err, queue.ErrDamaged) {
		t.Errorf("a damaged item: %v", err)
	}
	if _, err := q.Add(ctx, queue.Item{ID: "hurt", Title: "again"}); !errors.Is(err, queue.ErrDamaged) {
		t.Errorf("adding over a damaged item: %v", err)
	}
	// Mended by hand, it is an item again, and those who have looked before see it.
	put(t, hurt, `{"v":1,"id":"hurt","title":"mended","priority":0}`)
	if c, err := files(unsynced(), dir, at(time.Hour)).Claim(ctx, queue.ClaimOptions{}); err != nil || c.Item.Title != "mended" {
		t.Fatal(c, err)
	}
}

// An item whose title a hand took out is left alone, as damaged: nobody could say what is to be done.
func TestUntitledByHand(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"}); err != nil {
		t.Fatal(err)
	}
	put(t, one(t, filepath.Join(dir, "queue", "ready"), "~a.json"), `{"v":1,"id":"a","title":" ","priority":0}`)
	q = files(unsynced(), dir, at(time.Hour))
	if c, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil || c.Item.ID != "b" {
		t.Fatal(c, err)
	}
	if _, err := q.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
		t.Fatal(err)
	}
	l, err := q.List(ctx, queue.Filter{})
	if err != nil || len(l.Trouble) != 1 || !strings.Contains(l.Trouble[0].Why, "it has no title") {
		t.Errorf("%v, %v, %v", l.Items, l.Trouble, err)
	}
}

// What a person writes into an item's file counts, and what they add to it is kept.
func TestEditedByHand(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"}, queue.Item{ID: "c", Title: "c"}, queue.Item{ID: "d", Title: "d"}); err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(dir, "queue", "ready")
	edit := func(id, from, to string) {
		path := one(t, ready, "~"+id+".json")
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), from) {
			t.Fatalf("%s: %v\n%s", id, err, data)
		}
		put(t, path, strings.Replace(string(data), from, to, 1))
	}
	edit("a", `"title": "a",`, `"title": "a", "depends_on": ["d"], "x_note": {"by": ["hand", "}"]},`)
	edit("b", `"title": "b",`, `"title": "b", "not_before": "2026-03-01T23:00:00Z",`)
	edit("d", `"title": "d",`, `"title": "d", "priority": 0,`)
	q = files(unsynced(), dir, at(time.Minute))
	rep, err := q.Check(ctx, false)
	if err != nil || len(rep.Problems) != 3 {
		t.Fatalf("%+v %v", rep, err)
	}
	c, err := q.Claim(ctx, queue.ClaimOptions{}) // a and b turn out not to be ready
	if err != nil || c.Item.ID != "c" {
		t.Fatal(c.Item.ID, err)
	}
	if rep, err = q.Check(ctx, true); err != nil || len(rep.Problems) != 1 || !rep.Problems[0].Mended {
		t.Fatalf("%+v %v", rep, err)
	}
	d, err := q.Claim(ctx, queue.ClaimOptions{})
	if err != nil || d.Item.ID != "d" || d.Item.Urgency() != 0 {
		t.Fatal(d.Item, err)
	}
	if _, err := q.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
		t.Fatal(err)
	}
	if _, err := q.Done(ctx, d.Token, queue.Outcome{}); err != nil {
		t.Fatal(err)
	}
	a, err := q.Claim(ctx, queue.ClaimOptions{})
	if err != nil || a.Item.ID != "a" {
		t.Fatal(a.Item.ID, err)
	}
	if _, err := q.Done(ctx, a.Token, queue.Outcome{Summary: "}\n}"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "queue", "done", "a.json"))
	if err != nil || !strings.Contains(string(data), `"x_note"`) || !strings.Contains(string(data), `"hand"`) {
		t.Fatalf("%v\n%s", err, data)
	}
	// A file that a hand moved to another directory is what that directory says.
	if err := os.Rename(filepath.Join(dir, "queue", "done", "a.json"), filepath.Join(dir, "queue", "dead", "a.json")); err != nil {
		t.Fatal(err)
	}
	if it, err := q.Retry(ctx, "a", ""); err != nil || it.State != queue.Ready {
		t.Fatal(it, err)
	}
}

// A copy of an item made by hand does not make it be done twice.
func TestCopiedByHand(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}); err != nil {
		t.Fatal(err)
	}
	path := one(t, filepath.Join(dir, "queue", "ready"), "~a.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := claimA(ctx, q); err != nil {
		t.Fatal(err)
	}
	if err := doneA(ctx, q); err != nil {
		t.Fatal(err)
	}
	put(t, path, string(data))
	q = files(unsynced(), dir, at(0))
	if c, err := q.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
		t.Fatal(c, err)
	}
	if it, err := q.Get(ctx, "a"); err != nil || it.State != queue.Done {
		t.Fatal(it.State, err)
	}
	rep, err := q.Check(ctx, true)
	if err != nil || len(rep.Problems) != 1 || rep.Problems[0].Where != path {
		t.Fatalf("%+v %v", rep, err)
	}
}

// A hand that removes a directory of the queue, or all of it, while it is used: who has a
// claim is told that it is over, and does not make the queue again by asking; what is
// added afterwards begins it anew.
func TestDirectoriesRemoved(t *testing.T) {
	ctx := t.Context()
	for _, gone := range []string{"", "claimed", "done", "blocked", "ready"} {
		t.Run("queue/"+gone, func(t *testing.T) {
			dir := t.TempDir()
			q := files(unsynced(), dir, at(0))
			if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"}); err != nil {
				t.Fatal(err)
			}
			if err := claimA(ctx, q); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "queue", gone)); err != nil {
				t.Fatal(err)
			}
			_, err := q.Extend(ctx, "a@1", 0)
			if lost := gone == "" || gone == "claimed"; lost != queue.Over(err) || !lost && err != nil {
				t.Fatalf("extend: %v", err)
			}
			if err := doneA(ctx, q); (err != nil) != queue.Over(err) {
				t.Fatalf("done: %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "queue")); gone == "" && err == nil {
				t.Fatal("it was made again by a word under a token")
			}
			want := "b"
			if gone == "" || gone == "ready" {
				want = "c"
			}
			if _, err := q.Claim(ctx, queue.ClaimOptions{}); want != "b" && !errors.Is(err, queue.ErrEmpty) || want == "b" && err != nil {
				t.Fatalf("claim: %v", err)
			}
			if _, err := q.Add(ctx, queue.Item{ID: "c", Title: "c"}); err != nil {
				t.Fatal(err)
			}
			if c, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil || c.Item.ID != "c" {
				t.Fatal(c.Item.ID, err)
			}
		})
	}
}

// A second name of an item, by a hard link or a copy, in whatever directory, counts nowhere:
// not in a listing or a count, not as something that is ready or will be, not for a
// claim, and not when claims of vanished workers are given back. It is named, and stays.
func TestSecondNames(t *testing.T) {
	ctx := t.Context()
	names := map[string]string{
		"ready":   "p5~c0000000000000001~n0~f0~e0~a.json",
		"later":   "p5~c0000000000000001~n99999999999999~f0~e0~a.json",
		"claimed": "p5~c0000000000000001~f1~e0~s1~u2~l1000~h~ww~a.json",
		"blocked": "wb~p5~c0000000000000001~n0~f1~e0~a.json",
	}
	for what, name := range names {
		for _, state := range []queue.State{queue.Done, queue.Dead} {
			t.Run(string(state)+", "+what, func(t *testing.T) {
				dir := t.TempDir()
				q := files(unsynced(), dir, at(0))
				if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", Parked: true}); err != nil {
					t.Fatal(err)
				}
				if err := claimA(ctx, q); err != nil {
					t.Fatal(err)
				}
				var err error
				if state == queue.Done {
					err = doneA(ctx, q)
				} else {
					err = failA(true)(ctx, q)
				}
				if err != nil {
					t.Fatal(err)
				}
				sub := what
				if what == "later" {
					sub = "ready"
				}
				path := filepath.Join(dir, "queue", sub, name)
				if err := os.Link(filepath.Join(dir, "queue", string(state), "a.json"), path); err != nil {
					t.Skip("this file system has no hard links: ", err)
				}
				for _, q := range []*queue.Files{q, files(unsynced(), dir, at(time.Hour))} {
					if _, err := q.Reclaim(ctx); err != nil {
						t.Fatal(err)
					}
					l, err := q.List(ctx, queue.Filter{})
					if err != nil || len(l.Items) != 2 || len(l.Trouble) != 1 || l.Trouble[0].Where != path {
						t.Fatalf("%+v %v", l, err)
					}
					l, err = q.List(ctx, queue.Filter{States: []queue.State{queue.Ready, queue.Claimed, queue.Blocked}})
					if err != nil || len(l.Items) != 1 || l.Items[0].ID != "b" {
						t.Fatalf("%+v %v", l, err)
					}
					n, err := q.Count(ctx)
					if err != nil || len(n) != 2 || n[state] != 1 || n[queue.Blocked] != 1 {
						t.Fatalf("%v %v", n, err)
					}
					if it, err := q.Next(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
						t.Fatalf("%+v %v", it, err)
					}
					if c, err := q.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
						t.Fatalf("%+v %v", c, err)
					}
					if it, err := q.Get(ctx, "a"); err != nil || it.State != state {
						t.Fatalf("%+v %v", it, err)
					}
				}
				if _, err := os.Lstat(path); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// Of two ready names of one item one is claimed, and the other is not while that is held.
func TestTwoReadyNames(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}); err != nil {
		t.Fatal(err)
	}
	path := one(t, filepath.Join(dir, "queue", "ready"), "~a.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(filepath.Dir(path), "p0~c0000000000000001~n0~f0~e0~a.json"), string(data))
	for _, q := range []*queue.Files{q, files(unsynced(), dir, at(0)), files(unsynced(), dir, at(time.Second))} {
		if _, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil && !errors.Is(err, queue.ErrEmpty) {
			t.Fatal(err)
		}
	}
	l, err := q.List(ctx, queue.Filter{})
	if err != nil || len(l.Items) != 1 || l.Items[0].State != queue.Claimed || l.Items[0].Fence != 1 || len(l.Trouble) != 1 {
		t.Fatalf("%+v %v", l, err)
	}
}

// Where a power cut left the name that a claim had taken away, the claim counts: the item
// is not given to another, and when the claim has ended it goes on as it should.
func TestReadyNameOfWhatIsClaimed(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b"}); err != nil {
		t.Fatal(err)
	}
	path := one(t, filepath.Join(dir, "queue", "ready"), "~a.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := q.Claim(ctx, queue.ClaimOptions{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, string(data))
	after := files(unsynced(), dir, at(0))
	if got, err := after.Claim(ctx, queue.ClaimOptions{}); err != nil || got.Item.ID != "b" {
		t.Fatalf("%+v %v", got.Item.ID, err)
	}
	if got, err := after.Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrEmpty) {
		t.Fatalf("%+v %v", got, err)
	}
	if it, err := after.Get(ctx, "a"); err != nil || it.State != queue.Claimed || it.Fence != c.Fence {
		t.Fatalf("%+v %v", it, err)
	}
	rep, err := after.Check(ctx, true)
	if err != nil || len(rep.Problems) != 1 || rep.Problems[0].Where != path {
		t.Fatalf("%+v %v", rep, err)
	}
	if _, err := after.Release(ctx, c.Token, ""); err != nil {
		t.Fatal(err)
	}
	again, err := files(unsynced(), dir, at(0)).Claim(ctx, queue.ClaimOptions{ID: "a"})
	if err != nil || again.Fence != c.Fence+1 {
		t.Fatalf("%+v %v", again, err)
	}
}

// Items that a hand made wait for each other are named.
func TestCycleByHand(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	q := files(unsynced(), dir, at(0))
	if _, err := q.Add(ctx, queue.Item{ID: "a", Title: "a"}, queue.Item{ID: "b", Title: "b", DependsOn: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	put(t, one(t, filepath.Join(dir, "queue", "ready"), "~a.json"), `{"v":1,"id":"a","title":"a","depends_on":["b"]}`)
	rep, err := q.Check(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	rep, err = q.Check(ctx, true)
	if err != nil || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].What, "wait for each other") {
		t.Fatalf("%+v %v", rep, err)
	}
	if _, err := q.Edit(ctx, "a", queue.Edit{DependsOn: &[]string{}}); err != nil {
		t.Fatal(err)
	}
	if c, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil || c.Item.ID != "a" {
		t.Fatal(c, err)
	}
}

// Arbitrary bytes as an item's file, and arbitrary names, are an item or an error.
func FuzzItemFile(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"a","title":"a","x":1}`), "p5~c0000000000000001~n0~f0~e0~a.json")
	f.Add([]byte(`{"v":1,"id":"a","ID":"b","moving":{"to":"nowhere","fence":1},"history":[{}]}`), "p5~c0000000000000001~f1~e0~s1~u2~l3~hab.1.2~ww~a.json")
	f.Add([]byte("\xff"), "wb~p5~c0000000000000001~n0~f0~e0~a.json")
	f.Add([]byte(`{"v":1,"id":"a"}`), "a.json")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if name != filepath.Base(name) || name == "." || name == ".." || strings.ContainsAny(name, "\x00/\\") || len(name) > 200 {
			return
		}
		dir := t.TempDir()
		for _, s := range queue.States() {
			if err := os.MkdirAll(filepath.Join(dir, "queue", string(s)), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, "queue", string(s), name), string(data))
		}
		q := files(unsynced(), dir, at(0))
		ctx := t.Context()
		if _, err := q.Add(ctx, queue.Item{ID: "mine", Title: "mine", Priority: new(9)}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.List(ctx, queue.Filter{}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Check(ctx, true); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			c, err := q.Claim(ctx, queue.ClaimOptions{})
			if err != nil {
				t.Fatalf("mine cannot be claimed: %v", err)
			}
			if _, err := q.Done(ctx, c.Token, queue.Outcome{}); err != nil {
				t.Fatal(err)
			}
			if c.Item.ID == "mine" {
				return
			}
		}
		t.Fatal("mine is never claimed")
	})
}
