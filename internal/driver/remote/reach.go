package remote

import (
	"context"
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// Reach runs a program on the host of an address, ssh://[user@]host[:port], and
// returns its standard input and output. The host has no record here; env is
// ssh's.
func Reach(ctx context.Context, address string, env []string, program ...string) (io.ReadWriteCloser, error) {
	m, err := machine.Parse("engine", address, "")
	if err != nil {
		return nil, err
	}
	m.Name = m.Host
	h := &SSH{Machine: m, Env: env}
	var command []string
	for _, word := range program {
		command = append(command, quoted(word))
	}
	script := "command -v " + command[0] + " >/dev/null || { echo " + quoted(wordLacks) + "; exit 0; }; echo " + quoted(wordReady) + "; exec " + strings.Join(command, " ")
	s, word, err := h.start(ctx, script, wordReady, wordLacks)
	if err != nil {
		return nil, err
	}
	if word == wordLacks {
		_ = s.Close() // it has said everything
		return nil, fault.Wrap(fault.Unavailable, driver.ErrUnreachable, "the machine %q has no program %q", m.Name, program[0])
	}
	return s, nil
}
