// Package know is what the guard knows of programs: which options are harmless,
// which write, run something or reach the network, and what their arguments
// mean. The knowledge is data, one YAML file a family of programs in package
// knowledge; table.go is made of it by go generate, as values that cost nothing
// at start, so that the hook program has no YAML to read.
//
// It is a table and its look-up: it touches no file, writes none and takes no
// lock.
package know

import (
	"slices"
	"strings"
)

// Kind is what an argument means to its program, or what an option does.
type Kind uint8

// The kinds. Flag is an option that is harmless and takes no argument; the
// others are of an argument, or of an option that does that by itself.
const (
	Flag   Kind = iota
	Text        // data
	Read        // a path that is read
	Write       // a path that is written
	Delete      // a path that is removed
	Dir         // a directory that the program works in
	Exec        // code, or a program that is run
	Script      // a file of code that is run
	Shell       // a command for a shell
	Net         // a host or an address
	Config      // a file or a value of settings, which may lead to code
	Ask         // harmless to look at, but a person has to know
	Deny        // never; of what an option does, and of no argument
	Sed         // a program for sed
	Awk         // a program for awk
	Number      // a number
	Follow      // it follows symbolic links on its way down
	Look        // a path of which name, size and kind are told, and not what it holds
)

// KindNames are the words for kinds in the YAML files, in their order.
func KindNames() []string {
	return []string{"flag", "text", "read", "write", "delete", "dir", "exec", "script", "shell", "net", "config", "ask", "deny", "sed", "awk", "number", "follow", "look"}
}

func (k Kind) String() string { return KindNames()[k] }

// Arg is whether an option takes an argument.
type Arg uint8

// Args of options: none, one, and one that can only be glued to it.
const (
	None Arg = iota
	Required
	Optional
)

// Opt is one option under one of its names.
type Opt struct {
	Name   string // with its dashes
	Arg    Arg
	Kind   Kind // of the argument; Text where it is data
	Effect Kind // of the option itself: Flag, or what it does
}

// Operand is what operands at one place mean.
type Operand struct {
	Kind Kind
	Rest bool // this one and all that follow
	// Unless are options in whose presence the operand is not there.
	Unless []string
	// Last says that it is the last one, whatever stands before it.
	Last bool
}

// Style is how a program writes its options.
type Style uint8

// Styles: GNU has clusters of letters and long options that may be abbreviated;
// Single has names of any length after one dash or two (Go, find, Terraform);
// BSD is GNU with a first cluster that may lack its dash (tar, ps); Words has no
// options at all; KeyValue has NAME=VALUE operands (dd).
const (
	GNU Style = iota
	Single
	BSD
	Words
	KeyValue
)

// StyleNames are the words for styles in the YAML files, in their order.
func StyleNames() []string { return []string{"gnu", "single", "bsd", "words", "keyvalue"} }

// Produces is what is known of each line that a program writes out.
type Produces uint8

// What a program's lines are: anything, names of files below the directories it
// was given, numbers, some of the lines that it read, or, where it is asked for that,
// places of what is installed.
const (
	Anything Produces = iota
	Paths
	Numbers
	Lines
	Installed
)

// ProducesNames are the words for them in the YAML files, in their order.
func ProducesNames() []string { return []string{"anything", "paths", "numbers", "lines", "installed"} }

// Input is what a program does with its standard input.
type Input uint8

// Inputs: what its words say, so that it reads it where no operand is a file; it reads
// it, whatever its words are; it reads it where it has no file, though it works in the
// current directory; it leaves it alone where all of its words are known; it never
// reads it, or what it starts is judged by itself.
const (
	ByWords Input = iota
	Reads
	WithoutFile
	LeavesKnown
	Leaves
)

// InputNames are the words for inputs in the YAML files, in their order.
func InputNames() []string {
	return []string{"words", "reads", "without-file", "leaves-known", "leaves"}
}

// Stdin is what a program, or "program subcommand", does with its standard input.
type Stdin struct {
	Name  string
	Input Input
}

// Help is what --help and --version are to a program that is given nothing else.
type Help uint8

// Helps: most programs tell about themselves; with HelpOfSubs each subcommand, too, does so by
// --help; with NoHelp they are words like others.
const (
	Helps Help = iota
	HelpOfSubs
	NoHelp
)

// HelpNames are the words for them in the YAML files, in their order.
func HelpNames() []string { return []string{"alone", "subs", "none"} }

// Program is what is known of a program, or of one of its subcommands.
type Program struct {
	Name string
	// Any says that no option of the program, known here or not, writes, runs
	// something or reaches the network.
	Any      bool
	Style    Style
	Opts     []Opt // sorted by name
	Operands []Operand
	Subs     []Program // sorted by name; the first operand names one
	// Bare says that a program with subcommands may be started without one.
	Bare bool
	// Stops says that its options end at its first operand: what follows is another's.
	Stops bool
	// Base is the least that is thought of the program: Flag where what it does
	// is told by its words, Ask, Net, Exec (code of the project is run), Write or Deny.
	Base Kind
	Why  string
	// Tells are options beside which the program only prints something, so that Base
	// is not thought of it; "-" stands for no word at all.
	Tells []string
	// Wraps says that the operands from the one after Skip on are a command.
	Wraps bool
	Skip  int
	// Produces is about its output.
	Produces Produces
	// Cwd says that it works in the current directory without being told so.
	Cwd bool
	// Help is what --help and --version, alone, are to it.
	Help Help
	// Follows says that it follows symbolic links on its way down but for these
	// options; nil: it does not, unless an option says so.
	Follows []string
}

// Find is what is known of a program by its name, nil where nothing is.
func Find(name string) *Program { return find(programs[:], name) }

// Sub is a subcommand, nil where it is not known.
func (p *Program) Sub(name string) *Program { return find(p.Subs, name) }

// Names are the names of all programs that are known, sorted.
func Names() []string {
	out := make([]string, len(programs))
	for i := range programs {
		out[i] = programs[i].Name
	}
	return out
}

// InputOf is what a program, or "program subcommand", does with its standard input.
func InputOf(name string) Input {
	i, found := slices.BinarySearchFunc(inputs[:], name, func(s Stdin, name string) int { return strings.Compare(s.Name, name) })
	if !found {
		return ByWords
	}
	return inputs[i].Input
}

// Inputs are all of which something is known of that, where they are kept: tests take
// them away one by one.
func Inputs() []Stdin { return inputs[:] }

func find(list []Program, name string) *Program {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := strings.Compare(list[mid].Name, name); {
		case c == 0:
			return &list[mid]
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// Opt is the option of exactly that name, nil where there is none.
func (p *Program) Opt(name string) *Opt {
	lo, hi := 0, len(p.Opts)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := strings.Compare(p.Opts[mid].Name, name); {
		case c == 0:
			return &p.Opts[mid]
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// Abbreviated are the options that a shortened long name may stand for.
func (p *Program) Abbreviated(name string) []*Opt {
	var out []*Opt
	for i := range p.Opts {
		if strings.HasPrefix(p.Opts[i].Name, name) {
			out = append(out, &p.Opts[i])
		}
	}
	return out
}

// OperandAt is what the operand at place i of n means, given the options that
// are there; nil where the program takes none at that place.
func (p *Program) OperandAt(i, n int, has func(option string) bool) *Operand {
	at := 0
	skipped := func(o *Operand) bool { return slices.ContainsFunc(o.Unless, has) }
	for k := range p.Operands {
		o := &p.Operands[k]
		if skipped(o) {
			continue
		}
		if o.Last {
			if i == n-1 {
				return o
			}
			continue
		}
		last := n
		if k+1 < len(p.Operands) && p.Operands[k+1].Last && !skipped(&p.Operands[k+1]) {
			last = n - 1
		}
		if i == at && i < last || o.Rest && i >= at && i < last {
			return o
		}
		at++
	}
	return nil
}
