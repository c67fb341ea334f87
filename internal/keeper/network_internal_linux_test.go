package keeper

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/metering"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// A narrower policy counts before the sandbox's roots are written: they lie in
// the sandbox, where opening them can be held up.
func TestPolicyIsInForceBeforeTheRootsAreWritten(t *testing.T) {
	dir := t.TempDir()
	put := func(revision int, deny string) {
		t.Helper()
		rule, err := egress.ParseRule(deny)
		if err != nil {
			t.Fatal(err)
		}
		data, err := seal.Encode(&egress.Policy{Revision: revision, Deny: []egress.Rule{rule}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, PolicyFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(1, "one.example.org")
	for _, name := range []string{RootsFile, OwnRootsFile} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	records, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n, err := openNetwork(dir, records, func(*sandbox.Event) error { return nil }, &costs{hook: metering.New(metering.Options{})}, nil, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}

	// The signal that asks for the lease back goes to this thread's process,
	// where the runtime drops it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held, err := os.Open(filepath.Join(dir, RootsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Skipf("no leases on this file system: %v", err)
	}
	put(2, "GET https://two.example.org/secret/")
	done := make(chan error, 1)
	go func() { done <- n.reload() }()
	// The kernel takes a lease away after 45 seconds (lease-break-time).
	for deadline := time.Now().Add(30 * time.Second); n.policy.Load().Revision != 2; time.Sleep(time.Millisecond) {
		select {
		case err := <-done:
			t.Fatalf("the roots could be written though they are held: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the policy waits for whoever holds the roots")
		}
	}
	select {
	case err := <-done:
		t.Errorf("the roots could be written though they are held: %v", err)
	default:
	}
	if err := held.Close(); err != nil { // and with it the lease
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
