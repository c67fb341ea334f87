package mcp

import (
	"context"
	"io"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxJobs bounds the commands that run at once in one session.
const maxJobs = 8

// progressEvery is how often a client that asked for it hears about a command.
const progressEvery = 2 * time.Second

// job is a command of a session. It outlives the call that started it, not the
// session.
type job struct {
	number  int
	command string
	hold    engine.Hold // the sandbox that it runs in
	begun   time.Time
	stdout  stream
	stderr  stream
	cancel  context.CancelFunc // ends its process group; it is still committed
	warned  bool               // a call has ended early because of a refusal; guarded by the session's turn
	waited  bool               // it was ended because it waited for a terminal; set before done is closed
	done    chan struct{}

	// Set before done is closed.
	result  engine.ExecResult
	written int64 // bytes of output
	err     error
}

func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// start runs a command beside the call. The end of the command closes the call's
// entry in the audit log.
func (c *call) start(ctx context.Context, request engine.ExecRequest) (*job, error) {
	s := c.session
	s.mu.Lock()
	running := 0
	for _, j := range s.jobs {
		if !j.over() {
			running++
		}
	}
	if s.ended || running >= maxJobs {
		s.mu.Unlock()
		return nil, fault.New(fault.Conflict, "cannot run another command: %d run in this session", running).
			WithHint("sandbox-wait for one of them, with stop to end it")
	}
	s.last++
	// The call's values, for the audit log, and the session's end.
	jobCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.ctx, cancel)
	j := &job{number: s.last, command: request.Command, hold: c.hold, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	s.jobs[j.number] = j
	s.mu.Unlock()

	var count counter
	request.Streams = engine.Streams{Stdout: io.MultiWriter(&count, &j.stdout), Stderr: io.MultiWriter(&count, &j.stderr)}
	entry := c.entry
	c.detach = true
	go func() {
		defer stop()
		defer cancel()
		defer close(j.done)
		j.result, j.err = c.Engine.Exec(jobCtx, request)
		j.written = int64(count)
		outcome := engine.Outcome{Err: j.err}
		if j.err == nil {
			outcome.ExitCode = &j.result.Exit.Code
		}
		if j.result.Iteration != nil {
			outcome.Commit = j.result.Iteration.Commit
		}
		if err := entry.End(outcome); err != nil && j.err == nil {
			j.err = err
		}
	}()
	return j, nil
}

// counter counts bytes; the engine writes both streams from one goroutine.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// refused reports whether the network has refused the command something that the
// client does not know yet. An install that is refused its registry may try again
// for a minute, and the model would wait in silence.
func (c *call) refused(ctx context.Context, j *job) bool {
	if j.warned {
		return false
	}
	// An error shows when the command ends.
	refused, err := c.Engine.Refused(ctx, c.place(), j.begun)
	j.warned = err == nil && len(refused) > 0
	return j.warned
}

// await waits for a command as long as the client does, and words the answer.
func (c *call) await(ctx context.Context, j *job, limit int) (execResult, error) {
	c.wait(ctx, j)
	return c.result(context.WithoutCancel(ctx), j, limit)
}

// wait returns when the command is over or the client must have an answer. Calls
// that only read need not wait for that.
func (c *call) wait(ctx context.Context, j *job) {
	defer c.session.turn.lend()()
	answer := time.NewTimer(c.AnswerWithin)
	defer answer.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for reported := int64(-1); ; {
		select {
		case <-j.done:
		case <-answer.C:
		case <-ctx.Done():
			// The client no longer wants it, or is gone.
			j.cancel()
			<-j.done
		case <-tick.C:
			if written := j.stdout.written() + j.stderr.written(); written != reported {
				reported = written
				c.progress(ctx, j)
			} else if j.stdout.wantsTerminal() || j.stderr.wantsTerminal() {
				j.waited = true
				j.cancel()
				<-j.done
				return
			}
			if !c.refused(ctx, j) {
				continue
			}
		}
		return
	}
}

// progress tells a client that asked for it what the command does.
func (c *call) progress(ctx context.Context, j *job) {
	token := c.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	line := j.stdout.lastLine()
	if line == "" {
		line = j.stderr.lastLine()
	}
	// Progress is a courtesy: the loss of a client shows elsewhere.
	_ = c.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
		ProgressToken: token, Progress: time.Since(j.begun).Seconds(), Message: line,
	})
}

// job finds a command of the session.
func (s *session) job(number int) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[number]; j != nil {
		return j, nil
	}
	return nil, fault.New(fault.NotFound, "no command %d is waited for in this session", number).
		WithHint("sandbox-log shows what has been done")
}

// forget drops a command whose result has been given.
func (s *session) forget(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.number)
}
