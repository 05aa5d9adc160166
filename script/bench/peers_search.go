package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// evalDir has the project's own set of questions.
const evalDir = "internal/recall/testdata/eval"

type peerDoc struct{ ID, Title, Text string }

type peerQuestion struct {
	Text, Split string
	Evidence    []string
}

// ownSet is the documents of the set, and so many of the questions that something of it
// answers: those that ranking was never tuned by, evenly taken.
func ownSet(most int) (docs []peerDoc, questions []peerQuestion, err error) {
	files, err := filepath.Glob(filepath.Join(evalDir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("no set of questions in %s: run this from the root of the repository", evalDir)
	}
	var all []peerQuestion
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var rec struct {
				Doc      *peerDoc
				Question *peerQuestion
			}
			if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
				f.Close()
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			if rec.Doc != nil {
				docs = append(docs, *rec.Doc)
			}
			if q := rec.Question; q != nil && q.Split == "held" && len(q.Evidence) > 0 {
				all = append(all, *q)
			}
		}
		f.Close()
		if err := lines.Err(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	most = min(most, len(all))
	for i := range most {
		questions = append(questions, all[i*len(all)/most])
	}
	return docs, questions, nil
}

// words are a question's, without the shortest: what an agent would look for.
func words(q string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(q), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out[:min(10, len(out))]
}

// finder answers questions with ids of documents, the best first.
type finder struct {
	key, shown string
	made       time.Duration // how long its index took
	ask        func(q string) ([]string, error)
}

// search asks each program the same questions over the same documents, all in one pool.
func (p *peers) search() ([]figure, error) {
	docs, questions, err := ownSet(peerQuestions)
	if err != nil {
		return nil, err
	}
	byFile := map[string]string{}
	for i := range docs {
		byFile[fmt.Sprintf("reference-%d", i)] = docs[i].ID
	}
	var finders []finder
	for _, make := range []func([]peerDoc, map[string]string) ([]finder, func() error, error){p.findReprise, p.findQmd, p.findServerMemory, p.findEngram, p.findBeads} {
		some, end, err := make(docs, byFile)
		if err != nil {
			return nil, err
		}
		defer func() { _ = end() }() // its process ends with this one at the latest
		finders = append(finders, some...)
	}
	var ours, oursMade time.Duration
	for i, f := range finders {
		var times []time.Duration
		var in5, in10, nothing float64
		for _, q := range questions {
			began := time.Now()
			ids, err := f.ask(q.Text)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", f.shown, q.Text, err)
			}
			times = append(times, time.Since(began))
			if len(ids) == 0 {
				nothing++
			}
			in5, in10 = in5+found(q.Evidence, ids, 5), in10+found(q.Evidence, ids, 10)
		}
		n, took := float64(len(questions)), median(times)
		if i == 0 {
			ours, oursMade = took, f.made
		}
		p.add("search", f.key, f.shown, "5", "found among 5, %", 100*in5/n, noiseCount, "")
		p.add("search", f.key, f.shown, "10", "found among 10, %", 100*in10/n, noiseCount, "")
		p.add("search", f.key, f.shown, "nothing", "nothing found, %", 100*nothing/n, noiseCount, "")
		p.add("search", f.key, f.shown, "took", "a search, × reprise's", float64(took)/float64(ours), noiseClock, ms(took))
		p.add("search", f.key, f.shown, "made", "the index made, × reprise's", float64(f.made)/float64(oursMade), noiseClock, fmt.Sprintf("%.1f s", f.made.Seconds()))
	}
	return p.all, nil
}

// found is the part of what answers a question that is among the first k.
func found(evidence, ids []string, k int) float64 {
	n := 0
	for _, e := range evidence {
		if slices.Contains(ids[:min(k, len(ids))], e) {
			n++
		}
	}
	return float64(n) / float64(len(evidence))
}

// writeDocs writes each document as a markdown file.
func writeDocs(dir string, docs []peerDoc) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, d := range docs {
		text := d.Text + "\n"
		if d.Title != "" {
			text = "# " + d.Title + "\n\n" + text
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("reference-%d.md", i)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ofFile is the document that a path means.
func ofFile(path string, byFile map[string]string) string {
	return byFile[strings.TrimSuffix(filepath.Base(path), ".md")]
}

func (p *peers) findReprise(docs []peerDoc, byFile map[string]string) ([]finder, func() error, error) {
	home, env, err := p.home("reprise")
	if err != nil {
		return nil, nil, err
	}
	if err := writeDocs(filepath.Join(home, "data", "memory", "blocks"), docs); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	cmd := exec.Command(p.r.reprise, "index", "rebuild")
	cmd.Dir, cmd.Env = home, append(env, "REPRISE_HOME="+filepath.Join(home, "data"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("index rebuild: %w: %s", err, out)
	}
	made := time.Since(began)
	s, err := p.mcp("reprise", home, env)
	if err != nil {
		return nil, nil, err
	}
	if err := s.handshake(); err != nil {
		return nil, nil, err
	}
	return []finder{{"reprise", "reprise, the whole question (`memory_search`)", made, func(q string) ([]string, error) {
		out, err := s.tool("memory_search", map[string]any{"query": q})
		return filesIn(out, "file", byFile), err
	}}}, s.end, nil
}

// filesIn are the documents that an answer's results name.
func filesIn(out map[string]any, field string, byFile map[string]string) (ids []string) {
	results, _ := out["results"].([]any)
	for _, one := range results {
		m, _ := one.(map[string]any)
		path, _ := m[field].(string)
		if id := ofFile(path, byFile); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *peers) findQmd(docs []peerDoc, byFile map[string]string) ([]finder, func() error, error) {
	home, env, err := p.home("qmd")
	if err != nil {
		return nil, nil, err
	}
	if err := writeDocs(filepath.Join(home, "docs"), docs); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	cmd := exec.Command(p.node, filepath.Join(p.pkgs, "@tobilu/qmd/bin/qmd"), "collection", "add", "docs", "--name", "docs")
	cmd.Dir, cmd.Env = home, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("qmd collection add: %w: %s", err, out)
	}
	made := time.Since(began)
	s, err := p.mcp("qmd", home, env)
	if err != nil {
		return nil, nil, err
	}
	if err := s.handshake(); err != nil {
		return nil, nil, err
	}
	ask := func(queries []string) ([]string, error) {
		var list []any
		for _, q := range queries {
			list = append(list, map[string]any{"type": "lex", "query": q})
		}
		if len(list) == 0 {
			return nil, nil
		}
		// Its ranking by a model wants one from the network.
		out, err := s.tool("query", map[string]any{"searches": list, "limit": 10, "rerank": false})
		return filesIn(out, "file", byFile), err
	}
	version := p.version("qmd")
	return []finder{
		{"qmd-whole", version + ", the whole question (`query`, `lex`, no model)", made, func(q string) ([]string, error) { return ask([]string{strings.ReplaceAll(q, "\"", " ")}) }},
		{"qmd-words", "qmd, each of its words as a search of its own, fused by qmd", made, func(q string) ([]string, error) { return ask(words(q)) }},
	}, s.end, nil
}

func (p *peers) findServerMemory(docs []peerDoc, _ map[string]string) ([]finder, func() error, error) {
	home, env, err := p.home("server-memory")
	if err != nil {
		return nil, nil, err
	}
	s, err := p.mcp("server-memory", home, env)
	if err != nil {
		return nil, nil, err
	}
	if err := s.handshake(); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	for part := range slices.Chunk(docs, 500) {
		if _, err := s.call("tools/call", map[string]any{"name": "create_entities", "arguments": map[string]any{"entities": entities(part)}}); err != nil {
			return nil, nil, err
		}
	}
	made := time.Since(began)
	ask := func(q string) ([]string, error) {
		out, err := s.tool("search_nodes", map[string]any{"query": q})
		list, _ := out["entities"].([]any)
		var ids []string
		for _, one := range list {
			m, _ := one.(map[string]any)
			if id, ok := m["name"].(string); ok {
				ids = append(ids, id)
			}
		}
		return ids, err
	}
	return []finder{
		{"server-memory-whole", p.version("server-memory") + ", the whole question (`search_nodes`)", made, ask},
		{"server-memory-words", "server-memory, each word asked alone, those with most words first (counted by the measurement)", made, wordByWord(ask)},
	}, s.end, nil
}

// wordByWord asks each word of a question alone; what most words found is first.
func wordByWord(ask func(q string) ([]string, error)) func(q string) ([]string, error) {
	return func(q string) ([]string, error) {
		count := map[string]int{}
		var order []string
		for _, w := range words(q) {
			ids, err := ask(w)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				if count[id] == 0 {
					order = append(order, id)
				}
				count[id]++
			}
		}
		slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
		return order, nil
	}
}

// engramHit is the line that a result begins with: number, id, kind and title.
var engramHit = regexp.MustCompile(`(?m)^\[\d+\] #\d+ \(manual\) — (reference-\d+)$`)

func (p *peers) findEngram(docs []peerDoc, byFile map[string]string) ([]finder, func() error, error) {
	none := func() error { return nil }
	if p.of["engram"] == "" {
		return nil, none, nil
	}
	home, env, err := p.home("engram")
	if err != nil {
		return nil, nil, err
	}
	s, err := p.mcp("engram", home, env)
	if err != nil {
		return nil, nil, err
	}
	if err := s.handshake(); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	for i, d := range docs {
		if _, err := s.text("mem_save", map[string]any{"title": fmt.Sprintf("reference-%d", i), "content": strings.TrimSpace(d.Title + ". " + d.Text), "project": "own"}); err != nil {
			return nil, nil, err
		}
	}
	made := time.Since(began)
	ask := func(q string) ([]string, error) {
		text, err := s.text("mem_search", map[string]any{"query": strings.ReplaceAll(q, "\"", " "), "limit": 10})
		var ids []string
		for _, m := range engramHit.FindAllStringSubmatch(text, -1) {
			ids = append(ids, byFile[m[1]])
		}
		return ids, err
	}
	return []finder{
		{"engram-whole", p.version("engram") + ", the whole question (`mem_search`)", made, ask},
		{"engram-words", "engram, each word asked alone, those with most words first (counted by the measurement)", made, wordByWord(ask)},
	}, s.end, nil
}

// findBeads asks bd, which finds the items that have a text as it is.
func (p *peers) findBeads(docs []peerDoc, byFile map[string]string) ([]finder, func() error, error) {
	none := func() error { return nil }
	if p.of["bd"] == "" {
		return nil, none, nil
	}
	t := p.beads("bd", "")
	w, err := p.trackerWorld(t)
	if err != nil {
		return nil, nil, err
	}
	if err := t.fill(w, 0); err != nil {
		return nil, nil, err
	}
	file, err := w.list(len(docs), func(i int) string {
		line, _ := json.Marshal(map[string]any{"id": fmt.Sprintf("own-%d", i), "title": "document", "description": strings.TrimSpace(docs[i].Title + ". " + docs[i].Text), "status": "open", // texts are marshalled
			"priority": 2, "issue_type": "task", "created_at": "2026-11-01T00:00:00Z", "updated_at": "2026-11-01T00:00:00Z"})
		return string(line)
	})
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	if _, err := w.run(p.of["bd"], "import", "-i", file); err != nil {
		return nil, nil, err
	}
	made := time.Since(began)
	ask := func(q string) ([]string, error) {
		out, err := w.run(p.of["bd"], "search", "--query", q, "--json", "--limit", "10")
		if err != nil {
			return nil, err
		}
		var hits []struct{ ID string }
		if err := json.Unmarshal(out, &hits); err != nil {
			return nil, fmt.Errorf("%w: %q", err, out)
		}
		var ids []string
		for _, h := range hits {
			ids = append(ids, byFile["reference-"+strings.TrimPrefix(h.ID, "own-")])
		}
		return ids, nil
	}
	return []finder{
		{"bd-whole", p.version("bd") + " (beads), the whole question (`bd search`, a start of the program each)", made, ask},
		{"bd-words", "bd, each word asked alone, those with most words first (counted by the measurement)", made, wordByWord(ask)},
	}, p.endDaemons, nil
}

func entities(docs []peerDoc) []any {
	var out []any
	for _, d := range docs {
		out = append(out, map[string]any{"name": d.ID, "entityType": "note", "observations": []string{strings.TrimSpace(d.Title + ". " + d.Text)}})
	}
	return out
}
