package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// holder makes the test program the second process of a test: it takes a lock
// and holds it until its input ends.
const holder = "LITTERBOX_TEST_HELD_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(holder); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if at, problem := strconv.ParseInt(os.Args[1], 10, 64); err == nil && problem == nil {
			err = lock.Byte(context.Background(), file, "x", at)
		} else if err == nil {
			err = lock.File(context.Background(), file)
		}
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A wait ends with its context and says which process holds the lock; a mere
// attempt does not look, and a lock on another byte is free.
func TestWaitEndsAndNamesTheHolder(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int64{"file": -1, "byte": 4711} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lock")
			take := func(ctx context.Context, file *os.File) error {
				if at < 0 {
					return lock.File(ctx, file)
				}
				return lock.Byte(ctx, file, "record", at)
			}
			argument := "whole"
			if at >= 0 {
				argument = strconv.FormatInt(at, 10)
			}
			child := exec.CommandContext(t.Context(), os.Args[0], argument, "password")
			child.Env = append(os.Environ(), holder+"="+path)
			end, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := child.StdoutPipe()
			if err == nil {
				err = child.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if said, err := bufio.NewReader(out).ReadString('\n'); said != "<nil>\n" {
				t.Fatalf("the other process says %q, %v", said, err)
			}
			file, err := os.OpenFile(path, os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			err = take(ctx, file)
			want := fmt.Sprintf("process %d (%s %s) holds it", child.Process.Pid, filepath.Base(os.Args[0]), argument)
			if fault.KindOf(err) != fault.Canceled || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "password") {
				t.Errorf("got %v, want %q", err, want)
			}
			if err := take(ctx, file); fault.KindOf(err) != fault.Canceled || strings.Contains(err.Error(), "process") {
				t.Errorf("a mere attempt: %v", err)
			}
			if at >= 0 {
				if err := lock.Byte(ctx, file, "other", at+1); err != nil {
					t.Errorf("another byte: %v", err)
				}
			}
			waiting := make(chan error, 1)
			go func() { waiting <- take(t.Context(), file) }()
			if err := end.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-waiting; err != nil {
				t.Errorf("after the other process has ended: %v", err)
			}
			if err := child.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
