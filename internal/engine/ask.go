package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Question is put to the human while a program waits: something inside tries to
// reach a destination that no rule allows, or wants a signature of the human's
// ssh-agent.
type Question struct {
	keeper.Question
	Warning string // what speaks against it; may be empty
}

// Decision is the human's answer.
type Decision string

// The decisions.
const (
	Once           Decision = "once"       // while this command runs
	ThisSandbox    Decision = "sandbox"    // a new revision of its policy
	ThisRepository Decision = "repository" // that, and .litterbox.toml for sandboxes to come
	Never          Decision = "never"      // a new revision that denies it
	NotNow         Decision = "refuse"     // refused, and not asked again by this command
	NoMore         Decision = "all"        // refused, and this command asks no more
)

// questions is the connection over which the keeper asks.
type questions struct {
	stream wire.Stream
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// takeQuestions lets the keeper ask, from now until close. decide is called for
// one question at a time.
func (e *Engine) takeQuestions(ctx context.Context, p *place, request ExecRequest) (*questions, error) {
	cannot := func(err error) error {
		return fault.Wrap("", err, "cannot ask about the network of sandbox %q", p.record.Name)
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return nil, cannot(err)
	}
	frames := wire.NewReader(stream)
	err = wire.WriteJSON(stream, wire.KindRequest, wire.Request{Version: wire.Version, Op: keeper.OpAsk})
	var kind wire.Kind
	if err == nil {
		kind, _, err = frames.Next()
	}
	if err == nil && kind != wire.KindStarted {
		err = keeper.ErrOtherVersion(p.record.Name)
	}
	if err != nil {
		return nil, errors.Join(cannot(err), stream.Close())
	}
	q := &questions{stream: stream}
	ctx, q.cancel = context.WithCancel(ctx)
	q.done.Go(func() {
		silent := false
		for {
			_, payload, err := frames.Next()
			if err != nil {
				return // the command is over, or the sandbox
			}
			var question Question
			if json.Unmarshal(payload, &question.Question) != nil {
				return
			}
			answer := keeper.Answer{ID: question.ID, Answer: keeper.RefuseAll}
			if !silent { // a keeper of another version asks on
				answer.Answer = e.decide(ctx, p, request, question)
			}
			silent = answer.Answer == keeper.RefuseAll
			if wire.WriteJSON(stream, wire.KindStdin, answer) != nil {
				return
			}
		}
	})
	return q, nil
}

// close ends the questions, a pending one included; waiting ones are refused.
// Calling it twice is safe.
func (q *questions) close() {
	q.cancel()
	_ = q.stream.Close() // nothing is left to be said
	q.done.Wait()
}

// decide asks the human and puts the answer in force.
func (e *Engine) decide(ctx context.Context, p *place, request ExecRequest, question Question) string {
	if question.Signature != nil {
		switch decision := request.Ask(ctx, question); decision {
		case Once:
			return keeper.AllowOnce
		case NoMore:
			return keeper.RefuseAll
		}
		return keeper.RefuseAsked
	}
	question.Warning = preset.Warning(question.Host)
	change := PolicyRequest{Dir: request.Dir, Name: p.record.Name, Rules: []string{question.Rule}}
	switch request.Ask(ctx, question) {
	case Once:
		return keeper.AllowOnce
	case ThisSandbox:
	case ThisRepository:
		change.Save = true
	case Never:
		change.Deny = true
	case NoMore:
		return keeper.RefuseAll
	default:
		return keeper.RefuseAsked
	}
	// The answer counts even when the command is just ending, and has its own log
	// entry: it is the human's, and the command may be an agent's.
	if _, err := e.ChangePolicy(apart(context.WithoutCancel(ctx)), change); err != nil {
		if e.Note != nil {
			e.Note("the answer could not be kept: " + err.Error())
		}
		return keeper.RefuseAsked
	}
	return keeper.DecideAnew
}
