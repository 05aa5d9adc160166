package mcpserver

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/memory"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// Names of the prompts.
const (
	promptStart     = "session_start"
	promptReconcile = "reconcile_memory"
)

// What a session start shows of the two files that are always read. The files
// may hold more; the rest is named.
const (
	startCoreTokens  = 600
	startIndexTokens = 300
)

func (s *Server) addPrompts() {
	if s.hasToolset(ToolsetMemory) {
		s.SDK.AddPrompt(&mcp.Prompt{
			Name: promptStart, Title: "Begin a session with memory",
			Description: "Loads core and index and has the model read the blocks that fit.",
			Arguments: []*mcp.PromptArgument{
				{Name: "topic", Description: "What the session will be about, to choose the blocks to read."},
			},
		}, s.startPrompt)
	}
	if s.hasToolset(ToolsetMemory) && s.has("spawn_agent") {
		s.SDK.AddPrompt(&mcp.Prompt{
			Name: promptReconcile, Title: "Reconcile the client's memory with this one",
			Description: "Has an agent digest all memory files, then compares that with what the client itself remembers and repairs both.",
			Arguments: []*mcp.PromptArgument{
				{Name: "model", Description: "Model for the digest. Default sonnet."},
			},
		}, s.reconcilePrompt)
	}
}

func (s *Server) has(name string) bool {
	for _, t := range s.tools {
		if t.name == name {
			return true
		}
	}
	return false
}

func (s *Server) startPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	topic, err := promptArgument(req, "topic", 500)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	core := s.excerpt(ctx, "core", startCoreTokens)
	index := s.excerpt(ctx, "index", startIndexTokens)
	body, err := fill("session_start.md", map[string]any{
		"Topic": topic, "Core": core, "Index": index, "CanWrite": s.has("append_episodic_log"),
	})
	if err != nil {
		return nil, err
	}
	return promptResult("Begin a session with memory", body), nil
}

// excerpt is core or index, the project's before the global one where it has one.
func (s *Server) excerpt(ctx context.Context, name string, max int) string {
	doc, _, err := s.deps.Memory.Read(ctx, "", name, 0, 0)
	if err != nil || doc.Scope != memory.ScopeProject || !slices.Contains(doc.Also, memory.ScopeGlobal) {
		return s.excerptOf(ctx, "", name, max)
	}
	own := s.excerptOf(ctx, memory.ScopeProject, name, max/2)
	return fmt.Sprintf("Of project %s:\n\n%s\n\nOf all projects:\n\n%s", doc.Project, own, s.excerptOf(ctx, memory.ScopeGlobal, name, max-tokens(own)))
}

// excerptOf is the beginning of a memory file, cut at the end of a section where
// it is too long.
func (s *Server) excerptOf(ctx context.Context, scope, name string, max int) string {
	doc, _, err := s.deps.Memory.Read(ctx, scope, name, 0, 0)
	if err != nil {
		return fmt.Sprintf("(%s could not be read: %s)", name, shorten(err.Error(), 200))
	}
	text := strings.TrimSpace(strings.ToValidUTF8(doc.Content, "\uFFFD"))
	if tokens(text) <= max {
		return text
	}
	page, _ := wholeLines(text, max)
	if i := strings.LastIndex(page, "\n## "); i > 0 {
		page = page[:i]
	}
	if page == "" {
		page, _ = cutText(text, max, "")
	}
	return fmt.Sprintf("%s\n[truncated: %s.md has %d tokens in all; memory_read %s gives the rest]", strings.TrimSpace(page), name, tokens(text), name)
}

func (s *Server) reconcilePrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	model, err := promptArgument(req, "model", 200)
	if err != nil {
		return nil, err
	}
	if model == "" {
		model = "sonnet"
	}
	if !modelPattern().MatchString(model) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "argument \"model\" is not the form of a model's name: use one such as sonnet"}
	}
	body, err := fill("reconcile_memory.md", map[string]any{"Model": model, "Dir": s.deps.Memory.Dir()})
	if err != nil {
		return nil, err
	}
	return promptResult("Reconcile the two layers of memory", body), nil
}

func promptArgument(req *mcp.GetPromptRequest, name string, max int) (string, error) {
	v := strings.TrimSpace(req.Params.Arguments[name])
	p := param{name: name, kind: text, bytes: max, lines: true, blank: true}
	raw, err := encodeJSON(v)
	if err == nil {
		_, err = p.parseText(raw)
	}
	if err != nil {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("argument %q %v", name, err)}
	}
	return v, nil
}

func promptResult(about, body string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{
		Description: about,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: body}}},
	}
}

func fill(name string, data map[string]any) (string, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(promptFiles, "prompts/"+name)
	if err != nil {
		return "", fmt.Errorf("read prompt %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return "", fmt.Errorf("fill prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}
