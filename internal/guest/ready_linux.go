package guest

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// probe checks whether one run of a service is ready.
type probe struct {
	g     *guest
	ready service.Ready
	since time.Time // when its process was about to start, as files have it
	env   []string
}

// wait checks until the answer is yes, for at most timeout.
func (p probe) wait(ctx context.Context, timeout time.Duration) bool {
	const (
		firstPause = 10 * time.Millisecond
		maxPause   = 250 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for pause := firstPause; ; pause = min(pause*2, maxPause) {
		if p.look(ctx) {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

func (p probe) look(ctx context.Context) bool {
	switch {
	case p.ready.File != "":
		path, err := p.g.path([]byte(p.ready.File))
		if err != nil {
			return false
		}
		// A file of the previous run means nothing.
		info, err := os.Stat(path)
		return err == nil && !info.ModTime().Before(p.since)
	case len(p.ready.Command) > 0:
		return p.ask(ctx)
	}
	port := p.ready.Port
	if p.ready.Named != "" {
		port, _ = strconv.Atoi(lookEnv(p.g.services.environment(), service.PortVariable(p.ready.Named)))
	}
	if port <= 0 || port > 65535 {
		return false
	}
	conn, err := dialInside(ctx, uint16(port))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// ask runs the command that knows.
func (p probe) ask(ctx context.Context) bool {
	const patience = 10 * time.Second
	request := &wire.Exec{Env: p.env}
	for _, arg := range p.ready.Command {
		request.Argv = append(request.Argv, []byte(arg))
	}
	c, err := p.g.prepare(request)
	if err != nil {
		return false
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	c.files = []uintptr{null.Fd(), null.Fd(), null.Fd()}
	child, err := p.g.launch(c)
	if err != nil {
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-child.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.g.children.signal(child, unix.SIGKILL)
	<-child.done
	return child.status.ExitStatus() == 0
}

// dialInside connects to a server in the sandbox, which may listen on one
// family only ("localhost" is the second for some).
func dialInside(ctx context.Context, port uint16) (*net.TCPConn, error) {
	var dialer net.Dialer
	var problems []error
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		problems = append(problems, err)
	}
	return nil, errors.Join(problems...)
}

// coarseNow is now as the kernel stamps files with it: a little behind the
// true time (clock_getres(2), CLOCK_REALTIME_COARSE).
func coarseNow() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now().Add(-time.Second)
	}
	return time.Unix(now.Unix())
}
