package store_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// holderVariable makes the test program the second process of a test: it takes
// the lock below that state directory, says so, and holds it.
const holderVariable = "LITTERBOX_TEST_LOCK_HOLDER"

func TestMain(m *testing.M) {
	if root := os.Getenv(holderVariable); root != "" {
		s, err := store.Open(root)
		if err == nil {
			_, err = s.Lock(context.Background(), os.Args[1], "commit")
		}
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("held\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test goes away
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockOfAKilledProcessIsFree(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	holder := exec.CommandContext(t.Context(), os.Args[0], id)
	holder.Env = append(os.Environ(), holderVariable+"="+s.Root)
	holder.Stderr = os.Stderr
	if _, err := holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	// The first attempt comes before the look at the context, so an ended context
	// still allows exactly one.
	once, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Lock(once, id, "commit"); fault.KindOf(err) != fault.Canceled {
		t.Errorf("while it is held: %v", err)
	}
	unlock, err := s.Lock(once, id, "other")
	if err != nil {
		t.Fatalf("another lock of the same sandbox: %v", err)
	}
	unlock()

	waiting := make(chan error, 1)
	go func() {
		unlock, err := s.Lock(t.Context(), id, "commit")
		if err == nil {
			unlock()
		}
		waiting <- err
	}()
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("after kill -9: %v", err)
	}
	if err := holder.Wait(); err == nil {
		t.Error("the other process ended by itself: the test showed nothing")
	}
}

func TestLockExcludes(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := claim(t, s, "fix")
	var inside, entered atomic.Int32
	done := make(chan struct{})
	const racers, each = 8, 10
	for range racers {
		go func() {
			defer func() { done <- struct{}{} }()
			for range each {
				unlock, err := s.Lock(t.Context(), id, "commit")
				if err != nil {
					t.Error(err)
					return
				}
				if others := inside.Add(1) - 1; others != 0 {
					t.Errorf("%d others are inside", others)
				}
				entered.Add(1)
				runtime.Gosched() // give others a chance to come in
				inside.Add(-1)
				unlock()
			}
		}()
	}
	for range racers {
		<-done
	}
	if entered.Load() != racers*each {
		t.Errorf("%d of %d times inside", entered.Load(), racers*each)
	}
}
