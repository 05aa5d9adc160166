package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"reprise/internal/proc"
)

// mcpPeer is the demo's side of an MCP connection: it starts `reprise mcp` as
// a client would and speaks JSON-RPC lines with it. It is raw on purpose, so
// that the demo shows the protocol working and not a library talking to itself.
type mcpPeer struct {
	process *proc.Process
	in      *os.File // the server's standard input
	out     *bufio.Reader
	pipe    *os.File // the file under out
	nextID  int
	now     func() time.Time
	unwatch func() bool // stops the end of the context from ending a read
}

// mcpCall is a request, mcpAnswer what comes back.
type mcpCall struct {
	JSONRPC string `json:"jsonrpc"`
	ID      int    `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

type mcpAnswer struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// toolResult is the part of a tool's answer that the demo looks at.
type toolResult struct {
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func (r toolResult) text() string {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n")
}

// startPeer starts a server and shakes hands.
func startPeer(ctx context.Context, app *App, program string, args, env []string, dir string) (*mcpPeer, error) {
	serverIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start MCP server: %w", err)
	}
	defer serverIn.Close()
	ourIn, serverOut, err := os.Pipe()
	if err != nil {
		ourOut.Close()
		return nil, fmt.Errorf("start MCP server: %w", err)
	}
	defer serverOut.Close()
	p, err := proc.Start(proc.Cmd{Path: program, Args: args, Env: env, Dir: dir, Stdin: serverIn, Stdout: serverOut, Stderr: nil})
	if err != nil {
		ourOut.Close()
		ourIn.Close()
		return nil, fmt.Errorf("start MCP server: %w", err)
	}
	peer := &mcpPeer{process: p, in: ourOut, out: bufio.NewReader(ourIn), pipe: ourIn, now: app.Now}
	if deadline, ok := ctx.Deadline(); ok {
		_ = ourIn.SetReadDeadline(deadline) // a pipe that cannot have one still ends with the server
	}
	peer.unwatch = context.AfterFunc(ctx, func() { _ = ourIn.SetReadDeadline(time.Unix(1, 0)) })
	if _, err := peer.call("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]string{"name": "reprise", "version": Version()},
	}); err != nil {
		peer.stop(time.Second)
		return nil, err
	}
	return peer, peer.send(mcpCall{JSONRPC: "2.0", Method: "notifications/initialized"})
}

func (p *mcpPeer) send(m mcpCall) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write to the MCP server: %w", err)
	}
	return nil
}

// call sends a request and waits for its answer.
func (p *mcpPeer) call(method string, params any) (json.RawMessage, error) {
	p.nextID++
	id := p.nextID
	if err := p.send(mcpCall{JSONRPC: "2.0", ID: id, Method: method, Params: params}); err != nil {
		return nil, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("the MCP server ended before it answered %s: %w", method, err)
		}
		var a mcpAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("the MCP server wrote %q, which is no JSON-RPC: %w", line, err)
		}
		if a.ID == nil || *a.ID != id {
			continue // a notification
		}
		if a.Error != nil {
			return nil, fmt.Errorf("%s: %s (%d)", method, a.Error.Message, a.Error.Code)
		}
		return a.Result, nil
	}
}

// tool calls a tool and fills into with its structured answer. A tool that
// reports an error is an error.
func (p *mcpPeer) tool(name string, args map[string]any, into any) error {
	raw, err := p.call("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return err
	}
	var res toolResult
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("%s answered %q: %w", name, raw, err)
	}
	if res.IsError {
		return fmt.Errorf("%s: %s", name, res.text())
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(res.Structured, into); err != nil {
		return fmt.Errorf("%s answered %q: %w", name, res.Structured, err)
	}
	return nil
}

// stop ends the server by the end of its input, as clients do, and reports how
// long it took to go.
func (p *mcpPeer) stop(patience time.Duration) (time.Duration, error) {
	began := p.now()
	p.in.Close()
	defer p.pipe.Close()
	defer p.unwatch()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.process.Done():
		return p.now().Sub(began), nil
	case <-timer.C:
		_ = p.process.ID().Signal(os.Kill) // it may end in this very moment
		<-p.process.Done()
		return p.now().Sub(began), fmt.Errorf("the MCP server did not end within %s of the end of its input and was killed", patience)
	}
}

// toolNames reads the names out of the answer to tools/list.
func toolNames(raw json.RawMessage) ([]string, error) {
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("tools/list answered %q: %w", raw, err)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}
