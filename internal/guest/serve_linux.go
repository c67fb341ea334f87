package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// exchange is one request with its two directions.
type exchange struct {
	stream  wire.Stream
	in      *wire.Reader // what follows the request
	out     *wire.Writer
	request wire.Request
}

// handle answers one stream: a request, and everything that belongs to it.
func (g *guest) handle(stream wire.Stream) {
	<-g.prepared
	g.rest.Begin()
	defer g.rest.End()
	x := &exchange{stream: stream, in: wire.NewReader(stream), out: wire.NewWriter(stream)}
	defer func() {
		// A defect in one operation must not end everything inside.
		if p := recover(); p != nil {
			_ = wire.Fail(x.out, fault.New(fault.Internal, "cannot serve the request: %v\n%s", p, debug.Stack()))
		}
	}()
	result, err := g.answer(x)
	if err != nil {
		_ = wire.Fail(x.out, err)
		return
	}
	if _, ok := result.(announcing); ok {
		g.announce(x.stream)
		return
	}
	if err := wire.WriteJSON(x.out, wire.KindResult, result); err != nil {
		_ = wire.Fail(x.out, err)
	}
	switch result := result.(type) {
	case *connection:
		result.carry(x.stream)
	case *fileServer:
		result.serve(x.stream)
	default:
		if x.request.Op == wire.OpShutdown {
			g.end()
		}
	}
}

// gone is closed when the client has nothing more to say or has died.
func (x *exchange) gone() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, _, err := x.in.Next(); err != nil {
				return
			}
		}
	}()
	return gone
}

// answer carries out one operation.
//
// To add one: 1. its Op, fields and result in wire/protocol.go, 2. its
// client's side in wire/call.go, 3. a case here, 4. a test beside it.
func (g *guest) answer(x *exchange) (any, error) {
	kind, payload, err := x.in.Next()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read the request")
	}
	if kind != wire.KindRequest {
		return nil, fault.New(fault.Invalid, "cannot serve a stream that begins with %q", string(rune(kind)))
	}
	if err := json.Unmarshal(payload, &x.request); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read the request")
	}
	if x.request.Version != wire.Version {
		return nil, fault.New(fault.Unavailable, "cannot serve a request of version %d: the guest speaks version %d",
			x.request.Version, wire.Version).WithHint("stop the sandbox and start it again")
	}
	switch x.request.Op {
	case wire.OpHello:
		return wire.Hello{Version: wire.Version, PID: os.Getpid(), Started: g.started}, nil
	case wire.OpExec:
		return g.exec(x)
	case wire.OpRead:
		return g.read(x)
	case wire.OpAppend:
		return g.append(x)
	case wire.OpWrite:
		return g.write(x)
	case wire.OpPack:
		return g.pack(x)
	case wire.OpUnpack:
		return g.unpack(x)
	case wire.OpRemove:
		return g.remove(x.request.Paths)
	case wire.OpFollow:
		return g.follow(x)
	case wire.OpProcesses:
		return g.processes()
	case wire.OpHead:
		return g.head()
	case wire.OpExport:
		return g.export(x)
	case wire.OpModule:
		return g.module(x)
	case wire.OpTake:
		return g.exportFrom(x, x.request.Path)
	case wire.OpConfigure:
		return g.services.configure(x.request.Configure)
	case wire.OpService:
		return g.services.order(x.request.Service, x.gone())
	case wire.OpWatch:
		return g.services.watchAll(x)
	case wire.OpLogs:
		return g.logs(x)
	case wire.OpForward:
		return g.connect(x)
	case wire.OpFiles:
		return &fileServer{g}, nil
	case wire.OpNetwork:
		if g.egress == nil {
			return nil, fault.New(fault.Unsupported, "cannot carry connections: the sandbox has no network")
		}
		return announcing{}, nil
	case wire.OpSSHAgent:
		return g.sshAgent(x)
	case wire.OpKill:
		return g.kill(x.request.Limit)
	case wire.OpBuffers:
		return g.buffers()
	case wire.OpView:
		return g.view(x)
	case wire.OpPut:
		return g.put(x)
	case wire.OpFind:
		return g.find(x)
	case wire.OpSearch:
		return g.search(x)
	case wire.OpQuiesce:
		return g.quiesce(x.request.Grace)
	case wire.OpShutdown:
		return g.shutdown(x.request.Grace)
	}
	return nil, fault.New(fault.Unsupported, "cannot serve the operation %q", x.request.Op)
}

// shutdown ends every other process. New commands may still start until the
// guest is gone; KILL takes those too.
func (g *guest) shutdown(grace time.Duration) (wire.Empty, error) {
	return wire.Empty{}, g.endAll(grace, func() {})
}

// path makes a requested path absolute.
func (g *guest) path(requested []byte) (string, error) {
	if len(requested) == 0 {
		return "", fault.New(fault.Invalid, "cannot use an empty path")
	}
	if bytes.IndexByte(requested, 0) >= 0 {
		return "", fault.New(fault.Invalid, "cannot use a path with a NUL byte") // cleaning could remove it
	}
	path := string(requested)
	switch home, below := strings.CutPrefix(path, "~"); {
	case below && (home == "" || home[0] == '/'):
		// As a shell reads it; a file of that name is ./~.
		path = g.Home + home
	case !filepath.IsAbs(path):
		path = filepath.Join(g.Workspace, path)
	}
	return g.here(filepath.Clean(path)), nil
}

// here translates a path that keepers know to the one in a place without mounts.
func (g *guest) here(path string) string {
	if g.Shared == nil {
		return path
	}
	for _, moved := range g.Shared.Moved {
		if rest, ok := strings.CutPrefix(path, moved.From); ok && (rest == "" || rest[0] == '/') {
			return moved.To + rest
		}
	}
	return path
}

// wrap describes a failed system call on a path, with a kind for user mistakes.
// It drops the path in err, because the sentence has it.
func wrap(err error, format string, args ...any) error {
	var inPath *fs.PathError
	var inLink *os.LinkError
	cause := err
	switch {
	case errors.As(err, &inPath):
		cause = inPath.Err
	case errors.As(err, &inLink):
		cause = inLink.Err
	}
	kind := fault.KindOf(cause)
	switch {
	case errors.Is(cause, fs.ErrNotExist):
		kind = fault.NotFound
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, unix.EROFS):
		kind = fault.Denied
	case errors.Is(cause, fs.ErrExist):
		kind = fault.AlreadyExists
	case errors.Is(cause, unix.ENOSPC), errors.Is(cause, unix.EDQUOT), errors.Is(cause, unix.EAGAIN), errors.Is(cause, unix.ENOMEM):
		kind = fault.Unavailable
	case errors.Is(cause, unix.ENOTDIR), errors.Is(cause, unix.EISDIR), errors.Is(cause, unix.ELOOP),
		errors.Is(cause, unix.ENAMETOOLONG), errors.Is(cause, unix.EINVAL), errors.Is(cause, unix.ENXIO):
		kind = fault.Invalid
	}
	wrapped := fault.Wrap(kind, cause, format, args...)
	if errors.Is(cause, unix.EROFS) {
		return wrapped.WithHint("write below the project, in HOME or in /tmp: the rest is read-only inside")
	}
	return wrapped
}
