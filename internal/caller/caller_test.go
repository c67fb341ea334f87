package caller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// No caller does not mean the process's own environment.
func TestNobodyHasNothing(t *testing.T) {
	t.Setenv("LITTERBOX_CALLER_TEST", "of this process")
	if diff := cmp.Diff(&caller.Caller{}, caller.Of(t.Context())); diff != "" {
		t.Errorf("without a caller (- want, + got):\n%s", diff)
	}
	own := caller.ThisProcess()
	if got := own.Get("LITTERBOX_CALLER_TEST"); got != "of this process" {
		t.Errorf("of this process: %q; the test shows nothing", got)
	}
}

func TestAccountLendsNoSecrets(t *testing.T) {
	t.Setenv("VENDOR_API_KEY", "a-key-of-the-server")
	t.Setenv("TERM", "of-the-server")
	t.Setenv("PATH", "/usr/bin")
	account := caller.Account()
	for _, name := range []string{"VENDOR_API_KEY", "TERM"} {
		if value, set := account.Lookup(name); set {
			t.Errorf("%s=%s is lent", name, value)
		}
	}
	if got := account.Get("PATH"); got != "/usr/bin" {
		t.Errorf("PATH is %q", got)
	}
	if diff := cmp.Diff([]string{"a-key-of-the-server"}, account.Secrets()); diff != "" {
		t.Errorf("what is redacted (- want, + got):\n%s", diff)
	}
}

func TestLasting(t *testing.T) {
	got := caller.Lasting([]string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "https_proxy=http://p:1", "GIT_DIR=/x", "odd", "LD_PRELOAD=/x.so"})
	if diff := cmp.Diff([]string{"PATH=/bin", "https_proxy=http://p:1"}, got); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
	if got := caller.Lasting(nil); got == nil {
		t.Error("an empty environment is nil, which means this process's own to os/exec")
	}
}

func TestLastValueCounts(t *testing.T) {
	ctx := caller.For(t.Context(), caller.Caller{Env: []string{"A=1", "B", "A=2"}})
	who := caller.Of(ctx)
	_, b := who.Lookup("B")
	if who.Get("A") != "2" || b {
		t.Errorf("A is %q, B is set: %t", who.Get("A"), b)
	}
}
