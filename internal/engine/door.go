package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// HostDomain ends the names under which OpenSSH clients know sandboxes.
const HostDomain = ".litterbox"

// DoorHost is a sandbox as a host of OpenSSH clients.
type DoorHost struct {
	Host    string `json:"host"` // the shortest name that means this sandbox alone
	Name    string `json:"name"`
	Project string `json:"repository"` // top of the checkout, which is its path inside too
}

// DoorHosts lists all sandboxes of this user as hosts: NAME.litterbox, with the
// project where several repositories have a sandbox of that name, and the id of
// the sandbox where that does not suffice either.
func (e *Engine) DoorHosts(ctx context.Context) ([]DoorHost, error) {
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *sandbox.Sandbox) bool {
		return r.State == sandbox.Creating || r.State == sandbox.Deleting
	})
	hosts := make([]DoorHost, 0, len(records))
	for _, record := range records {
		host := record.ID
		for _, shorter := range []string{record.Name, record.Name + "." + projectOf(record)} {
			if len(meantBy(records, shorter)) == 1 {
				host = shorter
				break
			}
		}
		hosts = append(hosts, DoorHost{Host: host + HostDomain, Name: record.Name, Project: record.Repository})
	}
	return hosts, nil
}

// FindHost is the sandbox that a host's name means: the name of a sandbox, with
// its project behind a dot, or its id, with or without the domain. A name that
// means several is fault.Invalid, and the hint names them apart.
func (e *Engine) FindHost(ctx context.Context, host string) (DoorHost, error) {
	wanted := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(host, "."), HostDomain))
	hosts, err := e.DoorHosts(ctx)
	if err != nil {
		return DoorHost{}, err
	}
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return DoorHost{}, err
	}
	found := meantBy(records, wanted)
	switch len(found) {
	case 0:
		var names []string
		for _, one := range hosts {
			names = append(names, one.Host)
		}
		return DoorHost{}, fault.New(fault.NotFound, "no sandbox has the host name %q%s", host, didYouMean(wanted+HostDomain, names)).
			WithHint("litterbox list --all")
	case 1:
		return DoorHost{Host: host, Name: found[0].Name, Project: found[0].Repository}, nil
	}
	var apart []string
	for _, candidate := range hosts {
		if candidate.Name == found[0].Name {
			apart = append(apart, candidate.Host)
		}
	}
	return DoorHost{}, fault.New(fault.Invalid, "cannot choose among %d sandboxes that %q may mean", len(found), host).
		WithHint("ssh %s", strings.Join(apart, ", or ssh "))
}

// meantBy are the sandboxes that a name without the domain may mean. An id is
// exact, so it never means another sandbox that is named like it.
func meantBy(records []*sandbox.Sandbox, wanted string) []*sandbox.Sandbox {
	var found []*sandbox.Sandbox
	name, project, qualified := strings.Cut(wanted, ".")
	for _, record := range records {
		switch {
		case record.ID == wanted:
			return []*sandbox.Sandbox{record}
		case record.Name == name && (!qualified || projectOf(record) == project):
			found = append(found, record)
		}
	}
	return found
}

// projectOf is the name of a repository's directory, as a label of a host's name.
func projectOf(record *sandbox.Sandbox) string {
	label, err := sandbox.Slug(filepath.Base(record.Repository))
	if err != nil {
		return "project"
	}
	return label
}

// FilesRequest asks for a session of SFTP.
type FilesRequest struct {
	Place
	Client io.ReadWriter // speaks SFTP; its end is the session's
}

// ServeFiles serves a session of SFTP from inside the sandbox: paths are the
// sandbox's own, and the host opens none of them. Written files are committed
// when the session ends, and while it lasts whenever the files have been quiet
// for a while, as with a command.
func (e *Engine) ServeFiles(ctx context.Context, request FilesRequest) (made *sandbox.Iteration, notes []string, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return nil, nil, err
	}
	ctx, call, err := e.recordIn(ctx, p, "sftp", nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = call.end(commitOf(made), nil, err) }()
	if err := e.recover(ctx, p); err != nil {
		return nil, nil, err
	}
	const kind = "sftp"
	cycle, stream, err := e.beginCycle(ctx, p, kind, "sftp session", "sftp session", false)
	if cycle == nil {
		return nil, nil, err
	}
	if err != nil {
		return nil, p.notes, errors.Join(err, e.endCycle(ctx, p, cycle, wire.Exit{}, err))
	}
	iteration := &sandbox.Iteration{Cycle: cycle.ID, Kind: kind, Message: "sftp session", StartedAt: time.Now()}
	err = e.carryFiles(ctx, p, cycle, stream, request.Client)
	// Files written before the end are committed, whatever ended it.
	ctx = context.WithoutCancel(ctx)
	advanced := e.advance(ctx, p, cycle, sandbox.PostProcessing)
	iteration.Duration = time.Since(iteration.StartedAt)
	committed, more, commitErr := e.commit(ctx, p, iteration, commitOptions{onlyIfChanged: true})
	p.note(more...)
	if err = errors.Join(err, advanced, commitErr); err != nil {
		err = e.cutOff(p, cycle, nil, err)
	}
	if committed {
		made = iteration
	}
	return made, p.notes, errors.Join(err, e.endCycle(ctx, p, cycle, wire.Exit{}, err))
}

// carryFiles moves the bytes of a session of SFTP until the guest has answered
// the last request.
func (e *Engine) carryFiles(ctx context.Context, p *place, cycle *sandbox.Cycle, stream wire.Stream, client io.ReadWriter) error {
	defer stream.Close()
	if err := wire.Files(ctx, stream); err != nil {
		if fault.KindOf(err) == fault.Unsupported {
			return fault.Wrap(fault.Unsupported, err, "sandbox %q was started by an older litterbox, which serves no files over ssh", p.record.Name).
				WithHint("litterbox stop %s, then litterbox start %s", p.record.Name, p.record.Name)
		}
		return err
	}
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	defer e.checkpoints(ctx, p, cycle, ExecRequest{})()
	go func() {
		_, _ = io.Copy(stream, client) // either end is normal
		_ = stream.CloseWrite()
	}()
	_, err := io.Copy(struct{ io.Writer }{client}, stream)
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		return fault.Wrap(fault.Unavailable, err, "cannot go on with the files of sandbox %q", p.record.Name)
	}
	return nil
}

// Inside is a connection to a server of a sandbox.
type Inside interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// DialInside connects to a port of the sandbox's loopback, and to nothing else.
// A sandbox that is stopped is started.
func (e *Engine) DialInside(ctx context.Context, place Place, port uint16) (Inside, error) {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return nil, err
	}
	defer e.tell(p)
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return nil, err
	}
	if err := wire.Forward(ctx, stream, port); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return stream, nil
}
