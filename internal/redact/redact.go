// Package redact takes secrets out of text before the text is kept.
//
// It owns the rules (rules.json, generated from gitleaks' published rule file
// by gen/main.go, under the MIT licence in LICENSE.gitleaks, and a few of its
// own for what those leave out). It writes no file and takes no lock.
//
// A secret is replaced by "[redacted:<rule id>]". What a rule says around the
// secret (a key's name, quotes) stays, so that a reader still sees what was
// there.
//
// The rules are slow and text is mostly harmless, so there are two steps: one
// pass over the bytes finds the places where a rule's keyword stands; only
// there, and only as far around as the rule can reach, its regular expression
// runs. Rules are read and compiled when first needed, so that making a
// Redactor costs nothing.
//
// What an expression cannot tell, or only slowly, is code of package suspect: values beside
// a name like password, what programs are given on their command line, vendors' keys, and
// what its place in a file tells. The hook, which only asks, runs the same code.
package redact

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reprise/internal/redact/suspect"
)

//go:embed rules.json
var rulesJSON []byte

// Redactor finds and replaces secrets. It is safe for use by several
// goroutines; one of them for a process is enough.
type Redactor struct {
	once sync.Once
	set  *ruleSet
}

// New returns a Redactor with the built-in rules.
func New() *Redactor { return &Redactor{} }

// span is one secret found, as byte offsets.
type span struct {
	start, end int
	id         string
}

// String returns s with its secrets replaced, and how many there were.
func (r *Redactor) String(s string) (string, int) {
	spans := r.find(s, nil)
	if len(spans) == 0 {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.start])
		b.WriteString("[redacted:" + sp.id + "]")
		at = sp.end
	}
	b.WriteString(s[at:])
	return b.String(), len(spans)
}

// Bytes is [Redactor.String] for bytes; data itself is not changed, and is
// returned when there is nothing to replace.
func (r *Redactor) Bytes(data []byte) ([]byte, int) {
	s, n := r.String(string(data))
	if n == 0 {
		return data, 0
	}
	return []byte(s), n
}

// Named is [Redactor.String] for a text that goes by a name, because "password"
// beside it is what tells a password.
func (r *Redactor) Named(key, s string) (string, int) {
	out, n := r.String(s)
	if n > 0 || !suspect.NameTells(key, s) {
		return out, n
	}
	named, n := r.String(key + `="` + s + `"`)
	if n == 0 {
		return s, 0
	}
	v, ok := strings.CutPrefix(named, key+"=")
	if !ok { // the name itself was taken for one: the text is what must go
		return "[redacted:" + genericRule + "]", n
	}
	return strings.TrimSuffix(strings.TrimPrefix(v, `"`), `"`), n // some rules take the quotes along
}

// Secrets are the secrets in a text that goes by a name, or by none: each as it stands
// there, and as it reads without colours and backslashes.
func (r *Redactor) Secrets(key, s string) []string {
	var plain []string
	here := texts(s, r.find(s, func(view string, found []span) { plain = append(plain, texts(view, merge(found))...) }))
	if len(here) == 0 {
		if _, n := r.Named(key, s); n > 0 {
			return []string{s}
		}
	}
	for _, t := range plain {
		if !slices.Contains(here, t) {
			here = append(here, t)
		}
	}
	return here
}

func texts(s string, spans []span) (out []string) {
	for _, sp := range spans {
		out = append(out, s[sp.start:sp.end])
	}
	return out
}

// find returns the secrets in s in order, without overlaps: those that stand
// there, those that a terminal's colours or backslashes are in, and texts in
// base64 that hold some. plain is given what was found in each text without
// these, and may be nil.
func (r *Redactor) find(s string, plain func(view string, found []span)) []span {
	r.once.Do(func() { r.set = loadRules() })
	spans := r.look(s, nil)
	var back []int // where each byte of the view stands in s
	for view, level := s, 0; level < suspect.Levels; level++ {
		next, offsets, ok := suspect.Plain(view)
		if !ok {
			break
		}
		if back != nil {
			for i, o := range offsets {
				offsets[i] = back[o]
			}
		}
		view, back = next, offsets
		found := r.look(view, nil)
		for _, sp := range found {
			spans = append(spans, span{back[sp.start], back[sp.end], sp.id})
		}
		if plain != nil {
			plain(view, found)
		}
	}
	return merge(spans)
}

// look adds the secrets that stand in s, and the texts in base64 that hold some.
func (r *Redactor) look(s string, spans []span) []span {
	spans = r.plain(s, spans)
	suspect.Encoded(s, func(start, end int, text string) bool {
		if held := r.plain(text, nil); len(held) > 0 {
			spans = append(spans, span{start, end, held[0].id})
		}
		return true
	})
	return spans
}

func (r *Redactor) plain(s string, spans []span) []span {
	if len(s) < 4 {
		return spans
	}
	found, spans := r.set.windows(s, spans)
	for i, wins := range found {
		for _, w := range wins {
			spans = r.set.rules[i].get().find(r.set, s, w, spans)
		}
	}
	return spans
}

// merge joins secrets that overlap; the more telling rule names the whole.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		if a.end != b.end {
			return b.end - a.end
		}
		return strings.Compare(a.id, b.id)
	})
	out := spans[:0]
	for _, sp := range spans {
		if n := len(out); n > 0 && sp.start < out[n-1].end {
			last := &out[n-1]
			last.end = max(last.end, sp.end)
			if last.id == assignedRule || last.id == genericRule && sp.id != assignedRule {
				last.id = sp.id
			}
			continue
		}
		out = append(out, sp)
	}
	return out
}

// genericRule is gitleaks' rule for "a name like key, then a random value". Its
// keywords are everyday words, so it has a filter of its own; see mayBeGeneric.
const genericRule = "generic-api-key"

// assignedRule is suspect.Assigned.
const assignedRule = "assigned-secret"

// byHand are the rules that are no expressions, but code of package suspect, which both
// tells of a secret and takes it out.
var byHand = []struct {
	id    string
	words func() []string
	find  func(s string, start, end int, yield func(from, to int))
}{
	{assignedRule, suspect.AssignedWords, func(s string, start, end int, yield func(from, to int)) {
		if from, to, ok := suspect.Assigned(s, start, end); ok {
			yield(from, to)
		}
	}},
	{"option-password", suspect.GivenWords, suspect.Given},
	{"vendor-key", suspect.VendorWords, suspect.Vendor},
	{"placed-secret", suspect.PlacedWords, suspect.Placed},
}

type allowlist struct {
	Condition string   `json:"condition"`
	Paths     []string `json:"paths"`
	Target    string   `json:"target"`
	Regexes   []string `json:"regexes"`
	StopWords []string `json:"stopwords"`

	compiled func() []*regexp.Regexp
}

type rule struct {
	ID          string      `json:"id"`
	Description string      `json:"description"`
	Regex       string      `json:"regex"`
	Path        string      `json:"path"`
	SecretGroup int         `json:"secretGroup"`
	Entropy     float64     `json:"entropy"`
	Keywords    []string    `json:"keywords"`
	Allow       []allowlist `json:"allow"`

	reach  int // bytes that a match can have; -1 without limit
	spaces int // white space that a match can have; -1 without limit
	least  int // bytes that a match has at least
	re     func() *regexp.Regexp
	glued  func() *regexp.Regexp // nil where nothing is said about what stands beside it
}

// lazyRule is a rule that is read when its keyword is first met: most are never
// needed, and a hook that reads them all is late.
type lazyRule struct {
	generic bool
	byHand  func(s string, start, end int, yield func(from, to int)) // nil for one that is an expression
	get     func() *rule
}

// ruleSet is the rules, ready to be searched for by keyword.
type ruleSet struct {
	allow  func() *allowlist
	rules  []lazyRule
	first2 [1 << 16 / 64]uint64 // which pairs of bytes begin a keyword
	index  [1 << 16]uint16      // which of words has those
	words  [][]keyword
}

type keyword struct {
	word  string
	rules []int
}

// keyMargin is what may stand between two lines of a key: the line's end, and what programs
// put before each line: a number (cat -n, nl, the clients' own tools for reading), a file's
// name with or without one (grep), the mark of a quotation or of a change.
const keyMargin = `(?:\s|\\[nrt])*(?:(?:\S{0,200}[:→-]|[0-9]{1,7}|[|>+#*-])(?:[ \t]|\\t){0,8})?`

// ownRules are for secrets that gitleaks leaves to others.
func ownRules() []rule {
	return []rule{
		{ID: "url-password", Description: "A password in a URL.", Keywords: []string{"://"},
			Regex: `[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>\x60{}$*]{0,100}:([^\s/@"'<>\x60{}$*]{3,200})@[A-Za-z0-9\[]`},
		{ID: "authorization-header", Description: "Credentials in an HTTP header.", Keywords: []string{"authorization"},
			Regex: `(?i)\bauthorization["']?[ \t]{0,3}[:=][ \t"']{0,4}(?:bearer|basic|token)[ \t]{1,3}([A-Za-z0-9._~+/=-]{12,1000})`},
		{ID: "anthropic-token", Description: "A token of Anthropic's, such as `claude setup-token` prints.", Keywords: []string{"sk-ant-"},
			Regex: `\b(sk-ant-[a-z]{2,12}[0-9]{2}-[A-Za-z0-9_-]{40,200})`},
		{ID: "vendor-token", Description: "A token that tells its vendor by how it begins.",
			Keywords: []string{"gsk_", "sk-or-v1-", "xai-", "r8_", "tskey-", "nrak-", "gocspx-", "ya29.", "ntn_", "sbp_", "figd_", "hf_"},
			Regex:    `\b(gsk_[A-Za-z0-9]{40,60}|sk-or-v1-[0-9a-f]{64}|xai-[A-Za-z0-9]{60,100}|r8_[A-Za-z0-9]{37}|tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,80}|NRAK-[A-Z0-9]{27}|GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{30,500}|ntn_[A-Za-z0-9]{40,60}|sbp_[0-9a-f]{40}|figd_[A-Za-z0-9_-]{35,60}|hf_[A-Za-z0-9]{34})\b`},
		{ID: "url-token", Description: "A token as the user of a URL.", Keywords: []string{"://"},
			Regex: `https?://([A-Za-z0-9_.~%-]{20,300})@[A-Za-z0-9\[]`},
		{ID: "sas-signature", Description: "The signature of a shared access to Azure's storage.", Keywords: []string{"sig="},
			Regex: `[?&]sig=([A-Za-z0-9%/+=]{24,200})`},
		{ID: "cookie", Description: "Cookies in an HTTP header.", Keywords: []string{"cookie"},
			Regex: `(?i)(?:\bset-cookie["']?[ \t]{0,3}:[ \t"']{0,4}|(?:^|[^-\w])cookie["']?[ \t]{0,3}:[ \t"']{0,4}(?:[A-Za-z0-9_.-]{1,60}=[^\s;"']{0,7};[ ]?){0,15})[A-Za-z0-9_.-]{1,60}=([^\s;"'\[$<{][^\s;"']{7,999}(?:;[ ]?[A-Za-z0-9_.-]{1,60}=[^\s;"']+)*)`},
		{ID: "netrc-password", Description: "A password in a .netrc.", Keywords: []string{"machine"},
			Regex: `\bmachine\s{1,4}\S{1,200}\s{1,8}login\s{1,4}\S{1,200}\s{1,8}password\s{1,4}(\S{3,200})`},
		{ID: "password-hash", Description: "The hash of a password, as in .htpasswd.", Keywords: []string{"2a$", "2b$", "2y$", "apr1$", "argon2", "$1$", "$5$", "$6$", "$y$"},
			Regex: `(\$(?:2[aby]|apr1|[156y]|argon2(?:id|i|d))\$[./A-Za-z0-9$=,+-]{20,300})`},
		{ID: "private-key-part", Description: "A private key whose end is missing.", Keywords: []string{"private key"},
			Regex: `-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----((?:` + keyMargin + `(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{0,200}|[A-Za-z0-9+/=]{16,}))+)`},
		{ID: "private-key-end", Description: "A private key whose beginning is missing.", Keywords: []string{"-----end"},
			Regex: `((?:[A-Za-z0-9+/=]{16,}` + keyMargin + `)+)(?:[A-Za-z0-9+/=]{1,15}` + keyMargin + `)?-----END[ A-Z0-9_-]{0,100}PRIVATE KEY`},
	}
}

// loadRules prepares the search. The file has a head that ends in "[", then a
// rule a line, then "]}"; gen writes it so, and a test compares what is found
// here with what a JSON reader finds.
func loadRules() *ruleSet {
	set := &ruleSet{}
	head, rest, _ := bytes.Cut(rulesJSON, []byte("\n"))
	set.allow = sync.OnceValue(func() *allowlist {
		var f struct {
			Allow allowlist `json:"allow"`
		}
		mustParse(append(bytes.Clone(head), "]}"...), &f)
		f.Allow.prepare()
		return &f.Allow
	})
	for line := range bytes.Lines(rest) {
		line = bytes.TrimRight(line, ",\n")
		if len(line) == 0 || line[0] != '{' || !bytes.Contains(line, []byte(`,"regex":"`)) {
			continue // the file's end, or a rule about a file's name alone
		}
		if bytes.HasPrefix(line, []byte(`{"id":"hashicorp-tf-password"`)) {
			continue // of Terraform's files: elsewhere it takes every label of a form; see suspect.Assigned
		}
		set.add(keywordsOf(line), bytes.HasPrefix(line, []byte(`{"id":"`+genericRule+`"`)), func() *rule {
			var r rule
			mustParse(line, &r)
			return &r
		})
	}
	for _, r := range ownRules() {
		set.add(r.Keywords, false, func() *rule { return &r })
	}
	for _, h := range byHand {
		set.add(h.words(), false, func() *rule { return &rule{ID: h.id} })
		set.rules[len(set.rules)-1].byHand = h.find
	}
	return set
}

func mustParse(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(fmt.Sprintf("embedded redaction rules: %v", err)) // a test reads them all
	}
}

// keywordsOf is the keywords of a rule's line. They are plain words, which the
// test sees to.
func keywordsOf(line []byte) []string {
	_, after, _ := bytes.Cut(line, []byte(`"keywords":["`))
	list, _, _ := bytes.Cut(after, []byte(`"]`))
	return strings.Split(string(list), `","`)
}

func (set *ruleSet) add(keywords []string, generic bool, read func() *rule) {
	set.rules = append(set.rules, lazyRule{generic: generic, get: sync.OnceValue(func() *rule {
		r := read()
		r.prepare()
		return r
	})})
	for _, k := range keywords {
		set.addKeyword(k, len(set.rules)-1)
	}
}

func (set *ruleSet) addKeyword(word string, rule int) {
	k := pair(word[0], word[1])
	if set.first2[k/64]&(1<<(k%64)) == 0 {
		set.first2[k/64] |= 1 << (k % 64)
		set.index[k] = uint16(len(set.words))
		set.words = append(set.words, nil)
	}
	list := &set.words[set.index[k]]
	for i := range *list {
		if (*list)[i].word == word {
			(*list)[i].rules = append((*list)[i].rules, rule)
			return
		}
	}
	*list = append(*list, keyword{word, []int{rule}})
}

// What gitleaks wants after a secret is what follows one in a program's text.
// Error messages and notes have it before a comma, a full stop or a bracket, and
// as the name of a file. The generic rule, which guesses, stays as it is.
const (
	endInCode  = `(?:[\x60'"\s;]|\\[nr]|$)`
	endInProse = `(?:[\x60'"\s;:,.!?)\]}>|&]|\\[nr]|$)`
)

func (r *rule) prepare() {
	src := r.Regex
	if r.ID != genericRule {
		src = strings.ReplaceAll(src, endInCode, endInProse)
	}
	r.reach, r.spaces, r.least = shape(src)
	r.re = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(src) })
	r.glued = sync.OnceValue(func() *regexp.Regexp { return gluedForm(src) })
	for i := range r.Allow {
		r.Allow[i].prepare()
	}
}

func (a *allowlist) prepare() {
	list := a.Regexes
	a.compiled = sync.OnceValue(func() []*regexp.Regexp {
		var out []*regexp.Regexp
		for _, x := range list {
			out = append(out, regexp.MustCompile(x))
		}
		return out
	})
}

// allows reports whether what was found is known to be none.
func (a *allowlist) allows(secret, match, line string) bool {
	if a.Condition == "AND" && len(a.Paths) > 0 {
		return false // only within files of some name, and a text has none
	}
	target := secret
	switch a.Target {
	case "match":
		target = match
	case "line":
		target = line
	}
	re := slices.ContainsFunc(a.compiled(), func(x *regexp.Regexp) bool { return x.MatchString(target) })
	low := strings.ToLower(secret)
	stop := slices.ContainsFunc(a.StopWords, func(w string) bool { return strings.Contains(low, w) })
	if a.Condition == "AND" {
		return (re || len(a.Regexes) == 0) && (stop || len(a.StopWords) == 0)
	}
	return re || stop
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

type window struct{ start, end int }

// windows finds, for each rule whose keyword is in s, the parts of s in which a
// match of it would have to be. What needs no such search is added to spans.
func (set *ruleSet) windows(s string, spans []span) (map[int][]window, []span) {
	var found map[int][]window
	prev := lower(s[0])
	for i := 1; i < len(s); i++ {
		c := lower(s[i])
		k := pair(prev, c)
		prev = c
		if set.first2[k/64]&(1<<(k%64)) == 0 {
			continue
		}
		for _, kw := range set.words[set.index[k]] {
			at := i - 1
			if !hasPrefixFold(s[at:], kw.word) {
				continue
			}
			for _, n := range kw.rules {
				var w window
				var ok bool
				switch l := &set.rules[n]; {
				case l.generic:
					w, ok = mayBeGeneric(s, at, at+len(kw.word))
				case l.byHand != nil:
					l.byHand(s, at, at+len(kw.word), func(from, to int) { spans = append(spans, span{from, to, l.get().ID}) })
				default:
					spans = l.get().findGlued(set, s, at, at+len(kw.word), spans)
					w, ok = l.get().around(s, at, at+len(kw.word))
				}
				if !ok {
					continue
				}
				if found == nil {
					found = map[int][]window{}
				}
				list := found[n]
				if last := len(list) - 1; last >= 0 && w.start <= list[last].end {
					list[last].end = max(list[last].end, w.end)
				} else {
					list = append(list, w)
				}
				found[n] = list
			}
		}
	}
	return found, spans
}

// edge is what is added to both ends of a window, so that what a rule says
// about the byte before and after a match is judged by the real bytes.
const edge = 8

// around is the window about a keyword in which a match that contains it lies.
func (r *rule) around(s string, start, end int) (window, bool) {
	if r.reach < 0 {
		w := window{0, len(s)}
		if r.spaces >= 0 {
			w = window{back(s, start, r.spaces), ahead(s, end, r.spaces)}
		}
		return w, w.end-w.start >= r.least
	}
	return window{max(0, start-r.reach-edge), min(len(s), end+r.reach+edge)}, true
}

// find adds the rule's secrets within a window to spans.
func (r *rule) find(set *ruleSet, s string, w window, spans []span) []span {
	part := s[w.start:w.end]
	for _, m := range r.re().FindAllStringSubmatchIndex(part, -1) {
		if w.end < len(s) && m[1] > len(part)-edge/2 || w.start > 0 && m[0] < 1 && r.reach >= 0 && r.ID != genericRule {
			continue // leans on an edge that is none; whole matches lie further in
		}
		a, b := m[0], m[1]
		if g := 2 * r.SecretGroup; g > 0 && g+1 < len(m) && m[g] >= 0 {
			a, b = m[g], m[g+1]
		} else if r.SecretGroup == 0 {
			for g := 2; g+1 < len(m); g += 2 {
				if m[g+1] > m[g] {
					a, b = m[g], m[g+1]
					break
				}
			}
		}
		secret := part[a:b]
		if secret == "" || r.Entropy != 0 && entropy(secret) <= r.Entropy {
			continue
		}
		match, line := part[m[0]:m[1]], lineOf(s, w.start+m[0], w.start+m[1])
		allowed := set.allow().allows(secret, match, line)
		for i := range r.Allow {
			allowed = allowed || r.Allow[i].allows(secret, match, line)
		}
		if !allowed {
			spans = append(spans, span{w.start + a, w.start + b, r.ID})
		}
	}
	return spans
}

// gluedForm is a rule's expression for a secret that is part of a longer word,
// as in the names of tools and directories: what stands beside it does not
// matter.
func gluedForm(src string) *regexp.Regexp {
	flags, rest := "", src
	if f, ok := strings.CutPrefix(rest, "(?i)"); ok {
		flags, rest = "(?i)", f
	}
	body, begins := strings.CutPrefix(rest, `\b`)
	ends := false
	for _, end := range []string{endInProse, `\b`, `(?:[^\w-]|\z)`, `(?:[\x60'"\s;]|\\[nr]|$|\b)`} {
		if b, ok := strings.CutSuffix(body, end); ok {
			body, ends = b, true
			break
		}
	}
	if !begins && !ends {
		return nil
	}
	return regexp.MustCompile(flags + strings.ReplaceAll(body, `\b`, ""))
}

// findGlued adds the rule's secret that holds the keyword at [start,end),
// whatever it is joined to.
func (r *rule) findGlued(set *ruleSet, s string, start, end int, spans []span) []span {
	if end-start < 3 && s[start:end] != "ey" { // too short to be told from the end of a word: s.
		return spans
	}
	if !suspect.Glued(s, end) || r.reach < 0 && len(s)-start > 1<<14 || r.glued() == nil {
		return spans
	}
	from, to := start, len(s)
	if r.reach >= 0 {
		from, to = max(0, start-r.reach), min(len(s), start+r.reach+edge)
	}
	m := r.glued().FindStringIndex(s[from:to])
	if m == nil || from+m[0] > start || from+m[1] < end {
		return spans
	}
	at, secret := from+m[0], s[from+m[0]:from+m[1]]
	if r.Entropy != 0 && entropy(secret) <= r.Entropy {
		return spans
	}
	allowed := set.allow().allows(secret, secret, secret)
	for i := range r.Allow {
		allowed = allowed || r.Allow[i].allows(secret, secret, secret)
	}
	if !allowed {
		spans = append(spans, span{at, at + len(secret), r.ID})
	}
	return spans
}

func lineOf(s string, start, end int) string {
	a := strings.LastIndexByte(s[:start], '\n') + 1
	b := len(s)
	if i := strings.IndexByte(s[end:], '\n'); i >= 0 {
		b = end + i
	}
	return s[a:b]
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	var counts [256]int
	other := map[rune]int{}
	n := 0
	for _, c := range s {
		n++
		if c < 256 {
			counts[c]++
		} else {
			other[c]++
		}
	}
	var e float64
	add := func(c int) {
		if c > 0 {
			p := float64(c) / float64(n)
			e -= p * math.Log2(p)
		}
	}
	for _, c := range counts {
		add(c)
	}
	for _, c := range other {
		add(c)
	}
	return e
}
