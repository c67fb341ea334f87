package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestEveryKindHasAnExitCodeOfItsOwn(t *testing.T) {
	table, taken := cli.ExitTable(), map[int]fault.Kind{}
	for _, kind := range fault.Kinds() {
		code, ok := table[kind]
		if !ok {
			t.Errorf("kind %s has no exit code", kind)
			continue
		}
		if other, ok := taken[code]; ok {
			t.Errorf("kinds %s and %s share exit code %d", kind, other, code)
		}
		if code <= 0 || code == 125 || code > 255 {
			t.Errorf("kind %s has exit code %d", kind, code)
		}
		taken[code] = kind
	}
	if len(table) != len(fault.Kinds()) {
		t.Errorf("the table has %d rows for %d kinds", len(table), len(fault.Kinds()))
	}
}

func TestErrorsBecomeExitCodes(t *testing.T) {
	for _, kind := range fault.Kinds() {
		failing := fault.New(kind, "cannot do it").WithHint("do something else")
		e := &fake{
			list: func(string, bool) ([]engine.Info, error) { return nil, failing },
			exec: func(context.Context, engine.ExecRequest) (engine.ExecResult, error) {
				return engine.ExecResult{}, failing
			},
		}
		const message = "litterbox: cannot do it\n  try: do something else\n"
		wantOutcome(t, lb(t, e, "", "list"), outcome{cli.ExitTable()[kind], "", message})
		wantOutcome(t, lb(t, e, "", "exec", "fix", "--", "true"), outcome{125, "", message})
	}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"nothing", nil, 0, ""},
		{"foreign error", errors.New("disk on fire"), 1, "litterbox: disk on fire\n"},
		{"canceled context", fmt.Errorf("waiting: %w", context.Canceled), 130, "litterbox: interrupted\n"},
		{"deadline", fmt.Errorf("waiting: %w", context.DeadlineExceeded), 9, "litterbox: waiting: context deadline exceeded\n"},
		{"closed pipe", fmt.Errorf("write: %w", syscall.EPIPE), 141, ""},
		{
			"several", errors.Join(fault.New(fault.NotFound, "cannot find a").WithHint("one"), fault.New(fault.Denied, "cannot delete b")), 3,
			"litterbox: cannot find a\n  try: one\nlitterbox: cannot delete b\n",
		},
		{
			"bytes of an agent", fault.New(fault.Invalid, "cannot use \x1b]0;owned\x07it:\nsecond\x1b[2Jline").WithHint("a\nb"), 2,
			"litterbox: cannot use it:\nsecondline\n  try: a\n       b\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w bytes.Buffer
			code := cli.Report(&w, c.err, false)
			wantOutcome(t, outcome{code, "", w.String()}, outcome{c.code, "", c.text})
		})
	}
}
