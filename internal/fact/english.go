package fact

import "bytes"

// english reads one sentence.
func (s *scanner) english(t string) {
	w := &s.words
	if !w.split(t) || w.n < 2 {
		if w.n == 1 {
			s.pair(t) // KEY=value
		}
		return
	}
	from := 0
	if w.colon[0] && w.upper(0) && w.n > 3 { // "Caroline: we use pnpm", "Note: …"
		if k, _ := attribute(w.at(0)); k == "" {
			from = 1
		}
	}
	if (w.is(from, "on") || w.is(from, "in")) && place(w.at(from+1)) != "" { // "On staging, the port of …"
		from += 2
	}
	if s.use(from) {
		return
	}
	if s.pair(t) {
		return
	}
	for i := from; i < w.n; i++ {
		if hedge(w.at(i)) {
			return
		}
	}
	for i := from; i < w.n; i++ {
		switch string(w.at(i)) {
		case "is", "are":
			s.copula(from, i)
			return
		case "listens", "runs", "run", "listening", "lives", "served", "exposed":
			if s.onPort(from, i) {
				return
			}
		case "moved", "switched", "upgraded", "changed":
			if s.moved(from, i) {
				return
			}
		case "defaults":
			if w.is(i+1, "to") {
				s.named(from, i, i+2)
				return
			}
		case "owns", "maintains":
			s.owns(from, i)
			return
		case "deploy", "release", "ship":
			if (i == from || i == from+1 && w.is(from, "we")) && s.scheduled(i, i+1, i+1) {
				return
			}
		case "go", "goes", "happen", "happens", "start", "starts", "deploys":
			if i > from && s.scheduled(from, i, i+1) {
				return
			}
		}
	}
}

// value is the words from i to the end of what is said, and whether they can be
// a value of kind k.
func (s *scanner) value(i int, k kind) (string, bool) {
	w := &s.words
	for w.is(i, "now") || w.is(i, "currently") || w.is(i, "set") && w.is(i+1, "to") || w.is(i, "to") || w.is(i, "port") && k == kindPort {
		i++
	}
	if k == kindTime && (w.is(i, "on") || w.is(i, "at") || w.is(i, "every")) {
		i++
	}
	if i >= w.n || noValue(w.at(i)) || stop(w.at(i)) || article(w.at(i)) || place(w.at(i)) != "" && k != kindWord {
		return "", false
	}
	j := i
	for j < w.n && j-i < 5 {
		if j > i && (stop(w.at(j)) && !(k == kindTime && w.is(j, "at")) || place(w.at(j)) != "") {
			break
		}
		j++
		if w.comma[j-1] {
			break
		}
	}
	if j < w.n && (w.comma[j-1] || w.is(j, "and")) { // a list has no one value
		next := j
		if w.is(j, "and") {
			next++
		}
		if next < w.n && s.alike(i, next) {
			return "", false
		}
	}
	low := w.low[w.from[i]:w.to[j-1]]
	if !fits(k, low, j-i, w.upper(i)) {
		return "", false
	}
	return w.raw(i, j), true
}

// alike says that two words could stand in one list.
func (s *scanner) alike(i, j int) bool {
	w := &s.words
	a, b := w.at(i)[0], w.at(j)[0]
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	if digit(a) || digit(b) {
		return digit(a) && digit(b)
	}
	return w.upper(i) && w.upper(j) || weekday(w.at(j)) != "" || category(w.at(j)) != ""
}

// copula reads "A of X is V", "X A is V", "X is V's A" and "X is on port V";
// the verb is word i.
func (s *scanner) copula(from, i int) {
	w := &s.words
	if i == from || i+1 >= w.n {
		return
	}
	p, verb := w.place(), i
	if i-2 > from && (w.is(i-2, "on") || w.is(i-2, "in") || w.is(i-2, "for")) && place(w.at(i-1)) != "" { // "the port on staging is"
		i -= 2
	}
	if w.is(verb+1, "owned") && w.is(verb+2, "by") || w.is(verb+1, "maintained") && w.is(verb+2, "by") {
		if v, ok := s.value(verb+3, kindPerson); ok {
			s.about(w.subject(from, i), "owner", v, p)
		}
		return
	}
	if w.is(verb+1, "on") && w.is(verb+2, "port") {
		s.onPort(from, verb)
		return
	}
	// "Aiko is the owner of billing"
	if w.is(verb+1, "the") && w.is(verb+3, "of") {
		if name, k := attribute(w.at(verb + 2)); k == kindPerson && i-from <= 2 && w.upper(from) {
			s.about(s.tail(verb+4), name, w.raw(from, i), p)
		}
		return
	}
	for k := from; k+1 < i; k++ { // "the owner of billing is Aiko"
		if !w.is(k+1, "of") && !w.is(k+1, "for") {
			continue
		}
		if name, kind := attribute(w.at(k)); kind != kindNone && k-from <= 2 {
			if v, ok := s.value(verb+1, kind); ok {
				s.about(w.subject(k+2, i), s.qualified(from, k, name), v, p)
			}
			return
		}
	}
	if s.scheduled(from, i, verb+1) {
		return
	}
	s.named(from, i, verb+1)
}

// qualified is an attribute with what stands before it: "default branch".
func (s *scanner) qualified(from, k int, name string) string {
	if q := s.words.subject(from, k); q != "" && q != "current" {
		return q + " " + name
	}
	return name
}

// tail is the subject from word i to the end of what is said.
func (s *scanner) tail(i int) string {
	w := &s.words
	j := i
	for j < w.n && !stop(w.at(j)) {
		j++
		if w.comma[j-1] {
			break
		}
	}
	if j-i > 4 {
		return ""
	}
	return w.subject(i, j)
}

// named reads words from to i as "X A", where A is an attribute, or as one
// identifier, and the value from word v on.
func (s *scanner) named(from, i, v int) {
	w := &s.words
	if i-from > 6 {
		return
	}
	p := w.place()
	if i-from == 1 && identifier(w.at(from), w.src[w.from[from]:w.to[from]]) {
		if text, ok := s.value(v, kindNumber); ok {
			s.about(w.subject(from, i), "is", text, p)
		}
		return
	}
	name, kind := attribute(w.at(i - 1))
	if kind == kindNone {
		return
	}
	text, ok := s.value(v, kind)
	if !ok {
		return
	}
	// "which port the api has is 80", "logging in to the host is hard"
	for k := from; k < i-1; k++ {
		if stop(w.at(k)) || w.comma[k] {
			return
		}
	}
	s.about(w.subject(from, i-1), name, text, p)
}

// about adds a statement whose subject the sentence gave. "Default" says which
// value is meant, not of what, and some attributes a project has one of.
func (s *scanner) about(subject, name, value, place string) {
	if subject == "default" || subject == "default " {
		name, subject = "default "+name, ""
	}
	if len(subject) > 8 && subject[:8] == "default " {
		name, subject = "default "+name, subject[8:]
	}
	if subject == "" {
		switch {
		case name == "branch", name == "default branch", name == "license", name == "formatter", name == "linter", name == "timezone",
			category([]byte(normalValue(value))) == name: // "the database is Postgres"
			subject = "we"
		case s.heading == "":
			subject = place // "staging runs on port 6543" speaks of staging
		}
	}
	if subject != "" && subject != place && vague(subject) {
		return
	}
	s.add(subject, name, value, place)
}

// onPort reads "X listens on V", "X runs on port V".
func (s *scanner) onPort(from, i int) bool {
	w := &s.words
	j := i + 1
	if !w.is(j, "on") && !w.is(j, "at") || i-from > 5 || i == from {
		return false
	}
	j++
	port := w.is(j, "port")
	if port {
		j++
	} else if !w.is(i, "listens") && !w.is(i, "listening") {
		return s.scheduled(from, i, i+1)
	}
	end := i
	if end > from && w.is(end-1, "is") {
		end--
	}
	if v, ok := s.value(j, kindPort); ok {
		s.about(w.subject(from, end), "port", v, w.place())
	}
	return true
}

// moved reads "X moved to port V" and "X upgraded to V".
func (s *scanner) moved(from, i int) bool {
	w := &s.words
	end := i
	for end > from && (w.is(end-1, "has") || w.is(end-1, "is") || w.is(end-1, "been") || w.is(end-1, "we")) {
		end--
	}
	if !w.is(i+1, "to") || end == from || end-from > 5 {
		return false
	}
	if w.is(i+2, "port") {
		if v, ok := s.value(i+3, kindPort); ok {
			s.about(w.subject(from, end), "port", v, w.place())
		}
		return true
	}
	if v, ok := s.value(i+2, kindVersion); ok && w.is(i, "upgraded") {
		s.about(w.subject(from, end), "version", v, w.place())
		return true
	}
	if name, kind := attribute(w.at(end - 1)); kind != kindNone && w.is(i, "changed") {
		if v, ok := s.value(i+2, kind); ok {
			s.about(w.subject(from, end-1), name, v, w.place())
		}
	}
	return true
}

// owns reads "Aiko owns billing".
func (s *scanner) owns(from, i int) {
	w := &s.words
	if i == from || i-from > 2 || !w.upper(from) || vague(w.subject(from, i)) || w.is(from, "we") {
		return
	}
	if sub := s.tail(i + 1); sub != "" {
		s.about(sub, "owner", w.raw(from, i), w.place())
	}
}

// scheduled reads "deploys go out on Thursdays"; what follows the verb is word j.
func (s *scanner) scheduled(from, i, j int) bool {
	w := &s.words
	if w.is(j, "out") {
		j++
	}
	if !w.is(j, "on") && !w.is(j, "at") && !w.is(j, "every") || i-from > 3 {
		return false
	}
	at := w.is(j, "at")
	j++
	if j >= w.n {
		return false
	}
	name := "day"
	if at {
		if digits(string(w.at(j))) == 0 {
			return false
		}
		name = "time"
	} else if weekday(w.at(j)) == "" {
		return false
	}
	if v, ok := s.value(j, kindTime); ok {
		if sub := w.subject(from, i); sub != "" {
			s.about(sub, name, v, w.place())
		}
	}
	return true
}

// use reads "we use V", "use V, not W", "prefer V", "X uses V" and "we are on Go 1.26". It
// comes before the look for hedging words, because "not W" is part of it.
func (s *scanner) use(from int) bool {
	w := &s.words
	i, subject := from, "we"
	for w.is(i, "always") || w.is(i, "please") || w.is(i, "here") || w.is(i, "the") && w.is(i+1, "team") || w.is(i, "team") {
		i++
	}
	switch {
	case w.is(i, "use"), w.is(i, "prefer"):
	case w.is(i, "indent") && w.is(i+1, "with"):
		i++
	case w.is(i, "we") && w.is(i+1, "prefer"):
		i++
	case w.is(i, "we") && w.is(i+1, "indent") && w.is(i+2, "with"):
		i += 2
	case (w.is(i, "we") || w.is(i, "team")) && (w.is(i+1, "use") || w.is(i+1, "are") && w.is(i+2, "on") || w.is(i+1, "run") || w.is(i+1, "require")):
		i++
		if w.is(i, "are") {
			i++
		}
	case w.is(i-1, "team") && i > from && w.is(i, "uses"):
	default:
		for k := i + 1; k < w.n && k-i <= 3; k++ {
			if w.is(k, "uses") || w.is(k, "requires") {
				subject = w.subject(i, k)
				if subject == "" && k == i+1 {
					subject = place(w.at(i)) // "CI uses Jenkins"
				}
				if vague(subject) {
					return true
				}
				i = k
				break
			}
		}
		if subject == "we" {
			return false
		}
		if whole(subject) {
			subject = "we"
		}
	}
	v := i + 1
	if w.is(v, "now") || w.is(v, "only") {
		v++
	}
	if v >= w.n {
		return true
	}
	s.used(i, v, subject)
	return true
}

// used reads what is used, from word v on; i is the verb.
func (s *scanner) used(i, v int, subject string) {
	w := &s.words
	if subject != "we" || !w.is(i, "use") {
		if w.is(v, "port") {
			if p, ok := s.value(v+1, kindPort); ok && subject != "we" {
				s.about(subject, "port", p, w.place())
			}
			return
		}
	}
	not := -1
	for k := i; k < w.n; k++ {
		switch {
		case k == v+1 && (w.is(k, "not") || w.is(k, "instead") && w.is(k+1, "of") || w.is(k, "over")):
			not = k + 1
			if w.is(k, "instead") {
				not++
			}
			k = not
		case k > i && (hedge(w.at(k)) || w.is(k, "and") && k == v+1 || w.comma[v] && not < 0 && k == v+1 && category(w.at(k)) != ""):
			return
		}
	}
	name := category(w.at(v))
	for k := v + 1; k < w.n && name != ""; k++ {
		if w.is(k, "for") || w.is(k, "in") {
			if place(w.at(k+1)) == "" && k != not {
				sub := s.tail(k + 1)
				for j := k + 1; whole(sub) && j < w.n; j++ {
					if w.is(j, "but") || w.is(j, "except") {
						return // and so for what else?
					}
				}
				if sub != "" && !vague(sub) && !whole(sub) {
					subject = sub
				}
			}
			break
		}
	}
	switch {
	case name != "":
		s.add(subject, name, w.raw(v, v+1), w.place())
	case not > 0 && not < w.n: // two things of a kind that we do not know
		a, b := w.subject(v, v+1), w.subject(not, not+1)
		if b < a {
			a, b = b, a
		}
		if a != b && a != "" {
			s.add(subject, a+" or "+b, w.raw(v, v+1), w.place())
		}
	case v+1 < w.n && versionLike(w.at(v+1)) && len(w.at(v)) > 1 && !noValue(w.at(v)):
		if subject == "we" {
			s.add(sameThing(w.subject(v, v+1)), "version", w.raw(v+1, v+2), w.place())
		} else {
			s.add(subject, sameThing(w.subject(v, v+1))+" version", w.raw(v+1, v+2), w.place())
		}
	}
}

// whole says that what follows "for" or "in" is all of what is spoken of, so
// that the sentence says what we use: "use npm for everything in this project".
func whole(subject string) bool {
	switch subject {
	case "everything", "all", "all of it", "all package", "all dependency", "this project", "this repository", "this repo", "this codebase", "this workspace", "this monorepo",
		"our project", "our repository", "our repo", "our codebase", "project", "repository", "repo", "codebase", "monorepo", "whole project", "whole repository", "whole repo":
		return true
	}
	return false
}

func versionLike(v []byte) bool {
	if len(v) > 1 && v[0] == 'v' {
		v = v[1:]
	}
	for _, c := range v {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return len(v) > 0 && v[0] != '.' && len(v) < 12
}

// pair reads "key: value" and "key = value".
func (s *scanner) pair(t string) bool {
	i, width := separator(t)
	if i <= 0 {
		return false
	}
	w := &s.words
	key, val := t[:i], trimSpaceBytes(t[i+width:])
	if val == "" || len(val) > 80 || len(key) > 60 {
		return true
	}
	p := w.place()
	if !w.split(key) || w.n == 0 || w.n > 4 {
		return true
	}
	for k := range w.n {
		if hedge(w.at(k)) {
			return true
		}
	}
	ident := w.n == 1 && identifier(w.at(0), w.src[w.from[0]:w.to[0]])
	name, kind := attribute(w.at(w.n - 1))
	sub := ""
	if ident {
		sub, name = w.subject(0, 1), "is"
	} else if kind == kindNone {
		return true
	} else {
		sub = w.subject(0, w.n-1)
	}
	if !w.split(val) || w.n == 0 {
		return true
	}
	for k := range w.n {
		if hedge(w.at(k)) {
			return true
		}
	}
	if ident {
		if w.n > 2 || w.comma[0] || w.n == 2 && !(w.at(0)[0] >= '0' && w.at(0)[0] <= '9') || noValue(w.at(0)) {
			return true
		}
		s.about(sub, name, w.raw(0, w.n), p)
		return true
	}
	if text, ok := s.value(0, kind); ok {
		s.about(sub, name, text, p)
	}
	return true
}

// separator finds what parts a key from its value. What looks like a program's
// text has none.
func separator(t string) (at, width int) {
	last := t[len(t)-1]
	if last == '{' || last == ',' || last == '(' || last == '[' || last == '\\' || last == '|' {
		return -1, 0
	}
	if t[0] == '"' || t[0] == '\'' {
		return -1, 0
	}
	for i := 1; i < len(t) && i <= 60; i++ {
		switch t[i] {
		case ':':
			if i+1 < len(t) && t[i+1] == ' ' {
				return i, 1
			}
			if i+2 < len(t) && t[i+1] == '*' && t[i+2] == '*' { // **key:** value
				return i, 3
			}
			return -1, 0
		case '=':
			if i+1 < len(t) && (t[i+1] == '=' || t[i+1] == '>' || t[i+1] == '~') || t[i-1] == '!' || t[i-1] == '<' || t[i-1] == '>' ||
				t[i-1] == '+' || t[i-1] == '-' {
				return -1, 0
			}
			if last == ';' || last == ')' || code(t[:i]) {
				return -1, 0
			}
			return i, 1
		case '(', '{', '$', '/', '\\', '<', '[':
			return -1, 0
		}
	}
	return -1, 0
}

// code says that what stands before "=" declares something in a program.
func code(t string) bool {
	for _, word := range [...]string{"let ", "const ", "var ", "val ", "return ", "export ", "set ", "int ", "local ", "readonly ", "if ", "for ", "ENV ", "ARG ", "--", "-"} {
		if len(t) >= len(word) && t[:len(word)] == word {
			return true
		}
	}
	return false
}

func trimSpaceBytes(s string) string { return string(bytes.TrimSpace([]byte(s))) }

// identifier says that a word is the name of a setting: lower or upper case
// with "_" or "-" in it, or camelCase. Names of files, of tests and of what is
// measured are none.
func identifier(low []byte, raw string) bool {
	if len(low) < 4 || len(low) > 50 {
		return false
	}
	parts, humps := 0, false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && i > 0:
		case c >= 'A' && c <= 'Z':
			humps = humps || i > 0 && raw[i-1] >= 'a' && raw[i-1] <= 'z'
		case c == '_' || c == '-':
			if i == 0 || i == len(raw)-1 {
				return false
			}
			parts++
		case c == '.':
			parts++
		default:
			return false
		}
	}
	if humps && raw[0] >= 'A' && raw[0] <= 'Z' || parts == 0 && !humps {
		return false
	}
	end := len(low)
	for end > 0 && low[end-1] != '_' && low[end-1] != '-' && low[end-1] != '.' {
		end--
	}
	tail := low[end:]
	if parts == 0 { // the last hump
		for k := len(raw) - 1; k > 0; k-- {
			if raw[k] >= 'A' && raw[k] <= 'Z' {
				tail = low[k:]
				break
			}
		}
	}
	switch string(tail) {
	case "time", "count", "elapsed", "duration", "code", "id", "hash", "status", "result", "date", "total", "score", "error", "errors",
		"message", "pid", "seq", "index", "line", "offset", "lines", "bytes", "ms", "sha", "commit", "at", "progress", "state", "uuid",
		"go", "py", "js", "ts", "tsx", "jsx", "rs", "java", "md", "json", "yaml", "yml", "toml", "txt", "sh", "c", "h", "cpp", "rb", "php",
		"css", "html", "log", "lock", "sql", "test", "tests", "passed", "failed", "note", "notes", "step", "value", "data", "summary", "up", "to":
		return false
	}
	return true
}
