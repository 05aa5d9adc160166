// Command conformance is a small MCP server for the official conformance
// suite, which drives tools, resources and prompts of fixed names that no
// product has. It stands on mcpserver.Core and its HTTP front, the same that
// the real server stands on, so the suite tests those.
//
//	go run ./internal/mcpserver/conformance -addr 127.0.0.1:0 -portfile FILE
//
// It writes the port to FILE (through internal/durable; no lock), serves
// /mcp without authentication on loopback, and ends on an interrupt or when its
// standard input ends, if -stdin was given.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/internal/config"
	"reprise/internal/durable"
	"reprise/internal/mcpserver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(argv []string) error {
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "address to listen on")
	portFile := flags.String("portfile", "", "file to write the port to")
	untilEOF := flags.Bool("stdin", false, "end when standard input ends")
	if err := flags.Parse(argv); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
			stop()
		}()
	}
	var portErr error
	err := newFixture().ServeHTTP(ctx, mcpserver.HTTPOptions{
		Addr: *addr, NoAuth: true, Now: time.Now,
		// The suite begins a session for each scenario and ends none.
		Limits: config.HTTPLimits{Sessions: 100},
		Ready: func(a net.Addr) {
			fmt.Printf("http://%s%s\n", a, mcpserver.EndpointPath)
			if *portFile == "" {
				return
			}
			port := a.(*net.TCPAddr).Port
			if portErr = durable.WriteFile(*portFile, []byte(strconv.Itoa(port)+"\n"), 0o600); portErr != nil {
				stop()
			}
		},
	})
	if portErr != nil {
		return portErr
	}
	return err
}

// newFixture is the server with everything that the suite asks for.
func newFixture() *mcpserver.Core {
	core := mcpserver.NewCore(&mcp.Implementation{Name: "reprise-conformance", Version: "1"}, &mcp.ServerOptions{
		Instructions: "A fixture for the conformance suite.",
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	addTools(core.SDK)
	addResources(core.SDK)
	addPrompts(core.SDK)
	return core
}
