package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// The time between two looks at memory; and how many times longer than a look
// at the disk the rest after it is, so that looking costs two percent at most.
const (
	memoryRest = 200 * time.Millisecond
	diskRest   = 5 * time.Second
	diskShare  = 50
)

// ioPatience is how long a process that the tests have left behind may hold
// their output: as long as go test itself allows.
const ioPatience = time.Minute

// run runs a test binary within the bounds and returns its exit code.
func run(report string, argv []string) int {
	t := taken{Package: packageHere()}
	dir, err := os.MkdirTemp("", "lt")
	if err == nil {
		err = os.Chmod(dir, os.ModeSticky|0o777) // as /tmp: a test may be several users
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bounds:", err)
		return 1
	}
	begun := time.Now()
	var printed atomic.Int64
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stdin, cmd.WaitDelay = os.Stdin, ioPatience
	cmd.Stdout, cmd.Stderr = counted{os.Stdout, &printed}, counted{os.Stderr, &printed}
	ends(cmd)
	// The child ends with the thread that started it.
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "bounds:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for one := range signals {
			_ = cmd.Process.Signal(one) // it may have ended
		}
	}()
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		watch(&t, cmd.Process.Pid, dir, &printed, stop)
	}()
	err = cmd.Wait()
	close(stop)
	<-watched
	t.Seconds = time.Since(begun).Seconds()
	t.finish(dir, printed.Load())
	if note := t.note(report); note != nil {
		err = errors.Join(err, note)
	}
	return t.code(err)
}

// watch looks at the package until stop, and ends it when it takes too much.
func watch(t *taken, pid int, dir string, printed *atomic.Int64, stop chan struct{}) {
	nextDisk := time.Now().Add(diskRest)
	for {
		select {
		case <-stop:
			return
		case <-time.After(memoryRest):
		}
		all := family(pid)
		used := memory(all)
		if used > limits().memory {
			used = shares(all) // the quick sum counts forked memory again and again
		}
		t.Memory = max(t.Memory, used)
		t.Output = printed.Load()
		if now := time.Now(); now.After(nextDisk) {
			t.Disk = max(t.Disk, size(dir))
			nextDisk = time.Now().Add(max(diskRest, diskShare*time.Since(now)))
		}
		if t.Exceeded = limits().exceeded(*t); t.Exceeded != "" {
			end(all)
			return
		}
	}
}

// finish looks at the remains, and removes them.
func (t *taken) finish(dir string, printed int64) {
	t.Output = printed
	t.Disk = max(t.Disk, size(dir))
	if t.Exceeded == "" {
		t.Exceeded = limits().exceeded(*t)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Left = append(t.Left, err.Error())
	}
	for _, entry := range entries {
		t.Left = append(t.Left, fmt.Sprintf("%s (%d KiB)", entry.Name(), size(filepath.Join(dir, entry.Name()))>>10))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Left = append(t.Left, err.Error())
	}
}

func (t *taken) note(report string) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// code returns the exit code, after printing any message.
func (t *taken) code(err error) int {
	var exit *exec.ExitError
	switch {
	case t.Exceeded != "":
		fmt.Fprintf(os.Stderr, "FAIL: bounds: %s %s: it was ended\n", t.Package, t.Exceeded)
		return 1
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintf(os.Stderr, "FAIL: bounds: %s: %v\n", t.Package, err)
		return 1
	}
	return 0
}

// packageHere returns the package's path in the module: go test runs a binary
// in its package's directory.
func packageHere() string {
	here, err := os.Getwd()
	if err != nil {
		return "a package"
	}
	for top := here; top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			if rel, err := filepath.Rel(top, here); err == nil {
				return rel
			}
		}
	}
	return here
}

// counted counts the bytes that pass through it.
type counted struct {
	to    io.Writer
	bytes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return c.to.Write(b)
}
