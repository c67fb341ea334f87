package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/preset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Place names a sandbox: any directory of the repository, and its name.
type Place struct {
	Dir  string
	Name string
}

// ShowRequest asks for a part of a file that is not hidden: from Offset on, or
// with Line greater than 1 from that line.
type ShowRequest struct {
	Place
	Path    string
	Line    int64
	Offset  int64
	Limit   int64 // bytes
	Hidden  bool  // also a hidden file, but nothing in a .git
	Content io.Writer
}

// The guest's words, for frontends that show them.
type (
	// FileView says what was shown of a file.
	FileView = wire.View
	// FileEntry is a file that was listed.
	FileEntry = wire.Entry
	// FileMatch is a line that was found.
	FileMatch = wire.Match
	// FilesFound says how a walk went.
	FilesFound = wire.Found
	// FindRequest says which files a walk is for.
	FindRequest = wire.FindRequest
)

// Show is Read for agents' tools, which see no hidden files (fault.Denied)
// unless they ask for them.
func (e *Engine) Show(ctx context.Context, r ShowRequest) (view FileView, err error) {
	err = e.ask(ctx, r.Place, func(stream wire.Stream) error {
		view, err = wire.ShowFile(ctx, stream, wire.ShowRequest{Path: []byte(r.Path), Line: r.Line, Offset: r.Offset, Limit: r.Limit, Hidden: r.Hidden}, r.Content)
		return err
	})
	return view, err
}

// Find lists the files below a directory that are neither hidden nor ignored.
func (e *Engine) Find(ctx context.Context, place Place, r FindRequest) (entries []FileEntry, found FilesFound, err error) {
	err = e.ask(ctx, place, func(stream wire.Stream) error {
		entries, found, err = wire.FindFiles(ctx, stream, r)
		return err
	})
	return entries, found, err
}

// Search looks for lines in files that are neither hidden nor ignored.
func (e *Engine) Search(ctx context.Context, place Place, r FindRequest) (matches []FileMatch, found FilesFound, err error) {
	err = e.ask(ctx, place, func(stream wire.Stream) error {
		matches, found, err = wire.SearchFiles(ctx, stream, r)
		return err
	})
	return matches, found, err
}

// ask puts one question to the guest, starting the sandbox where it must.
func (e *Engine) ask(ctx context.Context, place Place, question func(wire.Stream) error) error {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return err
	}
	defer e.tell(p)
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return err
	}
	err = question(stream)
	if closeErr := stream.Close(); err == nil && !errors.Is(closeErr, net.ErrClosed) {
		err = closeErr
	}
	if fault.KindOf(err) == fault.Unsupported {
		return keeper.ErrOtherVersion(p.record.Name) // its guest does not know the operation
	}
	return err
}

// Refusal is a destination that a sandbox was kept from.
type Refusal struct {
	Destination string // host:port; the host alone for a look-up of its name
	Path        string // of a request; empty for a connection
	Process     string
	Why         string
	Rule        string // that would allow it; empty when none does
	Preset      string // of the package manager that it belongs to, such as preset:npm; empty when it is none's
}

// looking finds out what the network has refused, beside other work.
type looking struct {
	since time.Time
	done  chan struct{} // nil until it has begun

	refused []Refusal
	err     error
}

func (l *looking) begin(ctx context.Context, e *Engine, p *place) {
	l.done = make(chan struct{})
	own := e.place(p.record, p.repo, p.driver) // connections leave what they found in it
	go func() {
		defer close(l.done)
		l.refused, l.err = e.refusedSince(ctx, own, l.since)
	}()
}

// into waits for what was found, if it has begun. An error is a note: the command
// has run and is committed, and that counts.
func (l *looking) into(result *ExecResult) {
	if l.done == nil {
		return
	}
	<-l.done
	result.Refused = l.refused
	if l.err != nil {
		result.Notes = append(result.Notes, "what the network refused is not known: "+l.err.Error())
	}
}

// Refused lists the destinations that the sandbox was kept from reaching since a
// moment.
func (e *Engine) Refused(ctx context.Context, place Place, since time.Time) ([]Refusal, error) {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return nil, err
	}
	return e.refusedSince(ctx, p, since)
}

func (e *Engine) refusedSince(ctx context.Context, p *place, since time.Time) ([]Refusal, error) {
	if err := p.tellKeeper(ctx, keeper.OpNetwork); err != nil {
		return nil, err
	}
	// Nearly always there are none: then the file is older.
	info, err := os.Stat(p.path(keeper.SeenFile))
	if err != nil || info.ModTime().Before(since) {
		return nil, nil
	}
	seen, err := egress.ReadObservations(p.path(keeper.SeenFile))
	if err != nil {
		return nil, err
	}
	policy, err := e.policy(p)
	if err != nil {
		return nil, err
	}
	var refusals []Refusal
	for _, one := range seen {
		if one.Verdict != egress.Denied || one.Last.Before(since) {
			continue
		}
		refusal := Refusal{Destination: one.Destination(), Path: one.Path, Process: one.Process, Why: one.Why}
		if suggested := egress.Suggest(policy, []egress.Observation{one}, preset.Shared); len(suggested) > 0 {
			refusal.Rule = suggested[0].Rule
			refusal.Preset = preset.For(one.Host, preset.Host(callerOf(ctx)))
		}
		refusals = append(refusals, refusal)
	}
	return refusals, nil
}
