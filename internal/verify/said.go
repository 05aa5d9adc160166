package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"reprise/internal/clip"
)

// said is what a run of a check said, for telling whether it failed in the way in which
// it failed at the base: names of tests that failed, and lines without what differs from
// run to run (times, numbers, addresses, where the copy is). In which order it said them
// is no difference.
type said struct {
	names   []string
	telling lines // what went wrong, by the line's words or form
	other   lines
	// outside are lines that complain and are no part of what a runner says of its tests.
	outside lines
	details lines // what stands around what went wrong, see [scanner.around]
	// failing is the greatest number of failures that a line counts.
	failing     int
	failingLine string
	// amounts are other numbers that are the complaint: the greater the worse.
	amounts     map[string]float64
	amountLines map[string]string
	// cut says that not all of it was read.
	cut bool
}

// lines are normalised lines by their hash: how often each was said, and one of them as
// it was.
type lines struct {
	count map[string]int
	text  map[string]string
	order []string
	cut   bool // there were more than are kept
}

// Of what is read and kept for this. Whoever prints more is not compared by it.
const (
	maxScan     = 4 << 20
	maxScanned  = 50_000 // lines, each other than the one before
	maxLine     = 4 << 10
	maxTelling  = 5_000
	maxOther    = 2_000
	maxDetails  = 10_000
	maxAmounts  = 200
	jitter      = 0.1 // of what is covered, in percent, from run to run
	maxBelow    = 12  // lines below one that complains
	maxNames    = 5_000
	keptNames   = 200 // in a result
	shownOfLine = 200
)

func (l *lines) add(key, text string, most int) {
	if l.count == nil {
		l.count, l.text = map[string]int{}, map[string]string{}
	}
	if l.count[key] == 0 {
		if len(l.order) >= most {
			l.cut = true
			return
		}
		l.order = append(l.order, key)
		l.text[key] = text
	}
	l.count[key]++
}

// scanner reads what a check prints, as it comes.
type scanner struct {
	said
	dirs     []string // that are other ones in each copy
	tmp      string   // for temporary files, of the copy
	part     []byte   // a line that has not ended
	over     bool     // and was too long
	read     int64
	n        int
	last     string
	expected bool // that a test fails was said by the line before, or its notes go on
	inNotes  bool // of such a test
	around   around
	inPart   bool     // of what a runner says of a test
	numbered []string // names in lists that runners number
	counted  bool     // and a line that counts failures, without which they are no names
	seen     map[string]bool
	// missing is how many did not pass, by the last line that counts those that did.
	missing     int
	missingLine string
}

func (s *scanner) add(b []byte) {
	if s.cut {
		return
	}
	if s.read += int64(len(b)); s.read > maxScan || s.n > maxScanned {
		s.cut = true
		return
	}
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		if room := maxLine - len(s.part); !s.over {
			s.over = len(line) > room
			s.part = append(s.part, line[:min(room, len(line))]...)
		}
		if ended {
			s.line()
		}
		b = rest
	}
}

// end is all that was said.
func (s *scanner) end() *said {
	if len(s.part) > 0 {
		s.line()
	}
	s.settle()
	if s.missing > s.failing {
		s.failing, s.failingLine = s.missing, s.missingLine
	}
	if s.counted {
		for _, n := range s.numbered {
			s.name(n)
		}
		s.numbered = nil
	}
	return &s.said
}

func (s *scanner) name(n string) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if n == "" || s.seen[n] {
		return
	}
	if len(s.names) >= maxNames {
		s.cut = true
		return
	}
	s.seen[n] = true
	s.names = append(s.names, n)
}

func (s *scanner) line() {
	l := plain(s.part)
	s.part, s.over = s.part[:0], false
	if s.tmp != "" {
		l = strings.ReplaceAll(l, s.tmp, "/tmp") // names in there are drawn, and are taken out with it
	}
	for _, d := range s.dirs {
		l = strings.ReplaceAll(l, d, "")
	}
	raw := strings.TrimRight(l, " \t\r\n")
	l = strings.TrimSpace(l)
	if l == "" {
		s.settle()
		s.around = around{}
	}
	if l == "" || l == s.last {
		return // said again and again, it says no more
	}
	s.last = l
	s.n++
	if s.ofExpected(l) {
		return
	}
	s.name(failureOf(l))
	if m := numberedItem().FindStringSubmatch(l); m != nil {
		s.numbered = append(s.numbered, withoutTime(m[1]))
	}
	if n := failuresCounted(l); n >= 0 {
		s.counted = s.counted || n > 0
		if n > s.failing {
			s.failing, s.failingLine = n, l
		}
	}
	s.unpassed(l)
	s.amount(l)
	s.apart(raw, l)
	at := position(l)
	telling := (at || tells(l)) && !warns(l)
	if good := passing(l); good || excerpt().MatchString(l) {
		if !good {
			s.below(raw, l)
		}
		return
	}
	if telling {
		s.complains(raw, l)
	} else {
		s.below(raw, l)
	}
	if !telling && s.other.cut {
		return
	}
	key := normal(l)
	if key == "" {
		return
	}
	if key = hashed(key); at {
		key += "@"
	}
	if telling {
		s.telling.add(key, l, maxTelling)
	} else {
		s.other.add(key, l, maxOther)
	}
}

func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// around is where a scanner is with lines that belong together: many programs say on one
// line that something is wrong, and in which file, or with what, on others.
type around struct {
	header string // a line that is a file's name, of which those below speak
	// complaint is a line that complains, margin how far in it stands, left how many
	// more lines below may belong to it; a frame of its stack was seen.
	complaint string
	margin    int
	left      int
	framed    bool
	// waiting is a line below it, kept until the next one says whether it is source.
	waiting, raw string
	source       bool // the next line is
}

func indent(raw string) int { return len(raw) - len(strings.TrimLeft(raw, " \t")) }

func (s *scanner) detail(key, text string, place bool) {
	if key == "" {
		return
	}
	if key = hashed(key); place {
		key += "@"
	}
	s.details.add(key, text, maxDetails)
}

// settle takes a line that waits as a detail.
func (s *scanner) settle() {
	a := &s.around
	if a.waiting != "" {
		s.detail(normal(a.waiting), a.complaint+": "+a.waiting, false)
	}
	a.waiting, a.raw = "", ""
}

// complains notes a line that complains.
func (s *scanner) complains(raw, l string) {
	s.settle()
	a := &s.around
	if a.header != "" && inHeader().MatchString(l) {
		if key := normal(l); key != "" {
			s.detail(normal(a.header)+"\n"+key, a.header+": "+l, true)
		}
	}
	if in := indent(raw); a.complaint == "" || in <= a.margin {
		a.complaint, a.margin, a.left, a.framed = l, in, maxBelow, false
	}
	a.source = false
}

// below notes any other line: what stands further in below a complaint is a part of it.
// Source is none, for it moves and is worked on, except for the word at which it points.
func (s *scanner) below(raw, l string) {
	a := &s.around
	if m := carets().FindStringSubmatch(l); m != nil {
		if at := strings.IndexByte(raw, '^'); a.waiting != "" && at < len(a.raw) && !strings.HasPrefix(l, "|") {
			if w := startingWord().FindString(a.raw[at:]); w != "" {
				s.detail("at "+w, a.complaint+": "+strings.TrimSpace(a.raw), false)
			}
		}
		a.waiting = m[1]
		if a.complaint == "" || indent(raw) <= a.margin {
			a.waiting = ""
		}
		s.settle()
		return
	}
	s.settle()
	if a.source {
		a.source = false
		return
	}
	if m := fileLine().FindStringSubmatch(l); m != nil { // Python, OCaml
		a.source = true
		if !ofOthers(l) {
			s.detail("in "+normal(m[1]), l, false)
		}
		return
	}
	if onlyFile(l) {
		a.header = l
	}
	if src := excerpt().MatchString(l) && !strings.HasPrefix(l, "at "); src || a.complaint == "" {
		return
	}
	if indent(raw) <= a.margin || a.left == 0 || warns(l) || advice().MatchString(l) {
		a.complaint = ""
		return
	}
	if m := frame().FindStringSubmatch(l); m != nil {
		if !a.framed && !ofOthers(l) {
			a.framed = true
			s.detail("in "+normal(m[1]), a.complaint+": "+l, false)
		}
		return
	}
	if strings.HasPrefix(l, "at ") {
		return
	}
	a.left--
	a.waiting, a.raw = l, raw
}

// ofOthers reports whether a line of a stack is about a library's or the language's file.
func ofOthers(l string) bool {
	for _, p := range [...]string{"node_modules", "node:", "site-packages", "/lib/python", "<frozen", "at java.", "at jdk.", "at sun.", "at org.junit"} {
		if strings.Contains(l, p) {
			return true
		}
	}
	return false
}

// onlyFile reports whether a line is a file's name, as linters write above what they say
// of it.
func onlyFile(l string) bool {
	return len(l) < 300 && !strings.ContainsAny(l, " \t\"'()=<>|") && strings.ContainsAny(l, "./\\") && strings.IndexFunc(l, unicode.IsLetter) >= 0
}

// apart notes a line that complains of something that is no test: of a compiler or linter
// that ran beside, of a program that crashed. What tests print is theirs and may vary, so
// that only forms count that tests have seldom.
func (s *scanner) apart(raw, l string) {
	switch {
	case partEnds().MatchString(l):
		s.inPart = false
	case partBegins().MatchString(l):
		s.inPart = true
	}
	if s.inPart || warns(l) {
		return
	}
	place := true
	switch {
	case strings.HasPrefix(l, "--> ") && places().MatchString(l):
	case s.around.header != "" && eslint().MatchString(l):
		l = s.around.header + ": " + l
	case raw != l:
		return
	case crashed().MatchString(l):
		place = false
	default:
		m := diagnostic().FindStringSubmatch(l)
		if m == nil || tmpPath().MatchString(m[1]) || remark().MatchString(l) {
			return
		}
	}
	key := normal(l)
	if key == "" {
		return
	}
	if key = hashed(key); place {
		key += "@"
	}
	s.outside.add(key, l, maxOther)
}

// ofExpected reports whether a line of TAP is about a test that may fail, or one of the
// notes below such a line.
func (s *scanner) ofExpected(l string) bool {
	switch {
	case mayFail().MatchString(l):
		s.expected, s.inNotes = true, false
		return true
	case s.expected && l == "---":
		s.inNotes = true
		return true
	case s.inNotes && !strings.HasPrefix(l, "ok ") && !strings.HasPrefix(l, "not ok "):
		s.inNotes = l != "..."
		s.expected = s.inNotes
		return true
	}
	s.expected, s.inNotes = false, false
	return false
}

// news is what this run said that the one at the base did not: new names, where both
// have some, else lines. why says it where neither is known.
func (s *said) news(base *said) (names, lines []string, why string) {
	if s.named(base) {
		for _, n := range s.names {
			if !slices.Contains(base.names, n) {
				names = append(names, n)
			}
		}
		if len(names) == 0 {
			if len(base.outside.count) < maxOther {
				lines = s.outside.beyond(&base.outside)
			}
			lines = append(lines, s.worse(base)...)
		}
		if len(names)+len(lines) == 0 && s.failing > base.failing && base.failing > 0 {
			lines = []string{s.failingLine}
		}
		return names, lines, ""
	}
	if s.silent() && !base.silent() {
		return nil, nil, "it says nothing, unlike there"
	}
	now, was := &s.telling, &base.telling
	if len(now.order) == 0 {
		// Nothing looks like an error, as of formatters that only name files.
		now, was = &s.other, &base.other
	}
	if s.cut || base.cut || now.cut || was.cut {
		return nil, nil, "it prints too much for being compared with what it printed there"
	}
	lines = now.beyond(was)
	lines = append(lines, s.worse(base)...)
	if len(lines) == 0 && len(s.telling.order) > 0 {
		if s.details.cut || base.details.cut {
			return nil, nil, "it prints too much for being compared with what it printed there"
		}
		lines = s.details.beyond(&base.details)
	}
	if len(lines) == 0 && s.failing > base.failing && base.failing > 0 {
		lines = []string{s.failingLine}
	}
	return nil, lines, ""
}

// beyond are those that were not among the ones of before. That something stands at one
// more place counts; that it was said once more, by another thread or try, does not.
func (l *lines) beyond(was *lines) []string {
	var out []string
	for _, key := range l.order {
		if is, before := l.count[key], was.count[key]; before == 0 || strings.HasSuffix(key, "@") && is > before {
			out = append(out, l.text[key])
		}
	}
	return out
}

func (s *said) silent() bool {
	return len(s.names)+len(s.telling.count)+len(s.other.count) == 0 && !s.cut
}

// shown are texts as a result has them; redact takes secrets out, where that was not
// done.
func shown(list []string, redact func(string) string) []string {
	var out []string
	for _, l := range list[:min(len(list), keptNames)] {
		if redact != nil {
			l = clip.Runes(redact(l), shownOfLine)
		}
		out = append(out, l)
	}
	return out
}

// atBase is what is kept of a run at the base.
func (s *said) atBase(b *atBase) {
	b.Failures, b.Telling, b.Other = s.names, s.telling.count, s.other.order
	b.Amounts = s.amounts
	b.Outside = s.outside.count
	b.Details, b.CutDetails = s.details.count, s.details.cut
	b.Failing, b.Cut, b.CutTelling, b.CutOther = s.failing, s.cut, s.telling.cut, s.other.cut
}

// said is what was kept of a run at the base.
func (b *atBase) said() *said {
	s := &said{names: b.Failures, failing: b.Failing, amounts: b.Amounts, cut: b.Cut}
	s.telling = lines{count: b.Telling, cut: b.CutTelling}
	s.outside = lines{count: b.Outside}
	s.details = lines{count: b.Details, cut: b.CutDetails}
	s.other = lines{count: map[string]int{}, cut: b.CutOther}
	for _, key := range b.Other {
		s.other.count[key]++
	}
	return s
}

// ended is in which way a check failed where that is no exit code of its own choice:
// "" where it is one.
func (c *CheckResult) ended() string {
	switch {
	case c.TimedOut:
		return "it ran out of its time"
	case c.Signal != "":
		return "it was ended by the signal " + c.Signal
	case c.Exit == 124 && (c.said == nil || c.said.failing != c.Exit): // timeout(1)
		return "a program in it ran out of its time (exit code 124)"
	case c.Exit == 126 || c.Exit == 127:
		return "it could not be started (exit code " + strconv.Itoa(c.Exit) + ")"
	case slices.Contains(signals[:], c.Exit-128) && (c.said == nil || c.said.failing != c.Exit):
		// So says a shell, and a check is a line for one. Programs whose exit code
		// is the number of failures say that number, too.
		return "a program in it was ended by a signal (exit code " + strconv.Itoa(c.Exit) + ")"
	}
	return ""
}

// signals end a program that does not work, or by somebody's will: hangup, interrupt,
// quit, illegal instruction, trap, abort, bus error (7, 10), arithmetic, kill,
// segmentation fault, bad call (12, 31), alarm, terminate, limits. A broken pipe (13) is
// none of them: it comes and goes with how fast a reader ends.
var signals = [...]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 24, 25, 31}

var (
	// mayFail is what TAP says of a test whose failure is none.
	mayFail      = pattern(`^not ok\b.*\s#\s+(?i:TODO|SKIP)\b`)
	numberedItem = pattern(`^\d+\) (\S.*)$`)
	// excerpt is a line of source, as compilers and runners show around an error.
	excerpt = pattern(`^>?\s*\d*\s*[|│]|^(?:at |File ")`)
	// partBegins and partEnds are around what runners say of tests, with what those
	// printed: pytest, unittest, cargo, vitest, RSpec, googletest, go test -v.
	partBegins = pattern(`^(?:=+ (?:FAILURES|ERRORS|warnings summary.*) =+|={20,}|---- .* stdout ----|⎯+ +Failed .*|Failures:|\[ RUN .*|=== (?:RUN|CONT|NAME|PAUSE) .*)$`)
	partEnds   = pattern(`^(?:=+ (?:short test summary info|.* in [\d.:]+ ?s.*) =+$|Ran \d+ tests?\b|test result: |Test Files |Failed examples:|Finished in |\[  FAILED|\[       OK|\[  PASSED|--- (?:FAIL|PASS|SKIP): |(?:PASS|FAIL)$|(?:ok|FAIL)\s|# )`)
	// diagnostic is what compilers and linters say: most with a line and a column.
	diagnostic = pattern(`^(?:vet: )?((?:[A-Za-z]:)?[^\s:()]+\.[A-Za-z]\w*)(?::\d+:\d+(?::\s| - error| [A-Z]+\d{2,}| lint/)|\(\d+(?:,\d+)+\): |:\d+: (?:fatal |syntax )?error: [^-]|:\d+ [A-Z]{2}\d{3})`)
	remark     = pattern(`(?i)^[^\s]+\s*(?:warning|note|remark|info|hint)\b`)
	crashed    = pattern(`\(core dumped\)$|^(?:\S+: (?:line )?\d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction)\b|^Killed$|^An error occurred while loading |^g?make(?:\[\d+\])?: \*\*\* \[.*\] Error \d+$|^[Ww]ould reformat:? `)
	// carets are below source, with what is wrong there behind them or not.
	carets       = pattern("^[|│]?[\\s~-]*\\^[\\^~-]*(?:\\s+(.*))?$")
	startingWord = pattern(`^[\pL\pN_.$]+`)
	inHeader     = pattern(`^\d+:\d+\s`)
	fileLine     = pattern(`^File "([^"]+)"`)
	frame        = pattern(`^at (?:.*[\s(])?([^\s():]*(?::[/\\])?[^\s():]+\.\w+):\d+(?::\d+)?\)?$`)
	// advice is what a program lists that could be meant: it comes and goes with what
	// else there is.
	advice = pattern(`(?i)^[=•*\-\s]*(?:help|note|hint|tip|info|did you mean|candidates?|similar|perhaps|suggest)`)
	// places are how compilers and linters begin a line: with a file and a line in it.
	places  = pattern(`^(?:[-└╰╭├][-─]+[>▶]? ?\[?|vet: |\[\w+\] )?((?:[A-Za-z]:)?[^\s:()]+)[:(]\[?\d+(?:[,:]\d+)*[\])]?(?::|\s|$)`)
	eslint  = pattern(`^\d+:\d+\s+(?:error|warning)\s`)
	took    = pattern(`[ (\[]+\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|sec|seconds)[)\]]?$`)
	warning = pattern(`(?i)\bwarn(?:ing)?\b`)
)

// pattern is compiled when it is first needed.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func withoutTime(name string) string { return strings.TrimSpace(took().ReplaceAllString(name, "")) }

// position reports whether a line is about a place in a file.
func position(l string) bool {
	if eslint().MatchString(l) {
		return true
	}
	m := places().FindStringSubmatch(l)
	return m != nil && strings.ContainsAny(m[1], "./") && strings.Trim(m[1], "0123456789.") != ""
}

// warns reports whether a line says no more than a warning, which fails no check that
// says something worse.
func warns(l string) bool {
	return warning().MatchString(l) && !strings.Contains(strings.ToLower(l), "error")
}

// passing reports whether a line is about what went well: such lines come and go with
// every test that is written, whatever words are in its name.
func passing(l string) bool {
	for _, p := range [...]string{"✓", "✔", "√", "ok ", "ok\t", "PASS", "--- PASS", "--- SKIP", "=== ", "# Subtest", "[       OK", "[ RUN", "[  PASSED", "(pass)", "Compiling ", "Running "} {
		if strings.HasPrefix(l, p) {
			return true
		}
	}
	for _, p := range [...]string{" ok", " OK", " PASSED", " passed", " PASS"} {
		if strings.HasSuffix(l, p) && failuresCounted(l) <= 0 {
			return true
		}
	}
	return strings.Contains(l, " PASSED ") && !strings.Contains(l, "FAIL")
}

// What differs from run to run.
var (
	tmpPath  = pattern(`(?:/private)?(?:/var)?/tmp/[^\s:"'()]+|/var/folders/[^\s:"'()]+|[A-Za-z]:\\[^\s"']*\\Temp\\[^\s:"'()]+`)
	hexWord  = pattern(`\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]+(?:-[0-9a-fA-F]+){2,}\b|\b[0-9a-f]{7,}\b`)
	word     = pattern(`[\pL_]*[0-9]+(?:[.,:][0-9]+)*(?:[\pL_]+[0-9]*)*`)
	code     = pattern(`^[A-Z]{1,5}[0-9]{3,5}$`) // of a diagnostic, as TS2304
	digits   = pattern(`[0-9]+(?:[.,:][0-9]+)*`)
	ordinal  = pattern(`(?i)^(?:gw|worker|thread|pid|tmp|seed|port|run|job|shard|pool|try|attempt|process|proc|_)*[0-9]`)
	duration = pattern(`(?i)#\s?(?:ns|us|µs|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b`)
	months   = pattern(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* #|# (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)`)
	pairs    = pattern(`(?i)#(?:/#)? (?:\w+ )?(?:passed|passing|failed|failing|failures?|errors?|skipped|pending|todo|total|tests?|examples?|warnings?|problems?|suites?|files?|ignored|measured|filtered|assertions?|xfailed|xpassed|issues?|deselected|cancelled)\b|\b(?:tests run|tests|runs|failures|errors|skipped|passed|failed|pass|fail)[:=]? ?#`)
	rules    = pattern(`[=\-_*~^.⎯─━]{3,}`)
	between  = pattern(`[\s,;|()\[\]]+`)
)

// normal is a line without what differs from run to run, and without what it counts:
// "" where nothing is left.
func normal(l string) string {
	if strings.ContainsAny(l, "/\\") {
		l = tmpPath().ReplaceAllString(l, "#")
	}
	if strings.ContainsAny(l, "0123456789#") {
		l = withoutNumbers(withExpected(l))
	}
	l = rules().ReplaceAllString(l, " ")
	l = strings.TrimSpace(between().ReplaceAllString(l, " "))
	if strings.Trim(l, "#:.✖ℹ! /") == "" {
		return ""
	}
	return l
}

func withoutNumbers(l string) string {
	l = status().ReplaceAllString(l, "$1$4 HTTP$3$5$6")
	l = hexWord().ReplaceAllStringFunc(l, func(s string) string {
		if strings.ContainsAny(s, "0123456789") {
			return "#"
		}
		return s
	})
	l = word().ReplaceAllStringFunc(l, func(s string) string {
		switch {
		case code().MatchString(s):
			return s
		case ordinal().MatchString(s), len(s) >= 8 && len(digits().FindAllString(s, 3)) == 3: // it was drawn
			return digits().ReplaceAllString(s, "#")
		case s[0] >= '0' && s[0] <= '9':
			return digits().ReplaceAllString(s, "#")
		}
		// A name, as of a test: its number is what tells it from others. What comes
		// behind a colon is a place.
		if at := strings.IndexAny(s, ".,:"); at >= 0 {
			return s[:at] + digits().ReplaceAllString(s[at:], "#")
		}
		return s
	})
	l = duration().ReplaceAllString(l, "#")
	l = months().ReplaceAllString(l, "#")
	return pairs().ReplaceAllString(l, " ")
}

var (
	unittest = pattern(`^(?:FAIL|ERROR): (\w+ \([\w.<>]+\))`)
	minitest = pattern(`^(\w+(?:::\w+)*#\w+) \[`)
	ctest    = pattern(`^\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT)\)`)
	fileOf   = pattern(`^(?:FAIL|❯) +([\w@./\\-]*\.[\w]+(?: > .*)?)(?: \(.*)?$`)
)

// failureOf is the name of what a line of a test runner says has failed, "" where it
// names none.
func failureOf(l string) string {
	name := ""
	switch {
	case strings.HasPrefix(l, "--- FAIL: "): // go test
		name = cutAt(l[len("--- FAIL: "):], " (")
	case strings.HasPrefix(l, "FAIL\t"): // go test, of a package
		name = cutAt(l[len("FAIL\t"):], "\t")
	case strings.HasPrefix(l, "FAILED ") && strings.Contains(l, "::"): // pytest
		name = cutAt(l[len("FAILED "):], " - ")
	case strings.HasPrefix(l, "ERROR ") && strings.Contains(l, ".py"): // pytest, collecting
		name = cutAt(l[len("ERROR "):], " - ")
	case strings.HasPrefix(l, "test ") && strings.HasSuffix(l, " ... FAILED"): // cargo
		name = strings.TrimSuffix(l[len("test "):], " ... FAILED")
	case strings.HasPrefix(l, "error: could not compile `"): // cargo, with the same exit code
		name = "could not compile " + cutAt(l[len("error: could not compile `"):], "`")
	case strings.HasPrefix(l, "Bail out!"): // TAP
		name = l
	case strings.HasPrefix(l, "not ok "): // TAP
		name = tapName(l[len("not ok "):])
	case strings.HasPrefix(l, "● ") || strings.HasPrefix(l, "✕ ") || strings.HasPrefix(l, "× "): // jest, vitest
		_, name, _ = strings.Cut(l, " ")
		name = cutAt(name, " (")
	case strings.HasPrefix(l, "✖ ") && failuresCounted(l) < 0: // node's own runner
		name = l[len("✖ "):]
	case strings.HasPrefix(l, "rspec ./") && strings.Contains(l, " # "): // the same words may stand in two files
		file, words, _ := strings.Cut(l[len("rspec "):], " # ")
		name = cutAt(file, ":") + ": " + words
	case strings.HasPrefix(l, "(fail) "): // bun
		name = cutAt(l[len("(fail) "):], " [")
	case strings.HasPrefix(l, "[  FAILED  ] ") && failuresCounted(l) < 0: // googletest
		name = cutAt(l[len("[  FAILED  ] "):], " (")
	case strings.HasPrefix(l, "FAIL [") && strings.Contains(l, "] "): // cargo nextest
		_, name, _ = strings.Cut(l, "] ")
	case strings.HasPrefix(l, "[ERROR] ") && strings.Contains(l, "<<< "): // Maven
		if name = cutAt(cutAt(l[len("[ERROR] "):], " -- Time elapsed"), "  Time elapsed"); strings.HasPrefix(name, "Tests run:") {
			name = l[strings.LastIndexByte(l, ' ')+1:]
		}
	case strings.HasPrefix(l, "[ERROR] COMPILATION ERROR"):
		name = "COMPILATION ERROR"
	case strings.HasSuffix(l, " FAILED") && strings.Contains(l, " > "): // Gradle
		name = strings.TrimSuffix(l, " FAILED")
	default:
		for _, re := range [...]*regexp.Regexp{unittest(), minitest(), ctest(), fileOf()} {
			if m := re.FindStringSubmatch(l); m != nil {
				name = m[1]
				break
			}
		}
	}
	if name = withoutTime(name); len(name) >= 300 {
		return ""
	}
	return name
}

func cutAt(s, sep string) string {
	s, _, _ = strings.Cut(s, sep)
	return s
}

// tapName is the description of a TAP line, for numbers move.
func tapName(s string) string {
	s = cutAt(s, " # ")
	s = strings.TrimLeft(s, "0123456789 ")
	return strings.TrimPrefix(s, "- ")
}
