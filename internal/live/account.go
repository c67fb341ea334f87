package live

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// accountComment begins the comment of every account that litterbox made. No
// other is changed or removed.
const accountComment = "litterbox environment"

// Accounts makes and removes the user accounts of root's environments. The zero
// value uses the machine's own.
type Accounts struct {
	// Lookup finds an account; nil means user.Lookup.
	Lookup func(name string) (*user.User, error)
	// Run runs a program that changes accounts; nil runs it on this machine.
	Run func(ctx context.Context, program string, args ...string) ([]byte, error)
}

func (a Accounts) lookup(name string) (*user.User, error) {
	if a.Lookup != nil {
		return a.Lookup(name)
	}
	return user.Lookup(name)
}

func (a Accounts) run(ctx context.Context, program string, args ...string) error {
	run := a.Run
	if run == nil {
		run = runProgram
	}
	out, err := run(ctx, program, args...)
	if err != nil && len(out) > 0 {
		return fault.Wrap(fault.Unavailable, err, "%s: %s", program, strings.TrimSpace(string(out)))
	}
	return err
}

func runProgram(ctx context.Context, program string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		path = "/usr/sbin/" + program // which is not in every PATH of root
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	return cmd.CombinedOutput()
}

// Make makes sure that the account name has the id that processes of the
// environment run as outside it. It has no login. Another account of that name
// stays and is an error.
func (a Accounts) Make(ctx context.Context, name string, uid int) error {
	found, err := a.ours(name)
	if err != nil {
		return err
	}
	if found != nil && found.Uid == strconv.Itoa(uid) {
		return nil
	}
	if found != nil { // of an environment that was not deleted properly
		if err := a.Remove(ctx, name); err != nil {
			return err
		}
	}
	return a.run(ctx, "useradd", "--system", "--no-log-init", "--no-create-home", "--no-user-group", "--gid", strconv.Itoa(nogroup),
		"--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", "--uid", strconv.Itoa(uid), "--comment", accountComment, name)
}

// nogroup is the group for accounts without one, nogroup or nobody.
const nogroup = 65534

// Remove removes an account that litterbox made; without one it does nothing.
func (a Accounts) Remove(ctx context.Context, name string) error {
	found, err := a.ours(name)
	if err != nil || found == nil {
		return nil //nolint:nilerr // it is another's
	}
	return a.run(ctx, "userdel", name)
}

// ours gives litterbox's account of that name; nil when there is none.
func (a Accounts) ours(name string) (*user.User, error) {
	found, err := a.lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot look for the user account %s", name)
	}
	if found.Name != accountComment {
		return nil, fault.New(fault.AlreadyExists, "cannot make the user account %s: another has that name", name)
	}
	return found, nil
}
