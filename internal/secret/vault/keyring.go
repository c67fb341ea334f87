package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/zalando/go-keyring"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// service is the name under which litterbox's entries are found in a keyring.
const service = "litterbox"

// reachable reports whether there is a keyring to ask. Without this check, the
// library would start a message bus of its own.
func reachable(name string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "bus")); err == nil {
			return nil
		}
	}
	return fault.New(fault.Unavailable, "no keyring can be reached: there is no session bus").WithHint("%s", withoutKeyring(name))
}

// withoutKeyring mends a secret of a keyring that cannot be reached.
func withoutKeyring(name string) string {
	return fmt.Sprintf("litterbox secrets set %s --age, and name it with from = \"age:%[1]s\"", name)
}

// patiently asks the keyring for the entry called name. It may ask a human
// and knows no context.
func patiently[T any](ctx context.Context, name string, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := reachable(name); err != nil {
		return none, err
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := ask()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		switch {
		case errors.Is(a.err, keyring.ErrNotFound):
			return none, errNoEntry
		case a.err != nil:
			return none, fault.New(fault.Unavailable, "the keyring does not answer: %v", a.err).WithHint("%s", withoutKeyring(name))
		}
		return a.value, nil
	case <-ctx.Done():
		return none, fault.New(fault.Timeout, "the keyring does not answer; it may be locked")
	}
}

func keyringGet(ctx context.Context, name string) ([]byte, error) {
	text, err := patiently(ctx, name, func() (string, error) { return keyring.Get(service, name) })
	return []byte(text), err
}

func keyringSet(ctx context.Context, name string, value []byte) error {
	text := string(value)
	_, err := patiently(ctx, name, func() (bool, error) { return true, keyring.Set(service, name, text) })
	return err
}

func keyringRemove(ctx context.Context, name string) error {
	_, err := patiently(ctx, name, func() (bool, error) { return true, keyring.Delete(service, name) })
	return err
}
