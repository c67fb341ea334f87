package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// isolation: what earns the word "full", as far as that can be checked without
// knowing the driver. The attacks (test/attack) go further.
func isolation() []Check {
	return []Check{
		{
			Name:   "isolates fully",
			Why:    "a sandbox whose isolation is called full holds no file, process or privilege of the host",
			Needs:  driver.Capabilities.Full,
			Run:    isolatesFully,
			Absent: saysWhatItLacks,
		},
		{
			Name: "lets nothing out",
			Why:  "without a keeper that decides, not even a server on the host's loopback can be reached",
			Run:  letsNothingOut,
		},
	}
}

func isolatesFully(ctx context.Context, env *Env) error {
	secret := filepath.Join(env.Dir, "secret.txt")
	if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
		return err
	}
	own := fmt.Sprintf("/proc/%d/cmdline", os.Getpid())
	mine, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	return with(ctx, env, "full", func(p *place) error {
		if content, err := p.read(ctx, secret); err == nil {
			return wrong("a file of the host can be read inside: %q", content)
		}
		if theirs, err := p.read(ctx, own); err == nil && theirs == string(mine) {
			return wrong("a process of the host can be seen inside: %q", theirs)
		}
		status, err := p.prints(ctx, "cat", "/proc/self/status")
		if err != nil {
			return err
		}
		for _, want := range []string{"CapEff:\\s+0+", "NoNewPrivs:\\s+1", "Seccomp:\\s+2"} {
			if !regexp.MustCompile("(?m)^" + want + "$").MatchString(status) {
				return wrong("a command inside has other privileges than %q:\n%s", want, status)
			}
		}
		return nil
	})
}

// saysWhatItLacks holds a driver of the degraded tier to its word, and to being
// used only where that is accepted.
func saysWhatItLacks(ctx context.Context, env *Env) error {
	p, err := plan(env, env.Driver(), "lacks")
	if err != nil {
		return err
	}
	for _, tier := range p.driver.Capabilities().Isolation {
		if tier.Isolation != sandbox.IsolationFull && len(tier.Lacks) == 0 {
			return wrong("the tier %q does not say what it lacks", tier.Isolation)
		}
	}
	p.spec.Degraded = false
	lease, err := p.driver.Acquire(ctx, p.spec)
	if err == nil {
		return errors.Join(wrong("a place with less isolation is made unasked"), p.driver.Destroy(ctx, lease, true))
	}
	return refused("full isolation", err)
}

func letsNothingOut(ctx context.Context, env *Env) error {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer listener.Close()
	return with(ctx, env, "out", func(p *place) error {
		// Whether it fails or leads to the guest is the driver's to choose.
		tried, err := p.run(ctx, connecting(listener.Addr().String(), "", "nc -w 5 %s </dev/null")...)
		if err == nil && tried.exit.Code == notFound {
			err = wrong("there is nothing inside that could try: %s", tried.stderr)
		}
		if err != nil {
			return err
		}
		raw, err := listener.SyscallConn()
		if err != nil {
			return err
		}
		// A connection would be in the queue by now, and the descriptor does not
		// block.
		reached := -1
		err = raw.Control(func(fd uintptr) { reached, _, _ = syscall.Accept(int(fd)) })
		if err != nil || reached < 0 {
			return err
		}
		return errors.Join(wrong("a server on the host was reached from inside"), syscall.Close(reached))
	})
}
