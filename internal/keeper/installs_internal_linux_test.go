package keeper

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/installer"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// newInstalls serves requests for packages by a program that is a shell script.
func newInstalls(t *testing.T, script string) (i *installs, ask func() *net.UnixConn) {
	t.Helper()
	dir := t.TempDir()
	// The shell takes "install" for a script in the directory that it works in.
	if err := os.WriteFile(filepath.Join(dir, "install"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	i = &installs{k: &keeper{}, with: Installs{Program: "/bin/sh", Dir: dir}, left: maxInstalls}
	i.k.order.Spec.Name = "box"
	var err error
	if i.listener, err = listenInside(dir, installer.Socket); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { i.serve(ctx); close(served) }()
	t.Cleanup(func() {
		cancel()
		_ = i.listener.Close()
		<-served
	})
	return i, func() *net.UnixConn {
		t.Helper()
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, installer.Socket), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

func packages(names ...string) wire.Exec {
	var command wire.Exec
	for _, name := range names {
		command.Argv = append(command.Argv, []byte(name))
	}
	return command
}

// What a program inside names reaches litterbox as names, never as options, and its
// output and failure come back.
func TestInstallsByName(t *testing.T) {
	t.Parallel()
	i, ask := newInstalls(t, `printf '%s|' "$@"; echo said >&2; test "$5" != broken`)
	for _, c := range []struct {
		asked []string
		want  string
		code  int
	}{
		{[]string{"jq", "ripgrep"}, "--inside|--|box|jq|ripgrep|", 0},
		{[]string{"--quiet", "a\nb"}, "--inside|--|box|--quiet|a\nb|", 0},
		{[]string{"jq", "broken"}, "--inside|--|box|jq|broken|", installer.Failed},
	} {
		var stdout, stderr bytes.Buffer
		exit, err := wire.Run(t.Context(), ask(), packages(c.asked...), wire.Streams{Stdout: &stdout, Stderr: &stderr})
		if err != nil || exit.Code != c.code || stdout.String() != c.want || stderr.String() != "said\n" {
			t.Errorf("%q: %d, %v, %q, %q", c.asked, exit.Code, err, stdout.String(), stderr.String())
		}
	}
	for _, command := range []wire.Exec{{}, packages(strings.Fields(strings.Repeat("jq ", maxInstallPackages+1))...)} {
		if _, err := wire.Run(t.Context(), ask(), command, wire.Streams{}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%d packages: %v", len(command.Argv), err)
		}
	}
	if i.left != maxInstalls-3 {
		t.Errorf("%d installations are left", i.left)
	}
}

// A sandbox cannot fill the disk with layers.
func TestInstallsAreCounted(t *testing.T) {
	t.Parallel()
	i, ask := newInstalls(t, "exit 0")
	i.left = 1
	if _, err := wire.Run(t.Context(), ask(), packages("jq"), wire.Streams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Run(t.Context(), ask(), packages("jq"), wire.Streams{}); fault.KindOf(err) != fault.Denied || fault.HintOf(err) != "litterbox install box PACKAGE" {
		t.Errorf("one too many: %v", err)
	}
}

// A program inside that goes away interrupts its installation, and the next is
// served.
func TestInstallIsInterrupted(t *testing.T) {
	t.Parallel()
	_, ask := newInstalls(t, `test "$4" = quick && exit 0
trap 'echo interrupted >>ended; exit 1' INT
echo begun
while :; do sleep 0.1; done`)
	conn := ask()
	if err := wire.WriteJSON(conn, wire.KindRequest, wire.Request{Version: wire.Version, Op: wire.OpExec, Exec: &wire.Exec{Argv: [][]byte{[]byte("slow")}}}); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if kind, payload, err := wire.NewReader(conn).Next(); err != nil || kind != wire.KindStdout || string(payload) != "begun\n" {
		t.Fatalf("%c %q, %v", kind, payload, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if exit, err := wire.Run(t.Context(), ask(), packages("quick"), wire.Streams{}); err != nil || exit.Code != 0 {
		t.Errorf("the next one: %d, %v", exit.Code, err)
	}
}
