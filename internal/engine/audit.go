package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Actor is the requester, for the audit log.
type Actor struct {
	Via     string // "cli", "mcp" or "ssh"
	Client  string // as it names itself
	Version string
	Session string
}

// Action is the request, for the audit log. Arguments are redacted here; the
// content of files must go through [audit.Digest] first.
type Action struct {
	Name      string
	Dir       string // a directory of the repository
	Sandbox   string // as typed
	Arguments map[string]any
	Reads     bool // it changes nothing: one entry, written when it is over

	found *place // the sandbox, where the use case has found it already; Dir and Sandbox are not read then
}

// Outcome is the result of an action.
type Outcome struct {
	Commit   string
	ExitCode *int
	Tip      string // what was merged or deleted
	Err      error
}

// Call is an open entry of the audit log. A nil Call is one that a caller further
// up has opened.
type Call struct {
	log     *audit.Log
	entry   audit.Entry
	begun   time.Time
	secrets redact.Secrets
	seen    *sighting // what locate looked up; nil when it found no sandbox

	mu     sync.Mutex // guards the durability of log, and
	commit string     // the last that was made on the way
}

// callKey is where a context holds the open call.
type callKey struct{}

// Begin opens an entry for an action: a frontend does for a tool call, every use
// case that changes something does for itself where no frontend has. An action that
// cannot be logged is not done. A change that a mere read makes necessary, such as
// a start, has an entry of its own.
func (e *Engine) Begin(ctx context.Context, who Actor, action Action) (context.Context, *Call, error) {
	if open := openCall(ctx); open != nil {
		if action.Reads || open.entry.Event != audit.EventRead {
			return ctx, nil, nil
		}
		who = open.actor()
	}
	caller := callerOf(ctx)
	call := &Call{log: e.auditLog(), begun: time.Now(), secrets: e.secretsOf(ctx)}
	call.entry = audit.Entry{
		Event: audit.EventCall, Action: action.Name, Time: call.begun.UTC(), Arguments: call.redact(action.Arguments),
		Who: &audit.Who{Via: who.Via, Client: who.Client, Version: who.Version, Session: who.Session, User: caller.User, PID: os.Getpid()},
	}
	call.locate(e, action)
	if action.Reads {
		call.entry.Event = audit.EventRead
	} else if err := call.log.Append(ctx, &call.entry); err != nil {
		return ctx, nil, err
	}
	return context.WithValue(ctx, callKey{}, call), call, nil
}

// openCall is the entry under which ctx works; nil when there is none.
func openCall(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// apart is ctx for something that gets an entry of its own.
func apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, (*Call)(nil))
}

func (c *Call) actor() Actor {
	who := c.entry.Who
	return Actor{Via: who.Via, Client: who.Client, Version: who.Version, Session: who.Session}
}

// record is Begin for the engine's own use cases.
func (e *Engine) record(ctx context.Context, name, dir, box string, arguments map[string]any) (context.Context, *Call, error) {
	return e.Begin(ctx, Actor{Via: "cli"}, Action{Name: name, Dir: dir, Sandbox: box, Arguments: arguments})
}

// recordIn is record for a use case that has found its sandbox: it does not
// repeat the look-up.
func (e *Engine) recordIn(ctx context.Context, p *place, name string, arguments map[string]any) (context.Context, *Call, error) {
	return e.Begin(ctx, Actor{Via: "cli"}, Action{Name: name, Arguments: arguments, found: p})
}

// end records the result of the call and returns err, joined with the log's own
// error when it cannot be written.
func (c *Call) end(commit string, exit *int, err error) error {
	return c.close(Outcome{Commit: commit, ExitCode: exit, Err: err})
}

func (c *Call) close(outcome Outcome) error {
	return errors.Join(outcome.Err, c.End(outcome))
}

// made notes a commit that was made under the call open in ctx.
func made(ctx context.Context, commit string) {
	if c := openCall(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.commit = commit
	}
}

// End closes the entry.
func (c *Call) End(outcome Outcome) error {
	if c == nil {
		return nil
	}
	e := c.entry
	if e.Event == audit.EventCall {
		e = audit.Entry{Event: audit.EventResult, Call: c.entry.Seq, Action: c.entry.Action, Sandbox: c.entry.Sandbox}
	}
	e.Time = time.Now().UTC()
	e.Duration = time.Since(c.begun)
	c.mu.Lock()
	e.Commit = cmp.Or(outcome.Commit, c.commit)
	log := *c.log
	c.mu.Unlock()
	e.Tip, e.ExitCode, e.Outcome = outcome.Tip, outcome.ExitCode, "ok"
	if outcome.Err != nil {
		e.Outcome = string(fault.KindOf(outcome.Err))
		e.Problem = audit.Text(outcome.Err.Error(), c.secrets)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	return log.Append(ctx, &e)
}

// endPatience bounds the wait for the log to record the result of a call, which is
// worth recording for an interrupted one too.
const endPatience = 5 * time.Second

// locate notes repository and sandbox, as far as they are known.
func (c *Call) locate(e *Engine, action Action) {
	if p := action.found; p != nil {
		c.entry.Repository, c.entry.Sandbox, c.entry.SandboxID = cmp.Or(p.seen.Top, p.record.Repository), p.record.Name, p.record.ID
		c.log.Strict = p.record.Strict
		return
	}
	if action.Dir == "" {
		return
	}
	location, ok := git.Locate(action.Dir)
	if !ok {
		c.entry.Repository = action.Dir
		c.entry.Sandbox = action.Sandbox
		return
	}
	c.entry.Repository = location.Top
	slug, err := sandbox.Slug(action.Sandbox)
	if err != nil {
		return
	}
	c.entry.Sandbox = slug
	if id, err := e.Store.Claimed(location.CommonDir, slug); err == nil && id != "" {
		c.entry.SandboxID = id
		c.seen = &sighting{root: e.Store.Root, dir: action.Dir, slug: slug, location: location, id: id}
		// A record that cannot be read is a problem of the use case.
		if record, err := e.Store.Sandbox(id); err == nil {
			c.log.Strict = record.Strict
		}
	}
}

// durably makes the call open in ctx as durable as a sandbox that was not in the
// store when it began. Flushing its result flushes everything before it.
func durably(ctx context.Context, strict bool) {
	if c := openCall(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log.Strict = c.log.Strict || strict
	}
}

func (c *Call) redact(arguments map[string]any) map[string]any {
	clean := make(map[string]any, len(arguments))
	for key, value := range arguments {
		switch value := value.(type) {
		case string:
			if value == "" {
				continue
			}
			clean[key] = audit.Text(value, c.secrets)
		case []string:
			if len(value) == 0 {
				continue
			}
			list := make([]string, len(value))
			for i, one := range value {
				list[i] = audit.Text(one, c.secrets)
			}
			clean[key] = list
		case bool:
			if value {
				clean[key] = value
			}
		default:
			clean[key] = value
		}
	}
	return clean
}

// auditTrailer names the entry under which a commit is made.
const auditTrailer = "Litterbox-Audit"

// auditHash is the hash of the open call; outside of one it is the head.
func (e *Engine) auditHash(ctx context.Context) string {
	if call := openCall(ctx); call != nil && call.entry.Hash != "" {
		return call.entry.Hash
	}
	head, err := e.auditLog().Head()
	if err != nil {
		return "" // the log cannot be read: verification will say so
	}
	return head
}

func (e *Engine) auditLog() *audit.Log {
	return &audit.Log{Dir: filepath.Join(e.Store.Shared(), "audit")}
}

// Digest stands for the content of a file in the arguments of an [Action].
func Digest(content string) string { return audit.Digest(content) }

// AuditEntry is an entry of the log, for frontends.
type AuditEntry = audit.Entry

// AuditWho is the requester in an entry, for frontends.
type AuditWho = audit.Who

// AuditFinding is something that verification found.
type AuditFinding = audit.Finding

// AuditQuery says which entries are wanted; zero fields mean all.
type AuditQuery struct {
	Dir   string // with Name: any directory of the repository
	Name  string
	Since time.Time
}

// Audit reads the log, oldest entry first. Results belong to the sandbox of
// their calls.
func (e *Engine) Audit(ctx context.Context, query AuditQuery) (iter.Seq2[AuditEntry, error], error) {
	var name, top string
	if query.Name != "" {
		var err error
		if name, err = sandbox.Slug(query.Name); err != nil {
			return nil, err
		}
		repo, err := git.Open(ctx, query.Dir)
		if err != nil {
			return nil, err
		}
		top = repo.Top
	}
	return func(yield func(AuditEntry, error) bool) {
		wanted := map[uint64]bool{} // calls whose results are wanted too
		for entry, err := range e.auditLog().Entries() {
			if err == nil {
				ours := name == "" || entry.Sandbox == name && entry.Repository == top ||
					entry.Event == audit.EventResult && wanted[entry.Call]
				if ours && entry.Event == audit.EventCall {
					wanted[entry.Seq] = true
				}
				if !ours || entry.Time.Before(query.Since) {
					continue
				}
			}
			if !yield(entry, err) {
				return
			}
		}
	}, nil
}
