package mcpserver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Token counts are estimates: one token for four characters, rounded up.
const (
	// maxAnswerTokens bounds any answer, text and structured form together:
	// clients warn at 10,000 tokens and refuse 25,000, and some show both.
	maxAnswerTokens = 20_000

	// maxPayloadTokens bounds the one long value of an answer, as encoded: it
	// stands in both forms, and a thousand tokens are left for what is around it.
	maxPayloadTokens = 9_000
)

func tokens(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }

// success is an answer with everything in both forms: some clients show their
// model only structuredContent, some only the text, some both.
func success(v any) (*mcp.CallToolResult, error) {
	data, err := encodeJSON(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(data)}},
		StructuredContent: v,
	}, nil
}

// failure is an answer that says what went wrong. Of an error clients show
// only the text, so all of it is there.
func failure(err error) *mcp.CallToolResult {
	msg, _ := cutText(strings.ToValidUTF8(err.Error(), "\uFFFD"), maxPayloadTokens, "")
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: msg}},
		IsError: true,
	}
}

// cost is how many characters a rune takes in an encoded answer: a line break
// is shown to the model as two.
func cost(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029':
		return 6
	}
	return 1
}

// fits returns how many bytes of s fit into max tokens, at a character
// boundary.
func fits(s string, max int) int {
	left := max * 4
	for i, r := range s {
		if left -= cost(r); left < 0 {
			return i
		}
	}
	return len(s)
}

// cutText shortens s to about max tokens, at a character boundary and, where
// one is near, at the end of a line, and marks the cut. where tells the reader
// how to get the rest.
func cutText(s string, max int, where string) (string, bool) {
	end := fits(s, max)
	if end == len(s) {
		return s, false
	}
	keep := s[:end]
	if i := strings.LastIndexByte(keep, '\n'); i > len(keep)*3/4 {
		keep = keep[:i]
	}
	left := utf8.RuneCountInString(s[len(keep):])
	if where != "" {
		where = "; " + where
	}
	return fmt.Sprintf("%s\n[truncated: %d more characters, about %d tokens%s]", keep, left, (left+3)/4, where), true
}

// wholeLines returns the lines from the top of s that fit into max tokens, and
// how many they are.
func wholeLines(s string, max int) (string, int) {
	end := fits(s, max)
	if end < len(s) {
		end = strings.LastIndexByte(s[:end], '\n') + 1
	}
	page := s[:end]
	lines := strings.Count(page, "\n")
	if page != "" && !strings.HasSuffix(page, "\n") {
		lines++
	}
	return page, lines
}
