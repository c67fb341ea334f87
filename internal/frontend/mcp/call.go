package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// finder tells which session a call belongs to. argument is the session that the
// call names itself; begins is true for tools that may begin one.
type finder func(request *sdk.CallToolRequest, argument string, begins bool) (*session, error)

// registrar adds tools to one SDK server.
type registrar struct {
	server  *server
	to      *sdk.Server
	find    finder
	handles bool
	names   []string // of the tools so far
}

// tool is what a client sees of a tool, besides its schemas.
type tool struct {
	name        string
	description string
	reads       bool // changes nothing; add sets it
	idempotent  bool
	additive    bool // removes nothing that exists
	open        bool // may reach the network
	begins      bool // may begin a session
	apart       bool // needs no sandbox
}

// arguments of a tool say which of them belong in the audit log.
type arguments interface {
	logged() map[string]any
	// check finds errors that a schema cannot express; its error is fault.Invalid.
	check() error
}

// result is the answer of a tool: text is for models and people; the exported
// fields are the same as structured content, for programs that ask for it.
type result interface{ text() string }

// blocks is a result with content beside its text: an image, a file.
type blocks interface{ blocks() []sdk.Content }

// call is one call under way.
type call struct {
	*server
	session *session
	hold    engine.Hold // the sandbox; none for tools that need no sandbox
	request *sdk.CallToolRequest
	entry   *engine.Call // in the audit log

	outcome engine.Outcome
	detach  bool // another goroutine closes the entry

	explicit bool // the client names its session with every call
}

func (c *call) place() engine.Place { return engine.Place{Dir: c.Dir, Name: c.hold.Name} }

// add adds one tool.
func add[In arguments, Out result](r *registrar, t tool, run func(context.Context, *call, In) (Out, error)) {
	t.reads = readsOnly(t.name)
	r.names = append(r.names, t.name)
	input := schemaOf[In](r.handles)
	if !t.begins && !t.apart {
		addArgument(input, sandboxArgument, "") // eleven times the same words would cost a model more than they tell
	}
	var output any // nil: none is declared
	if r.server.Structured {
		output = schemaOf[Out](false)
	}
	handler := func(ctx context.Context, request *sdk.CallToolRequest) (answer *sdk.CallToolResult, err error) {
		defer func() {
			// A defect in one tool must not end every session.
			if p := recover(); p != nil {
				answer = failure(t.name, fault.New(fault.Internal, "%s broke: %v", t.name, p))
				fmt.Fprintf(r.server.Stderr, "litterbox: %s broke: %v\n%s", t.name, p, debug.Stack())
			}
		}()
		out, err := serve(ctx, r, t, input, request, run)
		if err != nil {
			return failure(t.name, err), nil
		}
		return success(out, r.server.Structured)
	}
	r.to.AddTool(&sdk.Tool{
		Name: t.name, Description: t.description, InputSchema: input, OutputSchema: output,
		Annotations: t.annotations(),
	}, handler)
}

// annotations leave out the protocol's defaults: that a tool which changes
// something may destroy, and that it may reach the network.
func (t tool) annotations() *sdk.ToolAnnotations {
	hints := &sdk.ToolAnnotations{ReadOnlyHint: t.reads, IdempotentHint: t.idempotent || t.reads}
	no := false
	if t.additive && !t.reads {
		hints.DestructiveHint = &no
	}
	if !t.open {
		hints.OpenWorldHint = &no
	}
	return hints
}

// serve is one call from arguments to result: which session, its turn, an entry
// in the audit log, its sandbox.
func serve[In arguments, Out result](ctx context.Context, r *registrar, t tool, schema *jsonschema.Schema,
	request *sdk.CallToolRequest, run func(context.Context, *call, In) (Out, error),
) (out Out, err error) {
	in, about, invalid := decode[In](t.name, schema, request.Params.Arguments)
	s, err := r.find(request, about.session, t.begins || t.apart)
	if err != nil {
		return out, err
	}
	if r.handles && about.session == "" {
		// Begun by this call: without a sandbox no call will ever name it.
		defer func() {
			if !s.holds() {
				r.server.sessions.end(s)
			}
		}()
	}
	give, err := s.turn.take(ctx, t.reads)
	if err != nil {
		return out, err
	}
	defer give()
	c := &call{server: r.server, session: s, request: request, explicit: r.handles}
	client := &sdk.Implementation{}
	if info := request.ClientInfo(); info != nil {
		client = info
	}
	actor := s.identify(client.Name, client.Version)
	action := engine.Action{Name: t.name, Dir: r.server.Dir, Sandbox: c.about(in, s, about.sandbox), Reads: t.reads}
	if invalid == nil {
		action.Arguments = in.logged()
	} else {
		action.Arguments = map[string]any{"invalid": engine.Digest(string(request.Params.Arguments))}
	}
	ctx, c.entry, err = r.server.Engine.Begin(ctx, actor, action)
	if err != nil {
		return out, err
	}
	defer func() {
		if c.detach {
			return
		}
		c.outcome.Err = err
		err = errors.Join(err, c.entry.End(c.outcome))
	}()
	if invalid != nil {
		return out, invalid
	}
	if !t.apart && !t.begins {
		if c.hold, err = s.held(ctx, c.Dir, about.sandbox); err != nil {
			return out, err
		}
	}
	if out, err = run(ctx, c, in); err != nil && c.hold.Path != "" {
		err = inProject{err, c.hold.Path}
	}
	return out, err
}

// about is the sandbox that a call is about, for the log.
func (c *call) about(in any, s *session, sandbox string) string {
	if named, ok := in.(interface{ sandbox() string }); ok {
		return named.sandbox()
	}
	if hold, err := s.find(sandbox); err == nil && hold != nil {
		return hold.Name
	}
	return sandbox
}

// success is a result as clients get it: text and, where it was asked for, the
// same as structure.
func success(out result, structured bool) (*sdk.CallToolResult, error) {
	answer := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out.text()}}}
	if structured {
		structure, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		answer.StructuredContent = json.RawMessage(structure)
	}
	if more, ok := out.(blocks); ok {
		answer.Content = append(answer.Content, more.blocks()...)
	}
	return answer, nil
}
