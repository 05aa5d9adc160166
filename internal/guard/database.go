package guard

import (
	"strings"

	"reprise/internal/guard/names"
)

// asksDatabase reports whether sqlite3 only tells what a database holds: by commands of its
// own that show, or by a question in a database that it opens for reading.
func (a *analysis) asksDatabase(g *args, st *state) bool {
	if len(g.operands) < 2 {
		return false
	}
	reads := false
	for _, o := range g.options {
		if o.opt == nil || o.opt.Name == "-init" || o.opt.Name == "-cmd" {
			return false
		}
		reads = reads || o.opt.Name == "-readonly"
	}
	for _, w := range g.operands[1:] {
		if !showsTables(w.text) && !(reads && onlyAsks(w.text)) {
			return false
		}
	}
	file := g.operands[0]
	if strings.Contains(file.text, ":") || names.Secret("/"+file.text) != "" {
		return false // in memory, or an address with options
	}
	a.path(file, use{read: true}, st)
	return true
}

// showsTables reports whether a command of sqlite3's own shows what there is.
func showsTables(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 2 || strings.ContainsAny(text, "\n;|") {
		return false
	}
	switch words[0] {
	case ".tables", ".schema", ".indexes", ".databases", ".fullschema", ".dbinfo", ".show":
		return true
	}
	return false
}

// onlyAsks reports whether a text of SQL is one question, in which nothing is called but
// what calculates.
func onlyAsks(text string) bool {
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	first, _, _ := strings.Cut(strings.ToLower(text), " ")
	if first != "select" && first != "explain" || strings.ContainsAny(text, ";\"`[") || strings.Contains(text, "--") || strings.Contains(text, "/*") || strings.Contains(text, "\n.") {
		return false
	}
	rest := strings.ToLower(text)
	for {
		i := strings.IndexByte(rest, '(')
		if i < 0 {
			return true
		}
		before := strings.TrimRight(rest[:i], " \t\n")
		word := before[strings.LastIndexFunc(before, func(r rune) bool { return r > 0x7f || r != '_' && !isWordByte(byte(r)) })+1:]
		switch word {
		case "", "count", "sum", "min", "max", "avg", "total", "length", "lower", "upper", "substr", "substring", "trim", "ltrim", "rtrim", "replace", "coalesce", "ifnull", "nullif", "iif", "abs", "round", "date", "time", "datetime", "julianday", "strftime", "unixepoch", "group_concat", "typeof", "hex", "instr", "printf", "format", "json_extract", "json_array_length", "json_type", "random", "in", "values", "exists", "not", "and", "or", "from", "where", "select", "on", "when", "then", "else", "by", "as", "over", "distinct", "like", "row_number", "rank", "dense_rank", "lag", "lead", "cast", "filter", "between", "having":
		default:
			return false
		}
		rest = rest[i+1:]
	}
}
