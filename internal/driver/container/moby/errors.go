package moby

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// sealed turns an error of the client library into one of package driver's, with
// the engine's words and the remedy.
func (s *session) sealed(err error, text string) error {
	title, kind := s.order.Kind.Title(), string(s.order.Kind)
	named := func(sentinel *fault.Error, why string) *fault.Error {
		if sentinel == driver.ErrUnreachable && s.order.Machine.Name == "" { // it is about the engine, and no sandbox
			return fault.Wrap(fault.Unavailable, errors.New(oneLine(why)), "%s", text)
		}
		return fault.Wrap("", driver.Joined(sentinel, errors.New(oneLine(why))), "%s", text)
	}
	said := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	var away *unreached
	switch {
	case errors.As(err, &away): // in its own words, with what to type
		return fault.Wrap("", away.error, "%s", text)
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Canceled, err, "%s", text)
	case errors.Is(err, context.DeadlineExceeded):
		return named(driver.ErrUnreachable, title+" does not answer")
	case errors.Is(err, syscall.EACCES) || errors.Is(err, fs.ErrPermission) || client.IsErrConnectionFailed(err) && strings.Contains(said, "permission denied"):
		e := named(driver.ErrUnreachable, "this user may not use "+s.order.Address)
		if s.order.Kind == container.Podman {
			return e.WithHint("systemctl --user start podman.socket")
		}
		return e.WithHint("sudo usermod --append --groups docker $USER, then log in again; or use rootless Docker or --driver podman")
	case client.IsErrConnectionFailed(err) && !strings.HasPrefix(s.order.Address, "unix://"):
		return named(driver.ErrUnreachable, said).WithHint("docker version")
	case client.IsErrConnectionFailed(err) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT):
		e := named(driver.ErrUnreachable, title+" does not answer at "+s.order.Address)
		if s.order.Kind == container.Podman {
			return e.WithHint("systemctl --user start podman.socket")
		}
		return e.WithHint("sudo systemctl start docker")
	case strings.Contains(said, "minimum supported API version") || strings.Contains(said, "is too old") || strings.Contains(said, "is too new") || strings.Contains(said, "requires API version"):
		return fault.Wrap(fault.Unsupported, driver.Joined(driver.ErrUnsupported, errors.New(oneLine(said))), "%s", text).
			WithHint("install Docker 20.10 or newer, or Podman 4.3 or newer")
	case strings.Contains(said, "no space left on device") || strings.Contains(said, "disk quota exceeded"):
		return named(driver.ErrDiskFull, said).WithHint("%s system df", kind)
	}
	return named(driver.ErrUnreachable, said)
}

// oneLine is an engine's text as one line without anything that a terminal obeys.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}
