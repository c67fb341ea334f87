package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func TestKindsAreListedOnceEach(t *testing.T) {
	t.Parallel()
	// The words are in JSON and in documented tables: they never change.
	want := []fault.Kind{
		"invalid", "not_found", "already_exists", "conflict", "unsupported",
		"denied", "unavailable", "timeout", "canceled", "internal",
	}
	if diff := cmp.Diff(want, fault.Kinds()); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	sorted := slices.Sorted(slices.Values(fault.Kinds()))
	if len(slices.Compact(sorted)) != len(want) {
		t.Error("a kind is there twice")
	}
}

// chain returns an error as layers make it: ours, a foreign one, ours again.
func chain() error {
	inner := fault.New(fault.NotFound, "no branch %q", "fix").WithHint("litterbox list")
	return fault.Wrap("", fmt.Errorf("layer: %w", inner), "cannot merge %q", "a b")
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	type seen struct {
		Text string
		Kind fault.Kind
		Hint string
	}
	for name, c := range map[string]struct {
		err  error
		want seen
	}{
		"nothing": {nil, seen{}},
		"a full disk": {fault.Wrap(fault.Unavailable, &fs.PathError{Op: "write", Path: "/proc/no/file", Err: syscall.ENOSPC}, "cannot save"),
			seen{"cannot save: write /proc/no/file: no space left on device", fault.Unavailable,
				"df -h /proc/no; df -i /proc/no; make room there, and type the same again"}},
		"a full disk, in words": {fault.DiskTrouble("fatal: sha1 file write error: No space left on device", "/proc"),
			seen{"write /proc: no space left on device", fault.Internal, "df -h /proc; df -i /proc; make room there, and type the same again"}},
		"a disk with a strange name": {&fs.PathError{Op: "write", Path: "/$(reboot)/x", Err: syscall.ENOSPC},
			seen{"write /$(reboot)/x: no space left on device", fault.Internal, "df -h .; df -i .; make room there, and type the same again"}},
		"foreign":           {fs.ErrNotExist, seen{"file does not exist", fault.Internal, ""}},
		"new":               {fault.New(fault.Denied, "cannot read %q", "x\n"), seen{`cannot read "x\n"`, fault.Denied, ""}},
		"with a hint":       {fault.New(fault.Denied, "no").WithHint("type %s", "this"), seen{"no", fault.Denied, "type this"}},
		"wrapped":           {fault.Wrap(fault.Timeout, fs.ErrClosed, "cannot wait"), seen{"cannot wait: file already closed", fault.Timeout, ""}},
		"keeps the kind":    {chain(), seen{`cannot merge "a b": layer: no branch "fix"`, fault.NotFound, "litterbox list"}},
		"outer kind wins":   {fault.Wrap(fault.Conflict, chain(), "x"), seen{`x: cannot merge "a b": layer: no branch "fix"`, fault.Conflict, "litterbox list"}},
		"outer hint wins":   {fault.Wrap("", chain(), "x").WithHint("outer"), seen{`x: cannot merge "a b": layer: no branch "fix"`, fault.NotFound, "outer"}},
		"no kind to keep":   {fault.Wrap("", fs.ErrClosed, "x"), seen{"x: file already closed", fault.Internal, ""}},
		"below foreign":     {fmt.Errorf("a: %w", fault.New(fault.Canceled, "b").WithHint("c")), seen{"a: b", fault.Canceled, "c"}},
		"among joined":      {errors.Join(fs.ErrClosed, fault.New(fault.Conflict, "b").WithHint("c")), seen{"file already closed\nb", fault.Conflict, "c"}},
		"without its cause": {fault.Wrap(fault.Invalid, nil, "alone"), seen{"alone", fault.Invalid, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := seen{Kind: fault.KindOf(c.err), Hint: fault.HintOf(c.err)}
			if c.err != nil {
				got.Text = c.err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	err := fault.Wrap(fault.Timeout, fmt.Errorf("x: %w", context.DeadlineExceeded), "cannot wait")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is not found through the error")
	}
	var ours *fault.Error
	if !errors.As(fmt.Errorf("y: %w", err), &ours) || ours != err {
		t.Error("the error is not found through another")
	}
}

// A percent sign in a value must not be read as a verb again.
func TestPercentSigns(t *testing.T) {
	t.Parallel()
	err := fault.Wrap(fault.Invalid, errors.New("100%d"), "cannot use %q", "50%s").WithHint("try %s", "5%v")
	if got, want := err.Error()+" | "+err.Hint, `cannot use "50%s": 100%d | try 5%v`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
