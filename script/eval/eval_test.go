package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func ownSet(t *testing.T) *evalSet {
	t.Helper()
	files, err := filepath.Glob("../../internal/recall/testdata/eval/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	set, err := readSet(files, false)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestFloors: recall's quality on the own set does not fall below what
// docs/recall.md says, less a little for changes that trade one question for
// another. When it rises for good, so do the floors.
func TestFloors(t *testing.T) {
	set := ownSet(t)
	if n := len(set.questions); n < 1000 {
		t.Fatalf("the own set has only %d questions", n)
	}
	x, err := build(t.Context(), set, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, c := range []struct {
		split                                               string
		recall10, mrr, dialogue10, japanese10, served10, no float64
	}{
		{"dev", .81, .64, .76, .90, .65, .92},
		{"held", .76, .62, .71, .80, .61, .89},
	} {
		part := *set
		if err := part.choose(c.split); err != nil {
			t.Fatal(err)
		}
		m := &meter{x: x, set: &part, o: options{ks: []int{10}}}
		if err := m.run(t.Context(), defaultPolicy(), andServed); err != nil {
			t.Fatal(err)
		}
		var rep report
		m.into(&rep)
		dialogues, n := 0.0, 0
		for name, f := range rep.Projects {
			if !slices.Contains([]string{"harborline", "kestrel", "haruka-kenji", "parcelry", "rotherham-clinic"}, name) {
				dialogues += f.Recall["10"] * float64(f.Questions)
				n += f.Questions
			}
		}
		for what, v := range map[string][2]float64{
			"recall@10": {rep.All.Recall["10"], c.recall10}, "MRR": {rep.All.MRR, c.mrr},
			"recall@10 in English dialogues": {dialogues / float64(n), c.dialogue10},
			"recall@10 in Japanese":          {rep.Languages["ja"].Recall["10"], c.japanese10},
			"served recall@10":               {rep.All.ServedRecall["10"], c.served10},
			"rightly nothing":                {rep.All.RightNothing, c.no},
		} {
			t.Logf("%s: %s %.3f", c.split, what, v[0])
			if v[0] < v[1] {
				t.Errorf("%s: %s is %.3f, and was at least %.3f", c.split, what, v[0], v[1])
			}
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "set.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFormatErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":         "no documents",
		`{"doc":{`: "JSON value 1",
		"{\"doc\":{\"id\":\"a\",\"text\":\"x\"}}\n{\"dok\":1}": `line 2): json: unknown field "dok"`,
		`{}`:                   `none of "doc"`,
		`{"doc":{"text":"x"}}`: "no id",
		`{"doc":{"id":"a"}} {"doc":{"id":"a","text":"x"}}`:                                                                      "two documents",
		`{"doc":{"id":"a","class":"turn"}}`:                                                                                     "there are [core",
		`{"doc":{"id":"a","project":"p"}} {"question":{"id":"q","text":"x","evidence":["a"],"project":"r"}}`:                    `is of project "p"`,
		`{"doc":{"id":"a","project":"p"}} {"doc":{"id":"a","project":"r"}} {"question":{"id":"q","text":"x","evidence":["a"]}}`: "is in 2 projects",
		`{"doc":{"id":"a"}}`:                                                                   "no questions",
		`{"doc":{"id":"a"}} {"question":{}}`:                                                   "no text",
		`{"doc":{"id":"a","time":"8 May"}}`:                                                    `time "8 May"`,
		`{"doc":{"id":"a","time":3}}`:                                                          "time 3",
		`{"doc":{"id":"a"}} {"question":{"id":"q","text":"x","evidence":["b"]}}`:               `evidence "b" is no document`,
		`{"documents":[{"id":"a"}],"questions":[{"id":"q","text":"x"},{"id":"q","text":"y"}]}`: "two questions",
	} {
		_, err := readSet([]string{write(t, text)}, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", text, err, want)
		}
	}
}

// TestOddSets: what other people's sets have, and how it is put up with.
func TestOddSets(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(`{"doc":{"id":"D1:1","text":"I adopted a parrot","author":"Ana","session":"1","time":"1:56 pm on 8 May, 2023","project":"c1"}}
{"doc":{"id":"D1:1","text":"My parrot flew away","author":"Zoe","session":"1","time":null,"project":"c2"}}

{"doc":{"id":"D1:1","text":"My parrot flew away","author":"Zoe","session":"1","project":"c2"}}
{"doc":{"id":"D1:2","text":"","session":"1","time":"","project":"c2"}}
{"question":{"id":"1","text":"Which parrot was adopted?","evidence":["D1:1","D1:1"],"category":"5|x","project":"c1"}}
{"question":{"id":"1","text":"Which parrot flew away?","evidence":["D1:1"],"category":"","project":"c2"}}
{"question":{"id":"2","text":"Which parrot flew away?","evidence":["D9:9"],"project":"c2"}}
`, "\n", "\r\n")
	name := write(t, text)
	if _, err := readSet([]string{name}, false); err == nil || !strings.Contains(err.Error(), `"D9:9" is no document`) {
		t.Error(err)
	}
	var out, errOut bytes.Buffer
	if err := command(t.Context(), []string{name, "--lenient", "--json", "--misses"}, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Documents != 3 || rep.All.Questions != 3 || rep.Projects["c1"].MRR != 1 || rep.Projects["c2"].MRR != .5 || len(rep.Misses) != 1 || !strings.Contains(rep.Misses[0], "[D9:9]") {
		t.Errorf("%+v", rep)
	}
	for _, want := range []string{"D1:1\" is there twice", "names its evidence \"D1:1\" twice", "counts as a miss"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is not in %q", want, errOut.String())
		}
	}
	out.Reset()
	if err := command(t.Context(), []string{name, "--lenient"}, &out, io.Discard); err != nil || !strings.Contains(out.String(), `| 5\|x |`) {
		t.Error(err, out.String())
	}
}

const small = `{"documents":[
 {"id":"1","text":"I adopted a parrot last week","author":"Ana","session":"s1","time":"2024-05-01","project":"p"},
 {"id":"2","text":"What is it called?","author":"Ben","session":"s1","time":"2024-05-01 10:00","project":"p"},
 {"id":"3","text":"Kiwi, and it swears","author":"Ana","session":"s1","time":"2024-05-01T10:01:00Z","project":"p"},
 {"id":"4","text":"My parrot sleeps","author":"Zoe","session":"s9","project":"other"}]}
{"question":{"id":"a","text":"Which bird did Ana adopt?","evidence":["1"],"category":"single","project":"p"}}
{"question":{"id":"b","text":"Who won the tennis final in Melbourne?","category":"none","project":"p"}}`

// TestCommand: flags between files, both outputs, and the figures of a set
// that is small enough to know them.
func TestCommand(t *testing.T) {
	name := write(t, small)
	var out, errOut bytes.Buffer
	if err := command(t.Context(), []string{"--k", "1,3", name, "--json", "--ablate"}, &out, &errOut); err != nil {
		t.Fatal(err, errOut.String())
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Documents != 4 || rep.All.Questions != 1 || rep.All.Recall["1"] != 1 || rep.All.MRR != 1 || rep.All.RightNothing != 1 || rep.All.None != 1 {
		t.Errorf("got %+v", rep.All)
	}
	if len(rep.Without) != len(signalGroups) {
		t.Errorf("%d ablations", len(rep.Without))
	}
	out.Reset()
	if err := command(t.Context(), []string{name, "--misses"}, &out, &errOut); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| **all** | 1 | 1.000 |") {
		t.Error(out.String())
	}
	for _, args := range [][]string{{}, {name, "--k", "0"}, {name, "--split", "x"}, {"nowhere.jsonl"}, {name, "--policy", name}} {
		if err := command(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// TestEmbeddings: a question without a word in common with its evidence finds
// it by vectors, which an endpoint of this test makes.
func TestEmbeddings(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []item
		for i := len(in.Input) - 1; i >= 0; i-- { // any order is allowed
			asked++
			v := []float32{.1, .1, .1, 1}
			if s := in.Input[i]; strings.Contains(s, "zymurgy") || strings.Contains(s, "homemade ale") {
				v = []float32{1, 0, 0, 0}
			}
			data = append(data, item{i, v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer srv.Close()
	var text strings.Builder
	for i := range 40 {
		text.WriteString(`{"doc":{"id":"n` + string(rune('a'+i%26)) + string(rune('a'+i/26)) + `","text":"the weather was fine on day ` + string(rune('a'+i)) + `"}}` + "\n")
	}
	text.WriteString(`{"doc":{"id":"beer","text":"she took up zymurgy"}}
{"question":{"id":"q","text":"Does anybody produce homemade ale?","evidence":["beer"]}}`)
	name := write(t, text.String())
	run := func(args ...string) report {
		var out bytes.Buffer
		if err := command(context.Background(), append([]string{name, "--json"}, args...), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var rep report
		if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
			t.Fatal(err)
		}
		return rep
	}
	if rep := run(); rep.All.MRR != 0 {
		t.Errorf("by words alone: %+v", rep.All)
	}
	rep := run("--embeddings", srv.URL+"/v1", "--model", "m")
	if rep.All.MRR != 1 || rep.All.ServedMRR != 1 || asked != 42 {
		t.Errorf("with vectors, %d texts embedded: %+v", asked, rep.All)
	}
}
