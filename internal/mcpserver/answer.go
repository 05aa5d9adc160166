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

	// maxPayloadTokens bounds the one long value of an answer, which stands in
	// both forms.
	maxPayloadTokens = 9_500
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

// cutText shortens s to about max tokens, at a character boundary and, where
// one is near, at the end of a line, and marks the cut. where tells the reader
// how to get the rest.
func cutText(s string, max int, where string) (string, bool) {
	if tokens(s) <= max {
		return s, false
	}
	r := []rune(s)
	keep := string(r[:max*4])
	if i := strings.LastIndexByte(keep, '\n'); i > len(keep)*3/4 {
		keep = keep[:i]
	}
	left := len(r) - utf8.RuneCountInString(keep)
	if where != "" {
		where = "; " + where
	}
	return fmt.Sprintf("%s\n[truncated: %d more characters, about %d tokens%s]", keep, left, (left+3)/4, where), true
}
