package login

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
)

// largest bounds a client's file: Claude Code's holds its history too.
const largest = 32 << 20

// ReadFile reads a client's file on the host.
func ReadFile(path string) (map[string]any, error) {
	// O_NONBLOCK: opening a named pipe would wait for a writer for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no file %s", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read a login")
	}
	defer file.Close() // read only
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fault.New(fault.Denied, "cannot read a login: %s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, largest))
	defer clear(content)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read a login")
	}
	document, err := Parse(content)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot read the login in %s", path)
	}
	return document, nil
}

// WriteFile replaces a client's file by a document, atomically: every reader sees
// the old or the new one, also after a crash. A symbolic link stays one, and so
// do owner's bits of the mode.
func WriteFile(path string, document map[string]any) (err error) {
	defer func() {
		if err != nil {
			err = fault.Wrap(fault.Unavailable, err, "cannot write the login in %s", path)
		}
	}()
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	defer clear(content)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".litterbox-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	const owner = 0o700
	err = errors.Join(err, file.Chmod(info.Mode().Perm()&owner), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Lock takes the lock of one login: litterbox's own, at the path own, which all
// keepers of a human share, and those that the client takes before it renews. It
// waits until ctx ends.
func Lock(ctx context.Context, own string, clients []string) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot lock a login")
	}
	file, err := os.OpenFile(own, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot lock a login")
	}
	if err := lock.File(ctx, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	held := []func() error{file.Close}
	release = func() error {
		var all error
		for n := len(held) - 1; n >= 0; n-- {
			all = errors.Join(all, held[n]())
		}
		return all
	}
	for _, path := range clients {
		let, err := makeDir(ctx, path)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		if let != nil {
			held = append(held, let)
		}
	}
	return release, nil
}

// The times of proper-lockfile, as Claude Code uses it: the holder of a lock
// touches its directory, and one that was not touched for long has no holder.
const (
	stale = 10 * time.Second
	touch = 2 * time.Second
)

// makeDir takes a lock that is a directory; nil where it cannot be made, as
// below a directory that is read-only: the client has none then either.
func makeDir(ctx context.Context, path string) (release func() error, err error) {
	for {
		err := os.Mkdir(path, 0o755)
		switch {
		case err == nil:
			return hold(path), nil
		case !errors.Is(err, fs.ErrExist):
			return nil, nil
		}
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(path) // another process may have made it again meanwhile, and Mkdir says so
			continue
		}
		const pause = 50 * time.Millisecond
		select {
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot take the client's lock %s", path)
		case <-time.After(pause):
		}
	}
}

// hold touches a directory until it is released.
func hold(path string) (release func() error) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(touch)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-ticker.C:
				_ = os.Chtimes(path, now, now) // no one misses one that is gone
			}
		}
	}()
	return func() error {
		close(stop)
		<-stopped
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "cannot release the client's lock %s", path)
		}
		return nil
	}
}
