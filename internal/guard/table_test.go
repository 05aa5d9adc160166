package guard

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/internal/guard/know"
)

var update = flag.Bool("update", false, "write what testdata records anew; look at the difference")

// entry is a program of the table, or a subcommand, by the words that call it.
type entry struct {
	words string
	p     *know.Program
}

// entries are the programs of the table with their subcommands. Of names that mean
// the same only the first is there; same says which these are.
func entries() (list []entry, same map[string][]string) {
	same = map[string][]string{}
	var add func(words string, p *know.Program)
	add = func(words string, p *know.Program) {
		list = append(list, entry{words, p})
		for i := range p.Subs {
			s := &p.Subs[i]
			if j := slices.IndexFunc(p.Subs[:i], func(o know.Program) bool { return alike(&o, s) }); j >= 0 {
				key := words + " " + p.Subs[j].Name
				same[key] = append(same[key], s.Name)
				continue
			}
			add(words+" "+s.Name, s)
		}
	}
	var firsts []*know.Program
	for _, name := range know.Names() {
		p := know.Find(name)
		switch name {
		case "gfind", "fdfind", "gxargs", "doas": // judged as what they mean
			continue
		}
		if builtin(name) != nil || after(name) == nil {
			if i := slices.IndexFunc(firsts, func(o *know.Program) bool { return alike(o, p) }); i >= 0 {
				same[firsts[i].Name] = append(same[firsts[i].Name], name)
				continue
			}
			firsts = append(firsts, p)
		}
		add(name, p)
	}
	return list, same
}

// alike reports whether two programs differ in their names only.
func alike(a, b *know.Program) bool {
	x, y := *a, *b
	x.Name, y.Name = "", ""
	if len(x.Opts) != len(y.Opts) || len(x.Subs) != len(y.Subs) || x.Base != y.Base {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// verdicts are what the guard says of a program with each of its options, with an
// argument that is a plain word and with one that is a file outside, and of its
// operands: a line a verdict.
func (p project) verdicts(e entry) []string {
	return p.asked(e, e.p.Opts, true)
}

// asked are the verdicts about these options, and about operands.
func (p project) asked(e entry, opts []know.Opt, operands bool) []string {
	by := map[string][]string{}
	r := p.rules()
	look := func(label string, words ...string) {
		program := e.words
		if program == "time" {
			program = "command time" // else it is the shell's own word
		}
		v := r.Command(program+" "+strings.Join(words, " "), p.dir)
		var rules []string
		for _, part := range v.Parts {
			rules = append(rules, part.Rule)
		}
		slices.Sort(rules)
		key := strings.Join(append([]string{string(v.Decision)}, slices.Compact(rules)...), " ")
		by[key] = append(by[key], label)
	}
	if operands {
		p.askedOperands(e, look)
	}
	for _, o := range opts {
		if o.Arg == know.Required {
			for _, program := range []string{"'BEGIN{system(1)}'", "1e"} {
				if o.Kind == know.Awk || o.Kind == know.Sed {
					look(o.Name+" "+program, o.Name, program)
				}
			}
		}
		if e.p.Base == know.Net {
			// Beside a host that is allowed the option alone decides.
			look(o.Name+" beside a host", "http://localhost/", o.Name, "http://127.0.0.1/")
		}
		if o.Effect == know.Follow {
			look(o.Name+" among links", o.Name, "-r", "x", ".")
		}
		switch {
		case o.Arg == know.None:
			look(o.Name, o.Name)
		case o.Arg == know.Optional:
			look(o.Name, o.Name)
			look(o.Name+"=x", glue(e.p, o.Name, "1"))
			look(o.Name+"=/", glue(e.p, o.Name, "/etc/a"))
		case e.p.Style == know.KeyValue:
			look(o.Name+"=x", o.Name+"=1")
			look(o.Name+"=/", o.Name+"=/etc/a")
		default:
			look(o.Name+" x", o.Name, "1")
			look(o.Name+" /", o.Name, "/etc/a")
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(by)) {
		out = append(out, k+": "+strings.Join(by[k], ", "))
	}
	return out
}

func (p project) askedOperands(e entry, look func(label string, words ...string)) {
	look("(nothing)")
	look("(unknown)", "--zz-none")
	look("(host)", "http://localhost/")
	look("(program)", "'BEGIN{system(1)}'")
	look("(script)", "1e")
	// What is asked about anyway hides what the words mean: then they have to be
	// told by the reason, which names the first.
	for n := 1; n <= 3; n++ {
		look(fmt.Sprintf("(%d plain)", n), strings.Split("f sub README.md", " ")[:n]...)
		look(fmt.Sprintf("(%d outside)", n), strings.Split("/etc/a /etc/b /etc/c", " ")[:n]...)
		look(fmt.Sprintf("(last outside of %d)", n), append(strings.Split("f sub README.md", " ")[:n-1], "/etc/c")...)
	}
	if len(e.p.Follows) > 0 {
		look("(among links)", "f", ".")
	}
	if e.p.Wraps {
		look("(wraps)", strings.Repeat("1 ", e.p.Skip)+"touch x")
	}
}

// glue puts an optional argument to its option.
func glue(p *know.Program, name, arg string) string {
	if strings.HasPrefix(name, "--") || p.Style == know.Single {
		return name + "=" + arg
	}
	return name + arg
}

// What the guard says of each program of the table with each of its options stands
// in testdata/table.txt: to take away an entry, or to make it milder, changes a
// verdict there. Everything that is "allow" there was looked at for what the program
// then does, and is tried out by the canaries.
func TestTable(t *testing.T) {
	p := newProject(t)
	var b strings.Builder
	list, same := entries()
	for _, e := range list {
		b.WriteString(e.words)
		if also := same[e.words]; len(also) > 0 {
			b.WriteString(" (also " + strings.Join(also, " ") + ")")
		}
		b.WriteByte('\n')
		for _, l := range p.verdicts(e) {
			b.WriteString("\t" + l + "\n")
		}
	}
	isRecorded(t, "table.txt", b.String())
}

// Mutations of the table: each entry taken away or made milder, one by one, changes
// a verdict of its program. All of them in the long form, each thirtieth else.
func TestTableMutations(t *testing.T) {
	p := newProject(t)
	every := 10
	if long() || os.Getenv("MUTANTS") != "" {
		every = 1
	}
	n, count, survive := 0, 0, 0
	programs, _ := entries()
	known := redundant(t)
	var list []string
	for _, e := range programs {
		each(e.p, func(what string, o *know.Opt, change func() (undo func())) {
			if n++; n%every != 0 {
				return
			}
			var opts []know.Opt // the questions stay the same
			if o != nil {
				opts = []know.Opt{*o}
			}
			before := p.asked(e, opts, o == nil)
			undo := change()
			after := p.asked(e, opts, o == nil)
			undo()
			if count++; slices.Equal(before, after) {
				survive++
				if line := e.words + " " + what; *update {
					list = append(list, line)
				} else if !known[line] {
					t.Errorf("nothing changes: %s", line)
				}
			}
		})
	}
	if *update && every == 1 {
		if err := os.WriteFile(filepath.Join("testdata", "redundant.txt"), []byte(strings.Join(list, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("table: %d mutants, %d survive", count, survive)
}

// redundant are the mutations of the table that change nothing, from
// testdata/redundant.txt: what they take away follows from another entry, too (a
// name of which another one is the beginning, a cluster of letters, a program that
// is asked about in any case).
func redundant(t *testing.T) map[string]bool {
	data, err := os.ReadFile(filepath.Join("testdata", "redundant.txt"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		out[l] = true
	}
	return out
}

// each makes the mutations of one program.
func each(p *know.Program, try func(what string, o *know.Opt, change func() func())) {
	old := *p
	restore := func() { *p = old }
	with := func(change func()) func() func() { return func() func() { change(); return restore } }
	if p.Base != know.Flag {
		try("without its base", nil, with(func() { p.Base = know.Flag }))
	}
	if len(p.Follows) > 0 {
		try("where it follows no links", nil, with(func() { p.Follows = nil }))
	}
	for i, name := range p.Tells {
		try("where "+name+" tells nothing", p.Opt(name), with(func() { p.Tells = slices.Delete(slices.Clone(old.Tells), i, i+1) }))
	}
	if p.Wraps {
		try("where it wraps nothing", nil, with(func() { p.Wraps = false }))
	}
	for i, o := range old.Opts {
		if o.Effect != know.Flag {
			try("without the effect of "+o.Name, &o, with(func() { p.Opts = slices.Clone(old.Opts); p.Opts[i].Effect = know.Flag }))
		}
		if weighty(o.Kind) {
			try("with text for "+o.Name, &o, with(func() { p.Opts = slices.Clone(old.Opts); p.Opts[i].Kind = know.Text }))
		}
		if !p.Any {
			try("without "+o.Name, &o, with(func() { p.Opts = slices.Delete(slices.Clone(old.Opts), i, i+1) }))
		}
	}
	for i, o := range old.Operands {
		if weighty(o.Kind) {
			try(fmt.Sprintf("with text for operand %d", i), nil, with(func() { p.Operands = slices.Clone(old.Operands); p.Operands[i].Kind = know.Text }))
		}
	}
}
