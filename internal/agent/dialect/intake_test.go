package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// fed is what a shrinker makes of a text that comes in pieces.
func fed(rnd *rand.Rand, text []byte, whole bool) ([]byte, *shrinker) {
	s := &shrinker{mark: "[cut m "}
	for len(text) > 0 {
		n := min(len(text), 1+rnd.IntN(1+rnd.IntN(100_000)))
		s.add(text[:n])
		text = text[n:]
	}
	return s.end(whole), s
}

func randomJSON(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(9); {
	case n < 2 && depth > 0:
		o := map[string]any{}
		for range rnd.IntN(5) {
			o[randomText(rnd)] = randomJSON(rnd, depth-1)
		}
		return o
	case n < 4 && depth > 0:
		l := []any{}
		for range rnd.IntN(5) {
			l = append(l, randomJSON(rnd, depth-1))
		}
		return l
	case n == 4:
		return float64(rnd.IntN(1e6)) / 8
	case n == 5:
		return []any{true, false, nil}[rnd.IntN(3)]
	}
	return randomText(rnd)
}

func randomText(rnd *rand.Rand) string {
	var b strings.Builder
	for range rnd.IntN(12) {
		b.WriteString([]string{"a", "\\", "\"", "\n", "ü", "日本", "😀", "\x01", "{", "]", ",", ":", "/", " "}[rnd.IntN(14)])
	}
	return b.String()
}

// What has no long text comes out as it went in, however it is cut into pieces.
func TestShrinkerKeeps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		v := map[string]any{"a": randomJSON(rnd, 4), "b": randomJSON(rnd, 4)}
		text, err := json.MarshalIndent(v, "", strings.Repeat(" ", rnd.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(2) == 0 { // all of it as escapes
			text = bytes.ReplaceAll(text, []byte("😀"), []byte(`\ud83d\ude00`))
			text = bytes.ReplaceAll(text, []byte("ü"), []byte(`\u00FC`))
		}
		out, _ := fed(rnd, text, true)
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil || !reflect.DeepEqual(got, v) {
			t.Fatalf("%v\n%s\n%s", err, text, out)
		}
	}
}

// Wherever a payload ends, what came of it is a payload.
func TestShrinkerClosesWhatEndsInTheMiddle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const text = `{"session_id":"s","tool_input":{"a":[1,2,{"b":"x\u00fcy"}],"c":{}},"n":-1.5e3,"t":true,"tool_response":["one","t\"wo",[]],"z":"end"}`
	for n := 1; n <= len(text); n++ {
		out, _ := fed(rnd, []byte(text[:n]), false)
		o, err := readPayload(out)
		if err != nil {
			t.Fatalf("%s: %s: %v", text[:n], out, err)
		}
		if n > 20 && o.text("session_id") != "s" {
			t.Errorf("%s: %s: what was whole is gone", text[:n], out)
		}
	}
	if out, _ := fed(rnd, []byte(`{"a":"b","c":"long tex`), false); string(out) != `{"a":"b","c":"long tex"}` {
		t.Errorf("a text that had begun: %s", out)
	}
	// What is broken does not become whole.
	for _, bad := range []string{`{"a":"b`, `{"a"`, `{"a":1}}`, `{"a":1} x`, `[`, `{"a":tru}`, ``, `{"a":"` + "b\"\"" + `}`} {
		out, _ := fed(rnd, []byte(bad), true)
		if _, err := readPayload(out); err == nil {
			t.Errorf("%s was taken as %s", bad, out)
		}
	}
}

// Of a long text, the log says how long it was, and has its hash.
func TestShrinkerCutsLongTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	long := strings.Repeat("line of ü 日 \"output\"\n", 100_000) + "<shellId: 0 completed with exit code 7>"
	in, err := json.Marshal(map[string]any{"tool_name": "bash", "out": long, "list": []any{"short", long}})
	if err != nil {
		t.Fatal(err)
	}
	out, s := fed(rnd, in, true)
	if len(out) > 300<<10 {
		t.Errorf("%d bytes are left", len(out))
	}
	o, err := readPayload(out)
	if err != nil {
		t.Fatal(err)
	}
	got := o.text("out")
	sum := sha256.Sum256([]byte(long))
	at := strings.Index(got, s.mark)
	want := s.mark + strconv.Itoa(len(long)) + " "
	if at < keepHead-4 || !strings.HasPrefix(got[at:], want) || !strings.Contains(got, hex.EncodeToString(sum[:])+"]") {
		t.Fatalf("%q", got[max(0, at):min(len(got), at+200)])
	}
	if !strings.HasPrefix(long, got[:at]) || !strings.HasSuffix(got, "exit code 7>") || !strings.HasSuffix(long, got[strings.Index(got[at:], "]")+at+1:]) {
		t.Error("what is kept is not the head and the tail")
	}
	if o.get("list").items()[1].text() != got || o.text("tool_name") != "bash" {
		t.Error("the same text elsewhere, or what is short, is another")
	}
}

// Neither many members nor deep ones fill the memory.
func TestShrinkerIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for name, in := range map[string]string{
		"many":     `{"session_id":"s","x":[` + strings.Repeat(`"some text",`, 2_000_000) + `1],"y":2}`,
		"deep":     `{"session_id":"s","x":` + strings.Repeat("[", 2_000_000) + strings.Repeat("]", 2_000_000) + `}`,
		"numbers":  `{"session_id":"s","x":` + strings.Repeat("1", 8<<20) + `}`,
		"escapes":  `{"session_id":"s","x":"` + strings.Repeat(`\u00fc\ud83d\ude00\n`, 500_000) + `"}`,
		"one word": `{"session_id":"s","x":"` + strings.Repeat("a", 20<<20) + `"}`,
	} {
		out, s := fed(rnd, []byte(in), true)
		if len(out) > keepMost+1<<20 || cap(s.tail) > 1<<20 || cap(s.text) > 1<<20 {
			t.Errorf("%s: %d bytes, %d and %d held", name, len(out), cap(s.text), cap(s.tail))
		}
		if o, err := readPayload(out); err != nil || o.text("session_id") != "s" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A usual payload is not touched.
func TestIntakeOfUsualPayloads(t *testing.T) {
	var in Intake
	for _, p := range []string{"{ \"a\" ", ": 1", " }"} {
		in.Add([]byte(p))
	}
	if data, mark := in.Payload(true); string(data) != "{ \"a\" : 1 }" || mark != "" || in.Big() {
		t.Errorf("%s %q", data, mark)
	}
	in.Add(bytes.Repeat([]byte(" "), BigPayload))
	if data, mark := in.Payload(true); string(data) != `{"a":1}` || mark == "" || !in.Big() {
		t.Errorf("%.80s %q", data, mark)
	}
}

func FuzzIntake(f *testing.F) {
	f.Add([]byte(`{"a":"b\u00fc","c":[1,2]}`), true)
	f.Add([]byte(`{"a":"b`), false)
	f.Fuzz(func(t *testing.T, text []byte, whole bool) {
		rnd := rand.New(rand.NewPCG(9, uint64(len(text))))
		out, _ := fed(rnd, text, whole)
		before, err := readPayload(text)
		if err != nil || !whole {
			return
		}
		after, err := readPayload(out)
		if err != nil || len(after) != len(before) {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
	})
}

func BenchmarkIntake(b *testing.B) {
	in := []byte(`{"tool_response":{"stdout":"` + strings.Repeat(`a line of output that a tool printed, of a usual length\n`, 400_000) + `"}}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		s := &shrinker{mark: "[cut m "}
		for rest := in; len(rest) > 0; {
			n := min(len(rest), 64<<10)
			s.add(rest[:n])
			rest = rest[n:]
		}
		if out := s.end(true); len(out) > 100<<10 {
			b.Fatal(len(out))
		}
	}
}
