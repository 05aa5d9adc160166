package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Scopes: what a token lets its holder do. Beside them --read-only and
// --toolsets decide what there is at all.
const (
	Scope      = "reprise"       // everything
	ScopeRead  = "reprise:read"  // read memory, state, tasks and what runs said
	ScopeWrite = "reprise:write" // change memory, state and tasks
	ScopeRuns  = "reprise:runs"  // start and stop agents on this machine
)

// Scopes are all scopes there are, the one for everything first.
func Scopes() []string { return []string{Scope, ScopeRead, ScopeWrite, ScopeRuns} }

// codeScope is of the range that JSON-RPC leaves to servers.
const codeScope = -32001

// scope is what a token must have for the tool.
func (t tool) scope() string {
	switch {
	case t.reads:
		return ScopeRead
	case t.toolset == ToolsetRuns:
		return ScopeRuns
	}
	return ScopeWrite
}

// scopeFor is what a token must have to call a method, with a tool for
// tools/call; "" where any scope of this server will do. A tool that there is
// not needs none: the answer is that there is none.
func (s *Server) scopeFor(method, name string) string {
	switch method {
	case "tools/call":
		for _, t := range s.tools {
			if t.name == name {
				return t.scope()
			}
		}
	case "resources/read", "resources/subscribe", "subscriptions/listen", "prompts/get", "completion/complete":
		return ScopeRead
	}
	return ""
}

// grants reports whether a token with the scopes have may do what need is for.
func grants(have []string, need string) bool {
	if slices.Contains(have, Scope) {
		return true
	}
	if need == "" {
		return slices.ContainsFunc(have, func(s string) bool { return slices.Contains(Scopes(), s) })
	}
	return slices.Contains(have, need)
}

// wanted are the scopes of this server that a client should ask for so that it
// has what it had and need: RFC 6750 has the answer name them.
func wanted(have []string, need string) []string {
	var out []string
	for _, s := range Scopes() {
		if s == need || slices.Contains(have, s) {
			out = append(out, s)
		}
	}
	return out
}

// calls are the methods of a message, each with the tool that it names. A text
// that is none has none: the SDK refuses it.
func calls(body []byte) (out []struct{ method, tool string }) {
	type message struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	var one message
	var many []json.RawMessage
	if json.Unmarshal(body, &many) != nil {
		many = []json.RawMessage{body}
	}
	for _, raw := range many {
		one = message{}
		// A name that is no text leaves the method behind, which is enough.
		_ = json.Unmarshal(raw, &one)
		if one.Method != "" {
			out = append(out, struct{ method, tool string }{one.Method, one.Params.Name})
		}
	}
	return out
}

// checkScope refuses what the token of a request is not for. The gate has
// looked already, so that a client can ask for more; this is the look at the
// message as the SDK reads it, which decides.
func (s *Server) checkScope(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		info := tokenOf(req)
		if info == nil { // standard input, or --no-auth
			return next(ctx, method, req)
		}
		name := ""
		if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && p != nil {
			name = p.Name
		}
		need := s.scopeFor(method, name)
		if !grants(info.Scopes, need) {
			return nil, &jsonrpc.Error{Code: codeScope, Message: fmt.Sprintf("the token lacks the scope %s, which %s needs: %s", need, strings.TrimSpace(method+" "+shorten(name, 60)), moreScope(info, need))}
		}
		res, err := next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && err == nil && isStatic(info) {
			res = s.shownTo(list, info)
		}
		return res, err
	}
}

func moreScope(info *auth.TokenInfo, need string) string {
	if isStatic(info) {
		return "make one with `reprise mcp token create NAME --scope " + strings.Join(wanted(info.Scopes, need), " --scope ") + "`"
	}
	return "ask the authorization server for one with it"
}

// shownTo leaves out the tools that a token of ours can never call. With an
// authorization server a client can ask for more when it needs to, and has to
// know what there is.
func (s *Server) shownTo(list *mcp.ListToolsResult, info *auth.TokenInfo) *mcp.ListToolsResult {
	out := *list
	out.Tools = []*mcp.Tool{} // never null
	for _, t := range list.Tools {
		if grants(info.Scopes, s.scopeFor("tools/call", t.Name)) {
			out.Tools = append(out.Tools, t)
		}
	}
	return &out
}

// tokenOf is the token that a request came with; nil where none was needed.
func tokenOf(req mcp.Request) *auth.TokenInfo {
	if extra := req.GetExtra(); extra != nil {
		return extra.TokenInfo
	}
	return nil
}

// principalOf is who a request is counted for; "" where nobody is counted.
func principalOf(req mcp.Request) string {
	if info := tokenOf(req); info != nil {
		return info.UserID
	}
	return ""
}

// staticUser begins the names of those who come with a token of ours.
const staticUser = "token:"

func isStatic(info *auth.TokenInfo) bool { return strings.HasPrefix(info.UserID, staticUser) }
