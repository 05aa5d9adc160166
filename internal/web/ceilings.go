package web

import (
	"fmt"
	"slices"

	"reprise/internal/loop"
	"reprise/internal/term"
)

// ceilingField is a ceiling that a form raises.
type ceilingField struct {
	Name, Words string // of the form, and for people
	Least, Most string // where it must be raised, and at all
	Step, Keys  string
}

func ceilingFields() []ceilingField {
	return []ceilingField{
		{"attempts", "attempts", "1", "1000000", "1", "numeric"},
		{"hours", "hours", "0.01", "8784", "any", "decimal"},
		{"usd", "US dollars", "0.01", "1000000", "any", "decimal"},
		{"tokens", "tokens", "1", "1000000000000", "1", "numeric"},
	}
}

// ceilingForm are the fields by which ceilings are raised.
type ceilingForm struct {
	ID     string // before those of its fields
	Need   string // the field without which nothing would come of it, "" where there is none
	Of     string // whose they are, "" of the loop here
	Fields []ceilingField
}

// ceilingsOf is the form for a loop as it stands. Of tokens it is known by how many the
// ceiling must be raised at least: a loop that has used more than it may waits on below that.
func ceilingsOf(id, need, of string, m loop.Metrics) ceilingForm {
	f := ceilingForm{ID: id, Need: need, Of: of, Fields: ceilingFields()}
	if over := m.Tokens - m.MaxTokens; need == "tokens" && over > 0 {
		i := slices.IndexFunc(f.Fields, func(c ceilingField) bool { return c.Name == need })
		f.Fields[i].Least = fmt.Sprint(over + 1)
		f.Fields[i].Words += ", " + term.Num(over+1) + " at least"
	}
	return f
}

// Only is the field that is needed, and Others are the rest.
func (f ceilingForm) Only() ceilingForm {
	return f.where(func(c ceilingField) bool { return c.Name == f.Need })
}

func (f ceilingForm) Others() ceilingForm {
	return f.where(func(c ceilingField) bool { return c.Name != f.Need })
}

func (f ceilingForm) where(keep func(ceilingField) bool) ceilingForm {
	f.Fields = slices.DeleteFunc(slices.Clone(f.Fields), func(c ceilingField) bool { return !keep(c) })
	return f
}
