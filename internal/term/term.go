// Package term makes text for terminals: colour where it is wanted, tables that
// line up, steps that read well in a log too, and foreign text that cannot play
// tricks. It only formats: it reads no environment, owns no file and takes no
// lock.
package term

import (
	"strings"
)

// WantColour decides whether to colour. get looks up an environment variable;
// tty says whether the output is a terminal. NO_COLOR with any value switches
// colour off and wins (no-color.org); FORCE_COLOR or CLICOLOR_FORCE, other than
// "0" and "false", switch it on anywhere; else a terminal has it unless TERM is
// "dumb" or CLICOLOR is "0".
func WantColour(get func(string) string, tty bool) bool {
	if get("NO_COLOR") != "" {
		return false
	}
	for _, name := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		switch v := get(name); v {
		case "":
		case "0", "false":
			return false
		default:
			return true
		}
	}
	return tty && get("TERM") != "dumb" && get("CLICOLOR") != "0"
}

// Style colours text, or leaves it as it is. The zero Style leaves it.
type Style struct{ on bool }

// NewStyle returns a Style that colours when on.
func NewStyle(on bool) Style { return Style{on} }

// On tells whether the style colours.
func (s Style) On() bool { return s.on }

func (s Style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return sgrBegin + code + "m" + text + sgrEnd
}

const (
	sgrBegin = "\x1b["
	sgrEnd   = "\x1b[0m"
)

// ownCodes are those that a Style writes.
var ownCodes = []string{"0", "1", "2", "31", "32", "33", "34", "36"}

// Bold makes text stand out.
func (s Style) Bold(text string) string { return s.sgr("1", text) }

// Dim makes text step back.
func (s Style) Dim(text string) string { return s.sgr("2", text) }

// Red is for what failed.
func (s Style) Red(text string) string { return s.sgr("31", text) }

// Green is for what is well.
func (s Style) Green(text string) string { return s.sgr("32", text) }

// Yellow is for what needs a look.
func (s Style) Yellow(text string) string { return s.sgr("33", text) }

// Blue is for names and places.
func (s Style) Blue(text string) string { return s.sgr("34", text) }

// Cyan is for commands that a person can type.
func (s Style) Cyan(text string) string { return s.sgr("36", text) }

// Diff colours a unified diff line by line.
func (s Style) Diff(diff string) string {
	if !s.on {
		return diff
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		text, eol := line, ""
		if strings.HasSuffix(line, "\n") {
			text, eol = line[:len(line)-1], "\n"
		}
		switch {
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"):
			text = s.Bold(text)
		case strings.HasPrefix(text, "@@"):
			text = s.Cyan(text)
		case strings.HasPrefix(text, "+"):
			text = s.Green(text)
		case strings.HasPrefix(text, "-"):
			text = s.Red(text)
		}
		b.WriteString(text + eol)
	}
	return b.String()
}
