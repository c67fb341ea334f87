package fake

import (
	"encoding/json"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// handle answers one stream, as package guest does for a real place.
func (p *place) handle(stream wire.Stream) {
	in, out := wire.NewReader(stream), wire.NewWriter(stream)
	kind, payload, err := in.Next()
	if err != nil || kind != wire.KindRequest {
		return
	}
	var request wire.Request
	if err := json.Unmarshal(payload, &request); err != nil {
		return
	}
	if answer := p.driver.options.Guest; answer != nil && answer(request, stream) {
		return
	}
	p.waitWhilePaused()
	if request.Op == wire.OpNetwork && !p.driver.options.Minimal {
		p.net.serve(stream)
		return
	}
	result, err := p.answer(request, in, out)
	p.waitWhilePaused()
	if !p.running() {
		return // killed in the middle: there is no one to answer
	}
	if err != nil {
		_ = wire.Fail(out, err) // the client may be gone
		return
	}
	_ = wire.WriteJSON(out, wire.KindResult, result)
	if request.Op == wire.OpShutdown {
		stream.Close()
		p.end()
	}
}

func (p *place) answer(request wire.Request, in *wire.Reader, out *wire.Writer) (any, error) {
	switch request.Op {
	case wire.OpHello:
		hello := wire.Hello{Version: wire.Version, PID: 1, Started: p.started}
		if p.driver.has(GreetsWithAnotherVersion) {
			hello.Version++
		}
		return hello, nil
	case wire.OpExec:
		return p.exec(request.Exec, in, out)
	case wire.OpRead:
		content, err := p.readFile(p.absolute(request.Path))
		if err == nil {
			err = out.Frame(wire.KindStdout, content)
		}
		return wire.FileInfo{Path: request.Path, Size: int64(len(content)), Mode: 0o644}, err
	case wire.OpWrite:
		content, err := io.ReadAll(&input{in: in})
		if err == nil {
			err = p.writeFile(p.absolute(request.Path), content)
		}
		return wire.FileInfo{Path: request.Path, Size: int64(len(content)), Mode: 0o644}, err
	case wire.OpProcesses:
		return wire.ProcessList{}, nil
	case wire.OpHead:
		return wire.Head{}, nil
	case wire.OpFollow:
		return p.follow(in)
	case wire.OpConfigure:
		return p.services.configure(request.Configure)
	case wire.OpService:
		return p.services.order(request.Service)
	case wire.OpWatch:
		return p.services.watched(in, out)
	case wire.OpLogs:
		return p.services.logs(request.Logs, out)
	case wire.OpShutdown:
		return wire.Empty{}, nil
	}
	return nil, fault.New(fault.Unsupported, "the fake guest does not serve %q", request.Op)
}

// input turns input frames into a reader; a stream that ends before its end
// frame is an error.
type input struct {
	in   *wire.Reader
	rest []byte
	over bool
}

func (i *input) Read(buf []byte) (int, error) {
	for len(i.rest) == 0 {
		if i.over {
			return 0, io.EOF
		}
		kind, payload, err := i.in.Next()
		switch {
		case err != nil:
			return 0, io.ErrUnexpectedEOF
		case kind == wire.KindStdinEnd:
			i.over = true
		case kind == wire.KindSignal:
			return 0, io.ErrUnexpectedEOF // every built-in command dies from it
		case kind == wire.KindStdin:
			i.rest = payload
		}
	}
	n := copy(buf, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}
