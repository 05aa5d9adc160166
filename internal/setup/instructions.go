package setup

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// instructionsText is the section for a client's instructions file. It is read
// at the start of every session, so it is kept below instructionsBudget.
//
//go:embed instructions.md
var instructionsText string

const (
	// InstructionsBudget is the most that the section may cost, in tokens of
	// about four characters; also what a lean instructions file should not pass.
	InstructionsBudget = 500

	// beginMark's words may change: the section is found by how it begins.
	beginMark = "<!-- reprise:begin (managed by `reprise setup --with-instructions`; edit outside these lines) -->"
	endMark   = "<!-- reprise:end -->"
)

// section finds the marked part of an instructions file. It begins and ends at
// line boundaries. ok is false when there is none.
func section(text []byte) (from, to int, ok bool, err error) {
	begins := bytes.Count(text, []byte("<!-- reprise:begin"))
	ends := bytes.Count(text, []byte(endMark))
	switch {
	case begins == 0 && ends == 0:
		return 0, 0, false, nil
	case begins != 1 || ends != 1:
		return 0, 0, false, fmt.Errorf("there are %d begin and %d end marks of reprise's section; leave one pair, or none", begins, ends)
	}
	from = bytes.Index(text, []byte("<!-- reprise:begin"))
	to = bytes.Index(text, []byte(endMark)) + len(endMark)
	if to <= from {
		return 0, 0, false, errors.New("the end mark of reprise's section stands before its begin mark; put them in order, or remove both")
	}
	if i := bytes.LastIndexByte(text[:from], '\n'); len(bytes.TrimSpace(text[i+1:from])) == 0 {
		from = i + 1
	}
	to = lineEnd(text, to)
	return from, to, true, nil
}

// setInstructions puts the section into text: where it is already, else at the
// end, after a blank line.
func setInstructions(text []byte) ([]byte, error) {
	eol := "\n"
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		eol = "\r\n"
	}
	body := strings.ReplaceAll(beginMark+"\n"+strings.TrimSpace(instructionsText)+"\n"+endMark+"\n", "\n", eol)
	from, to, ok, err := section(text)
	if err != nil {
		return nil, err
	}
	if ok {
		return splice(text, from, to, body), nil
	}
	gap := ""
	if len(text) > 0 {
		gap = eol
		if text[len(text)-1] != '\n' {
			gap = eol + eol
		}
	}
	return append(bytes.Clone(text), gap+body...), nil
}

// removeInstructions takes the section out, with the blank line before it.
func removeInstructions(text []byte) (out []byte, found bool, err error) {
	from, to, ok, err := section(text)
	if err != nil || !ok {
		return text, false, err
	}
	switch {
	case bytes.HasSuffix(text[:from], []byte("\r\n\r\n")):
		from -= 2
	case bytes.HasSuffix(text[:from], []byte("\n\n")):
		from--
	}
	return splice(text, from, to, ""), true, nil
}
