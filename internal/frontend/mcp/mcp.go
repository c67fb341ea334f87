// Package mcp serves agents: it turns calls of the Model Context Protocol into
// use cases of the engine, and results into text for a model. Programs ask for
// the same as structured content ([Options.Structured]).
//
// It deliberately decides nothing about sandboxes and opens no file of one: what a
// tool does is in package engine, and what it sees comes from the guest. It adds
// the agent's side: a session works on one sandbox, its calls are served in order,
// answers come in time and are short, and every call is in the audit log.
//
// Start reading at [Serve]; tools.go lists the tools, each of which has a file
// of its own.
package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/engine/use"
)

// Options say what to serve and how.
type Options struct {
	Engine  UseCases
	Dir     string // any directory of the repository
	Version string // of litterbox

	// HTTP is the address of the streamable HTTP server; empty serves one
	// session on Stdin and Stdout.
	HTTP       string
	TokenFile  string // holds the bearer token, or will; empty makes one up
	AnyAddress bool   // HTTP may listen on other addresses than loopback

	// Structured adds structured content to each answer and declares its schema:
	// for programs. A model would read everything twice, and some clients show it
	// only the structure, a file as one escaped string.
	Structured bool

	// AnswerWithin bounds how long a call keeps its client waiting; a longer
	// command goes on, and sandbox-wait asks for its result.
	AnswerWithin time.Duration

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// DefaultAnswerWithin is less than the shortest time-out that was seen of a
// client, 60 s, and leaves room for ending a command.
const DefaultAnswerWithin = 45 * time.Second

// UseCases are the use cases that the tools need of the engine.
type UseCases interface {
	use.Work
	use.Views
	use.Copies
	use.Services
	use.Sessions
}

// instructions are what a client may show its model before the tools; some show
// only the first line.
const instructions = `Work in a litterbox sandbox, an isolated copy of this repository on a branch of its own: sandbox-create first (or sandbox-open to go on in one), then sandbox-exec, sandbox-read, sandbox-edit, sandbox-write.
Each change becomes a step, committed outside with your message (sandbox-log has the steps; git inside has only commits made inside); call sandbox-milestone when a task is done. The human reviews and merges. The network is closed unless a rule allows a host; hidden files are only reached with sandbox-exec.`

// server is the part that all sessions share.
type server struct {
	Options
	sessions registry
	caller   caller.Caller // of all calls
}

// Serve serves until ctx ends, the client goes away (stdio) or the address can no
// longer be served. Commands that still run are then ended and their work is
// committed; sandboxes stay.
func Serve(ctx context.Context, o Options) error {
	if o.AnswerWithin <= 0 {
		o.AnswerWithin = DefaultAnswerWithin
	}
	s := &server{Options: o, caller: caller.ThisProcess()}
	if o.HTTP != "" {
		s.caller = caller.Account() // a client over the network sees nothing else of this environment
	}
	ctx = caller.For(ctx, s.caller)
	s.sessions.init(ctx)
	stop := s.sessions.keep(ctx, o.Engine)
	defer stop()
	if o.HTTP != "" {
		return s.serveHTTP(ctx)
	}
	return s.serveStdio(ctx)
}

// newServer makes an SDK server with all tools. find tells which session a call
// belongs to; with handles every tool takes the session as an argument.
func (s *server) newServer(find finder, handles bool) *sdk.Server {
	made := sdk.NewServer(
		&sdk.Implementation{Name: "litterbox", Title: "litterbox", Version: s.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}},
	)
	r := &registrar{server: s, to: made, find: find, handles: handles}
	register(r)
	made.AddReceivingMiddleware(onlyServed, pointing(r.names), shortened, s.onBehalf)
	return made
}

// onBehalf names the caller that the engine works for.
func (s *server) onBehalf(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		return next(caller.For(ctx, s.caller), method, request)
	}
}

// onlyServed refuses the methods of undeclared features. The SDK would answer them
// with empty lists, as if there were prompts and resources.
func onlyServed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		feature, _, _ := strings.Cut(method, "/")
		if feature == "prompts" || feature == "resources" || feature == "completion" || feature == "logging" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		}
		return next(ctx, method, request)
	}
}
