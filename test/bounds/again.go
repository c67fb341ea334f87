package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A test binary ends itself after testTimeout. One that cannot is killed after
// hangTimeout.
const (
	testTimeout = 30 * time.Minute
	hangTimeout = testTimeout + time.Minute
)

// keep puts a second name for the test binary of the package here into dir, from
// where again runs it. go test removes its own.
func keep(dir, binary string) error {
	kept := keptAt(dir, packageHere())
	if os.Link(binary, kept) == nil {
		return nil
	}
	from, err := os.Open(binary) // on another disk, or not ours
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(kept, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func keptAt(dir, pkg string) string { return filepath.Join(dir, url.PathEscape(pkg)+".test") }

// again runs the kept test binaries of some packages within the bounds, as go test
// does: each in its package's directory below the current one, one more at once than
// there are processors, because the longest wait more than they compute, and with the
// same lines. The order is that of the times in took, longest first, so that no long
// package is left for the end.
func again(w io.Writer, report, took, dir string, jobs int, packages []string) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bounds:", err)
		return 1
	}
	all, err := read(took)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bounds:", err)
		return 1
	}
	seconds := map[string]float64{}
	for _, one := range all {
		seconds[one.Package] = one.Seconds
	}
	packages = slices.Clone(packages)
	slices.SortStableFunc(packages, func(a, b string) int {
		return int(seconds[b]*1000) - int(seconds[a]*1000)
	})
	var (
		wait  sync.WaitGroup
		mutex sync.Mutex
		code  int
		slots = make(chan struct{}, jobs)
	)
	for _, pkg := range packages {
		binary := keptAt(dir, pkg)
		if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
			continue // it has no tests
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			output, elapsed, err := once(self, report, binary, pkg)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				code = 1
				_, _ = w.Write(output)
				fmt.Fprintf(w, "%v\nFAIL\t%s\t%.3fs\n", err, pkg, elapsed.Seconds())
				return
			}
			fmt.Fprintf(w, "ok  \t%s\t%.3fs\n", pkg, elapsed.Seconds())
		})
	}
	wait.Wait()
	return code
}

// once runs one package's tests, below a process that watches them.
func once(self, report, binary, pkg string) ([]byte, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hangTimeout)
	defer cancel()
	begun := time.Now()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "run", report, binary, "-test.paniconexit0", "-test.count=1", "-test.timeout="+testTimeout.String())
	cmd.Dir = path.Clean(pkg)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &output, ioPatience
	err := cmd.Run()
	return output.Bytes(), time.Since(begun), err
}
