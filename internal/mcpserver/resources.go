package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/memory"
	"reprise/internal/run"
)

// Addresses of resources. memory://core, memory://index and
// memory://blocks/{name} are the files of the memory; run://{id}/log is what a
// run said, with its state above it.
const (
	uriCore   = "memory://core"
	uriIndex  = "memory://index"
	uriBlock  = "memory://blocks/{name}"
	uriRunLog = "run://{id}/log"

	markdown = "text/markdown"

	// maxListed bounds the resources that are listed one by one; the others
	// are reached through their templates.
	maxListed     = 100
	maxListedRuns = 20
)

func (s *Server) addResources() {
	if s.hasToolset(ToolsetMemory) {
		s.SDK.AddResource(&mcp.Resource{
			URI: uriCore, Name: "core", Title: "Core memory", MIMEType: markdown,
			Description: "Who the user is and what is going on. Read first in every session.",
		}, s.memoryResource)
		s.SDK.AddResource(&mcp.Resource{
			URI: uriIndex, Name: "index", Title: "Index of the memory", MIMEType: markdown,
			Description: "One line for each block. Read second in every session.",
		}, s.memoryResource)
		s.SDK.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: uriBlock, Name: "block", Title: "Memory block", MIMEType: markdown,
			Description: "One block of memory, by the name that the index has.",
		}, s.memoryResource)
	}
	if s.hasToolset(ToolsetRuns) {
		s.SDK.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: uriRunLog, Name: "run-log", Title: "Log of a run", MIMEType: "text/plain",
			Description: "State and output of an agent run, also after its result was collected.",
		}, s.runResource)
	}
	s.SDK.AddReceivingMiddleware(s.listMore)
}

func (s *Server) hasToolset(name string) bool {
	return slices.ContainsFunc(s.tools, func(t tool) bool { return t.toolset == name })
}

// listMore adds to the list of resources what is there at this moment: the
// SDK's own list is fixed when the server is made.
func (s *Server) listMore(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListResourcesResult)
		if err != nil || method != "resources/list" || !ok {
			return res, err
		}
		if s.hasToolset(ToolsetMemory) {
			list.Resources = append(list.Resources, s.blockResources(ctx)...)
		}
		if s.hasToolset(ToolsetRuns) {
			list.Resources = append(list.Resources, s.runResources(ctx)...)
		}
		return list, nil
	}
}

// blockResources are the blocks that changed last. A memory that cannot be
// listed is an empty list here: the reason is in the log, and memory_read
// gives it to the model.
func (s *Server) blockResources(ctx context.Context) []*mcp.Resource {
	blocks, err := s.deps.Memory.List(ctx, "")
	if err != nil {
		if !errors.Is(err, memory.ErrNotFound) {
			s.logError(ctx, "resources/list", err)
		}
		return nil
	}
	slices.SortStableFunc(blocks, func(a, b memory.BlockInfo) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Name, b.Name))
	})
	var out []*mcp.Resource
	for _, b := range blocks {
		if b.Shadowed {
			continue // its name leads to the project's; memory_read has both
		}
		if len(out) == maxListed {
			break
		}
		name, about := strings.TrimSuffix(b.Name, ".md"), b.Summary
		if b.Project != "" {
			about = "project " + b.Project + ": " + about
		}
		out = append(out, &mcp.Resource{
			URI: "memory://blocks/" + url.PathEscape(name), Name: name, MIMEType: markdown,
			Description: shorten(about, 300),
		})
	}
	return out
}

func (s *Server) runResources(ctx context.Context) []*mcp.Resource {
	records, err := s.deps.Runs.List(ctx)
	if err != nil {
		s.logError(ctx, "resources/list", err)
	}
	var out []*mcp.Resource
	for _, r := range records[:min(len(records), maxListedRuns)] {
		out = append(out, &mcp.Resource{
			URI: "run://" + r.ID + "/log", Name: r.ID, MIMEType: "text/plain",
			Description: fmt.Sprintf("%s, started %s, %s", r.MCPStatus(), r.StartedAt.UTC().Format(time.RFC3339), r.Client),
		})
	}
	return out
}

func contents(uri, mime, body string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: body}}}
}

func (s *Server) memoryResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	s.logResource(ctx, req.Params.URI)
	uri := req.Params.URI
	name := strings.TrimPrefix(uri, "memory://")
	if rest, ok := strings.CutPrefix(name, "blocks/"); ok {
		plain, err := url.PathUnescape(rest)
		if err != nil || blockName(plain) != nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		name = plain
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	doc, err := s.readMemory(ctx, "", name, 0, 0, maxAnswerTokens-500)
	if errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrName) || errors.Is(err, memory.ErrOutside) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, fmt.Errorf("read resource %s: %w", uri, err)
	}
	body := doc.Content
	if doc.More {
		body += fmt.Sprintf("\n[truncated: %d lines in all; read on with memory_read, offset %d]", doc.Lines, doc.Next)
	}
	return contents(uri, markdown, body), nil
}

func (s *Server) runResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	s.logResource(ctx, req.Params.URI)
	uri := req.Params.URI
	id := strings.TrimSuffix(strings.TrimPrefix(uri, "run://"), "/log")
	rec, err := s.deps.Runs.Get(id)
	if errors.Is(err, run.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, fmt.Errorf("read resource %s: %w", uri, err)
	}
	out, err := s.deps.Runs.Output(id, maxAnswerTokens-1000)
	if err != nil {
		return nil, fmt.Errorf("read resource %s: %w", uri, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "run: %s\nstatus: %s\n", rec.ID, rec.MCPStatus())
	if rec.StatusReason != "" {
		fmt.Fprintf(&b, "reason: %s\n", shorten(rec.StatusReason, 500))
	}
	fmt.Fprintf(&b, "client: %s\nstarted: %s\nelapsed: %.1f s\nrecord: %s\noutput: %s\nstderr: %s\n\n",
		rec.Client, rec.StartedAt.UTC().Format(time.RFC3339), rec.Elapsed(s.deps.Now()).Seconds(), rec.Path(), rec.Logs.Stdout, rec.Logs.Stderr)
	body, _ := cutText(out.Text, maxAnswerTokens-1000, "the whole is in "+out.Path)
	b.WriteString(body)
	return contents(uri, "text/plain", b.String()), nil
}

// complete proposes values for the variables of resource templates.
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref, arg := req.Params.Ref, req.Params.Argument
	var all []string
	switch {
	case ref.Type == "ref/resource" && ref.URI == uriBlock && arg.Name == "name" && s.hasToolset(ToolsetMemory),
		ref.Type == "ref/prompt" && ref.Name == promptStart && arg.Name == "topic" && s.hasToolset(ToolsetMemory):
		blocks, err := s.deps.Memory.List(ctx, "")
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return nil, fmt.Errorf("complete block name: %w", err)
		}
		for _, b := range blocks {
			if !b.Shadowed {
				all = append(all, strings.TrimSuffix(b.Name, ".md"))
			}
		}
	case ref.Type == "ref/resource" && ref.URI == uriRunLog && arg.Name == "id" && s.hasToolset(ToolsetRuns):
		records, err := s.deps.Runs.List(ctx)
		if err != nil && len(records) == 0 {
			return nil, fmt.Errorf("complete run id: %w", err)
		}
		for _, r := range records {
			all = append(all, r.ID)
		}
	}
	values := []string{}
	for _, v := range all {
		if strings.HasPrefix(v, arg.Value) {
			values = append(values, v)
		}
	}
	const most = 100 // the protocol's own limit
	total := len(values)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
		Values: values[:min(total, most)], Total: total, HasMore: total > most,
	}}, nil
}
