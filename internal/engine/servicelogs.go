package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// LogLine is one line that a service printed, or its supervisor. Its text is
// the agent's: clean it before a terminal shows it.
type LogLine = wire.LogLine

// LogRequest asks for what services have printed. Without a service it means
// all of them.
type LogRequest struct {
	Dir     string // any directory of the repository
	Name    string // of the sandbox
	Service string
	From    int64     // offset to go on from, of one service; below 0: by Tail and Since
	Tail    int       // last lines of each service; below 0: all that are kept
	Since   time.Time // not older than this
	Limit   int       // lines of one page, of one service; 0: no limit
}

// LogPage is a part of a log. Next is the From of the following part.
type LogPage struct {
	Lines []LogLine `json:"lines"`
	Next  int64     `json:"next"` // of one service
	More  bool      `json:"more"` // there is more already
}

// ServiceLogs reads the output of services, by time. It also works while the
// sandbox is stopped.
func (e *Engine) ServiceLogs(ctx context.Context, request LogRequest) (LogPage, error) {
	e, p, names, err := e.loggedServices(ctx, request)
	if err != nil {
		return LogPage{}, err
	}
	return e.serviceLogs(ctx, p, names, request)
}

func (e *Engine) serviceLogs(ctx context.Context, p *place, names []string, request LogRequest) (page LogPage, err error) {
	page.Lines = []LogLine{}
	state, _ := e.state(ctx, p.record)
	for _, name := range names {
		query := wire.LogQuery{Service: name, From: request.From, Tail: request.Tail, Since: request.Since, Limit: request.Limit}
		take := func(line LogLine) error { page.Lines = append(page.Lines, line); return nil }
		var end wire.LogEnd
		if state == sandbox.Running {
			end, err = e.askLog(ctx, p, query, take)
		} else {
			end, err = e.storedLog(ctx, p, query, take)
		}
		if err != nil {
			return LogPage{}, err
		}
		page.Next, page.More = end.Next, page.More || end.More
	}
	if len(names) > 1 {
		slices.SortStableFunc(page.Lines, func(a, b LogLine) int { return a.Time.Compare(b.Time) })
		page.Next = 0
	}
	return page, nil
}

// FollowServiceLogs hands lines to report as they come, until ctx ends or the
// sandbox stops. An error of report ends it.
func (e *Engine) FollowServiceLogs(ctx context.Context, request LogRequest, report func(LogLine) error) error {
	e, p, names, err := e.loggedServices(ctx, request)
	if err != nil {
		return err
	}
	if state, _ := e.state(ctx, p.record); state != sandbox.Running {
		return fault.New(fault.Conflict, "cannot follow the services of sandbox %q: it is stopped", p.record.Name).
			WithHint("litterbox start %s", p.record.Name)
	}
	stream, err := e.running(ctx, p, false) // attaches when its keeper has died
	if err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	var one sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			query := wire.LogQuery{Service: name, From: request.From, Tail: request.Tail, Since: request.Since, Follow: true}
			return e.followLog(groupCtx, p, query, func(line LogLine) error {
				one.Lock()
				defer one.Unlock()
				return report(line)
			})
		})
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // the follower has seen enough
}

// followLog follows one service until ctx ends, report fails or the sandbox stops.
// When its keeper has died it goes on where it was, as soon as another command has
// started a new one: watching is no reason to start anything.
func (e *Engine) followLog(ctx context.Context, p *place, query wire.LogQuery, report func(LogLine) error) error {
	const pause = 200 * time.Millisecond
	var unreported error
	for {
		stream, err := p.dial(ctx)
		if err == nil {
			_, err = wire.Logs(ctx, stream, query, func(line LogLine) error {
				query.From = line.Next
				unreported = report(line)
				return unreported
			})
			stream.Close()
		}
		if err == nil || ctx.Err() != nil || unreported != nil {
			return errors.Join(unreported, ctx.Err())
		}
		if state, _ := e.state(ctx, p.record); state != sandbox.Running {
			return nil
		}
		switch fault.KindOf(err) {
		case fault.NotFound, fault.Invalid, fault.Unsupported:
			return err // said by the guest: it would say so again
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// loggedServices finds the services whose logs are meant.
func (e *Engine) loggedServices(ctx context.Context, request LogRequest) (*Engine, *place, []string, error) {
	e, p, err := e.findAny(ctx, request.Dir, request.Name)
	if err != nil {
		return e, nil, nil, err
	}
	var record service.Record
	if _, err := e.side(p, store.ServicesFile, &record); err != nil {
		return e, nil, nil, err
	}
	names, err := service.Order(record.Services)
	if err != nil {
		return e, nil, nil, err
	}
	if request.Service != "" {
		if !slices.Contains(names, request.Service) {
			return e, nil, nil, noService(p.record.Name, request.Service, names)
		}
		names = []string{request.Service}
	}
	return e, p, names, nil
}

// askLog reads a journal through the guest, which also knows about its changes.
func (e *Engine) askLog(ctx context.Context, p *place, query wire.LogQuery, report func(LogLine) error) (wire.LogEnd, error) {
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return wire.LogEnd{}, err
	}
	defer stream.Close()
	return wire.Logs(ctx, stream, query, report)
}

// storedLog reads a journal of a sandbox that does not run. The sandbox controls
// those files: nothing outside its home is opened.
func (e *Engine) storedLog(ctx context.Context, p *place, query wire.LogQuery, report func(LogLine) error) (wire.LogEnd, error) {
	var end wire.LogEnd
	root, err := e.workspace(p).Home(ctx, journal.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return end, nil // it never ran
	}
	if err != nil {
		return end, fault.Wrap(fault.Unavailable, err, "cannot read the log of service %q", query.Service).
			WithHint("litterbox start %s", p.record.Name)
	}
	defer root.Close()
	from := query.From
	if from < 0 {
		if from, err = journal.Find(root, query.Service, query.Tail, query.Since); err != nil {
			return end, fault.Wrap(fault.Unavailable, err, "cannot read the log of service %q", query.Service)
		}
	}
	count := 0
	end.Next, err = journal.Scan(root, query.Service, from, func(line journal.Line) bool {
		if end.More = query.Limit > 0 && count == query.Limit; end.More {
			return false
		}
		count++
		from = line.Next
		return report(LogLine{Service: query.Service, Time: line.Time, Own: line.Own, Text: line.Text, Next: line.Next}) == nil
	})
	if end.More {
		end.Next = from
	}
	if err != nil {
		err = fault.Wrap(fault.Unavailable, err, "cannot read the log of service %q", query.Service)
	}
	return end, err
}
