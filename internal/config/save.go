package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// SaveRule adds a rule to a list of the section [network], "allow" or "deny", of a
// repository's configuration, which it makes when it is missing. Nothing else in
// the file changes, comments and blank lines included; a rule that the list has
// already, in any spelling, changes nothing. Callers may race. The content's hash
// changes with it: the human must trust the file again.
func SaveRule(ctx context.Context, file, list, rule string) error {
	parsed, err := egress.ParseRule(rule)
	if err != nil {
		return err
	}
	if list != egress.Allow && list != egress.Deny {
		return fault.New(fault.Internal, "cannot save a network rule: there is no list %q", list)
	}
	f, err := openLocked(ctx, file)
	if err != nil {
		return err
	}
	defer f.Close() // which releases the lock; the write goes to another file
	content, err := contentOf(f, file)
	if err != nil {
		return err
	}
	changed, err := addRule(file, content, list, parsed.String())
	if err != nil || changed == nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = replace(file, changed, func(fresh *os.File) error { return resemble(fresh, info) })
	}
	if err != nil {
		return fault.New(fault.Unavailable, "cannot write %s: %v", display(file), cause(err))
	}
	return nil
}

// addRule gives the content with the rule in the list; nil when it is there
// already.
func addRule(file string, content []byte, list, rule string) ([]byte, error) {
	want, err := Parse(file, content)
	if err != nil {
		return nil, err
	}
	rules := &want.Network.Allow
	if list == egress.Deny {
		rules = &want.Network.Deny
	}
	if slices.Contains(*rules, rule) {
		return nil, nil
	}
	*rules = append(*rules, rule)
	want.Set = union(want.Set, []string{"network." + list})
	slices.Sort(want.Set)

	changed, err := appendItem(content, []string{"network", list}, rule)
	if err != nil {
		return nil, notUnderstood(file, list, rule)
	}
	got, err := Parse(file, changed)
	if len(changed) > MaxSize {
		return nil, err // which says so
	}
	// The file states the human's intent. No change is better than a wrong one
	// where a layout is not understood.
	want.Hash = got.Hash
	if err != nil || !reflect.DeepEqual(want, got) {
		return nil, notUnderstood(file, list, rule)
	}
	return changed, nil
}

func notUnderstood(file, list, rule string) error {
	return fault.New(fault.Internal, "cannot add a rule to %s: its layout is not understood", display(file)).
		WithHint("write %q into the list %s of [network]", rule, list)
}

// appendItem gives the content with one more string in the list at a path.
func appendItem(content []byte, path []string, item string) ([]byte, error) {
	document, err := patch.Open(patch.TOML, content)
	if err != nil {
		return nil, err
	}
	splices, err := document.Append(path, []string{item})
	if err != nil {
		return nil, err
	}
	return patch.Apply(content, splices)
}

// openLocked opens a file to change it, making an empty one when it is missing. The
// lock is on the file itself, to leave no second file in the repository. Each
// change replaces the file, so after the wait it may be gone.
func openLocked(ctx context.Context, file string) (*os.File, error) {
	for {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
		if errors.Is(err, syscall.ELOOP) {
			return nil, fault.New(fault.Denied, "cannot write %s: it is a symbolic link", display(file)).
				WithHint("put a regular file there")
		}
		if err != nil {
			return nil, fault.New(fault.Unavailable, "cannot write %s: %v", display(file), cause(err))
		}
		current, err := lockCurrent(ctx, f, file)
		if err != nil {
			if fault.KindOf(err) != fault.Canceled {
				err = fault.New(fault.Unavailable, "cannot lock %s: %v", display(file), cause(err))
			}
			return nil, errors.Join(err, f.Close())
		}
		if current {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, fault.New(fault.Unavailable, "cannot write %s: %v", display(file), cause(err))
		}
	}
}

// lockCurrent waits for the lock and reports whether f is still the file of that
// name.
func lockCurrent(ctx context.Context, f *os.File, file string) (bool, error) {
	if err := lock.File(ctx, f); err != nil {
		return false, err
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, named), err
}

// resemble gives a new file the mode and owner of the one that it replaces.
func resemble(fresh *os.File, old os.FileInfo) error {
	if owner, ok := old.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid()) {
		// Root keeps the file the user's. Another user who may write to the
		// directory cannot, and owns it afterwards, as after an edit.
		if err := fresh.Chown(int(owner.Uid), int(owner.Gid)); err != nil && !errors.Is(err, syscall.EPERM) {
			return err
		}
	}
	return fresh.Chmod(old.Mode().Perm())
}
