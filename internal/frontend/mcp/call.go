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

// finder tells which session a call is of. argument is the session that the
// call names itself; begins is true for tools that may begin one.
type finder func(request *sdk.CallToolRequest, argument string, begins bool) (*session, error)

// registrar adds tools to one SDK server.
type registrar struct {
	server  *server
	to      *sdk.Server
	find    finder
	handles bool
}

// tool is what a client gets to see of a tool, beside its schemas.
type tool struct {
	name        string
	title       string
	description string
	reads       bool // changes nothing; add sets it
	idempotent  bool
	additive    bool // takes nothing away that was there
	open        bool // may reach the network
	begins      bool // may begin a session
	apart       bool // needs no sandbox
}

// arguments of a tool say what of them belongs into the audit log.
type arguments interface {
	logged() map[string]any
	// check finds what a schema cannot say; its error is fault.Invalid.
	check() error
}

// result is what a tool answers: text is for models and people; the exported
// fields are the same as structured content, for programs that ask for it.
type result interface{ text() string }

// blocks is a result with content beside its text: an image, a file.
type blocks interface{ blocks() []sdk.Content }

// call is one call under way.
type call struct {
	*server
	session *session
	hold    engine.Hold // the sandbox; none for tools that stand apart
	request *sdk.CallToolRequest
	entry   *engine.Call // in the audit log

	outcome engine.Outcome
	detach  bool // somebody else closes the entry

	explicit bool // the client names its session with every call
}

func (c *call) place() engine.Place { return engine.Place{Dir: c.Dir, Name: c.hold.Name} }

// add adds one tool.
func add[In arguments, Out result](r *registrar, t tool, run func(context.Context, *call, In) (Out, error)) {
	t.reads = readsOnly(t.name)
	input := schemaOf[In](r.handles)
	if !t.begins && !t.apart {
		addArgument(input, sandboxArgument, "") // eleven times the same words would cost a model more than they tell
	}
	var output any // nil: none is declared
	if r.server.Structured {
		output = schemaOf[Out](false)
	}
	destructive, open := !t.reads && !t.additive, t.open
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
		Name: t.name, Title: t.title, Description: t.description, InputSchema: input, OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.reads, IdempotentHint: t.idempotent || t.reads, DestructiveHint: &destructive, OpenWorldHint: &open,
		},
	}, handler)
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
		// Begun by this call: without a sandbox nobody will ever name it.
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
	return run(ctx, c, in)
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
