package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt/rpc"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	uri = "qemu:///session"
	id  = "7d4b3e60-8a4e-4a0a-9a51-0f6b6f0d2c11"
)

// connection stands in for libvirt. Each call is recorded and fails with fail if
// that is set.
type connection struct {
	rpc.Connection // methods not defined here are not called

	state, reason int32
	fail          error
	without       bool // snapshots

	mu    sync.Mutex
	calls []string
	gone  chan struct{}
}

func newConnection(state golibvirt.DomainState) *connection {
	return &connection{state: int32(state), gone: make(chan struct{})}
}

func (c *connection) called(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, what)
	return c.fail
}

func (c *connection) Disconnected() <-chan struct{} { return c.gone }

func (c *connection) ConnectGetLibVersion() (uint64, error) { return 9001002, c.called("version") }

func (c *connection) DomainLookupByUUID(golibvirt.UUID) (golibvirt.Domain, error) {
	return golibvirt.Domain{}, c.called("lookup")
}

func (c *connection) DomainDefineXMLFlags(string, golibvirt.DomainDefineFlags) (golibvirt.Domain, error) {
	return golibvirt.Domain{}, c.called("define")
}

func (c *connection) DomainCreateWithFlags(golibvirt.Domain, uint32) (golibvirt.Domain, error) {
	return golibvirt.Domain{}, c.called("create")
}

func (c *connection) DomainGetState(golibvirt.Domain, uint32) (int32, int32, error) {
	return c.state, c.reason, nil
}
func (c *connection) DomainSuspend(golibvirt.Domain) error { return c.called("suspend") }
func (c *connection) DomainResume(golibvirt.Domain) error  { return c.called("resume") }

func (c *connection) DomainDestroyFlags(golibvirt.Domain, golibvirt.DomainDestroyFlagsValues) error {
	return c.called("destroy")
}

func (c *connection) DomainUndefineFlags(golibvirt.Domain, golibvirt.DomainUndefineFlagsValues) error {
	return c.called("undefine")
}

func (c *connection) DomainGetInfo(golibvirt.Domain) (uint8, uint64, uint64, uint16, uint64, error) {
	return 1, 0, 0, 2, 1234, c.called("info")
}

func (c *connection) DomainMemoryStats(golibvirt.Domain, uint32, uint32) ([]golibvirt.DomainMemoryStat, error) {
	return []golibvirt.DomainMemoryStat{
		{Tag: int32(golibvirt.DomainMemoryStatRss), Val: 3}, {Tag: int32(golibvirt.DomainMemoryStatActualBalloon), Val: 8},
		{Tag: int32(golibvirt.DomainMemoryStatAvailable), Val: 7}, {Tag: int32(golibvirt.DomainMemoryStatUsable), Val: 5},
	}, c.called("memory")
}

func (c *connection) DomainBlockStats(golibvirt.Domain, string) (int64, int64, int64, int64, int64, error) {
	return 1, 10, 2, 20, 0, c.called("block")
}

func (c *connection) DomainSnapshotLookupByName(golibvirt.Domain, string, uint32) (golibvirt.DomainSnapshot, error) {
	if c.without {
		return golibvirt.DomainSnapshot{}, said(golibvirt.ErrNoDomainSnapshot, "Domain snapshot not found")
	}
	return golibvirt.DomainSnapshot{}, c.called("snapshot lookup")
}

func (c *connection) DomainSnapshotCreateXML(_ golibvirt.Domain, text string, flags uint32) (golibvirt.DomainSnapshot, error) {
	if flags == uint32(golibvirt.DomainSnapshotCreateRedefine) {
		return golibvirt.DomainSnapshot{}, c.called("redefine " + text)
	}
	return golibvirt.DomainSnapshot{}, c.called("snapshot")
}

func (c *connection) DomainSnapshotGetXMLDesc(golibvirt.DomainSnapshot, uint32) (string, error) {
	return "<domainsnapshot/>", c.called("describe")
}

func (c *connection) DomainRevertToSnapshot(_ golibvirt.DomainSnapshot, flags uint32) error {
	if flags&uint32(golibvirt.DomainSnapshotRevertRunning) != 0 {
		return c.called("revert, running")
	}
	return c.called("revert")
}

func (c *connection) DomainSnapshotDelete(golibvirt.DomainSnapshot, golibvirt.DomainSnapshotDeleteFlags) error {
	return c.called("snapshot delete")
}

func said(code golibvirt.ErrorNumber, text string) error {
	return golibvirt.Error{Code: uint32(code), Message: text}
}

// Each error of libvirt becomes one of the driver's, and each that a human can fix
// says how.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		op   libvirt.Op
		err  error
		uri  string
		want error // of package driver; nil is a denial
		hint string
	}{
		"no domain":                {err: said(golibvirt.ErrNoDomain, "Domain not found"), want: driver.ErrMachineLost},
		"a domain that ended":      {op: libvirt.OpSuspend, err: said(golibvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running"), want: driver.ErrMachineLost},
		"another invalid request":  {err: said(golibvirt.ErrOperationInvalid, "domain is busy"), want: driver.ErrLeaseUnavailable},
		"a pause that takes long":  {op: libvirt.OpSuspend, err: said(golibvirt.ErrOperationTimeout, "Timed out during operation"), want: driver.ErrPauseTimeout},
		"another that takes long":  {err: said(golibvirt.ErrOperationTimeout, "Timed out during operation"), want: driver.ErrUnreachable},
		"an agent that is silent":  {err: said(golibvirt.ErrAgentUnresponsive, "Guest agent is not responding"), want: driver.ErrUnreachable},
		"a full disk":              {err: said(golibvirt.ErrSystemError, "cannot write: No space left on device"), want: driver.ErrDiskFull, hint: "df -h .; df -i .; make room there, and type the same again"},
		"a full quota":             {err: said(golibvirt.ErrInternalError, "qemu: disk quota exceeded"), want: driver.ErrDiskFull, hint: "quota -s; make room in ., and type the same again"},
		"XML that is not accepted": {op: libvirt.OpDefine, err: said(golibvirt.ErrXMLInvalidSchema, "at line 12: element memballoon"), want: driver.ErrUnsupported},
		"XML that is broken":       {op: libvirt.OpDefine, err: said(golibvirt.ErrXMLError, "unknown machine type q35"), want: driver.ErrUnsupported},
		"no such feature":          {err: said(golibvirt.ErrConfigUnsupported, "unsupported configuration: kvm is not there"), want: driver.ErrUnsupported},
		"no such procedure":        {err: said(golibvirt.ErrNoSupport, "this function is not supported"), want: driver.ErrUnsupported},
		"no such operation":        {err: said(golibvirt.ErrOperationUnsupported, "not supported by the driver"), want: driver.ErrUnsupported},
		"no such argument":         {err: said(golibvirt.ErrArgumentUnsupported, "argument unsupported"), want: driver.ErrUnsupported},
		"XML with a wrong detail":  {op: libvirt.OpRedefine, err: said(golibvirt.ErrXMLDetail, "at line 3"), want: driver.ErrUnsupported},
		"a stale domain":           {op: libvirt.OpMeasure, err: said(golibvirt.ErrInvalidDomain, "invalid domain pointer"), want: driver.ErrMachineLost},
		"the end of the caller":    {err: context.DeadlineExceeded, want: driver.ErrUnreachable},
		"no connection":            {err: said(golibvirt.ErrNoConnect, "no connection driver"), want: driver.ErrUnreachable},
		"a stale connection":       {err: said(golibvirt.ErrInvalidConn, "invalid connection pointer"), want: driver.ErrUnreachable},
		"the end of the password":  {err: said(golibvirt.ErrAuthCancelled, "authentication cancelled"), hint: "export LIBVIRT_DEFAULT_URI=qemu:///session"},
		"no authentication":        {err: said(golibvirt.ErrAuthUnavailable, "no polkit agent"), uri: "qemu:///system", hint: "sudo usermod -aG libvirt $USER"},
		"a denied operation":       {err: said(golibvirt.ErrOperationDenied, "read only access"), hint: "export LIBVIRT_DEFAULT_URI=qemu:///session"},
		"a reset connection":       {err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, uri: "qemu:///system", want: driver.ErrUnreachable, hint: "sudo systemctl start libvirtd"},
		"no such snapshot":         {op: libvirt.OpRevert, err: said(golibvirt.ErrNoDomainSnapshot, "Domain snapshot not found"), want: driver.ErrNoSnapshot},
		"not permitted":            {err: said(golibvirt.ErrAuthFailed, "authentication failed"), uri: "qemu:///system", hint: "sudo usermod -aG libvirt $USER"},
		"access denied":            {err: said(golibvirt.ErrAccessDenied, "access denied"), hint: "export LIBVIRT_DEFAULT_URI=qemu:///session"},
		"the socket is private":    {err: fmt.Errorf("dial: %w", fs.ErrPermission), uri: "qemu:///system?socket=/x", hint: "sudo usermod -aG libvirt $USER"},
		"no libvirtd":              {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, uri: "qemu:///system", want: driver.ErrUnreachable, hint: "sudo systemctl start libvirtd"},
		"no libvirtd of the user":  {err: &net.OpError{Op: "dial", Err: syscall.ENOENT}, want: driver.ErrUnreachable, hint: "virsh -c qemu:///session version"},
		"libvirtd was killed":      {err: golibvirt.ErrInterrupted, want: driver.ErrUnreachable, hint: "virsh -c qemu:///session version"},
		"the connection ended":     {err: io.EOF, want: driver.ErrUnreachable, hint: "virsh -c qemu:///session version"},
		"the protocol":             {err: said(golibvirt.ErrRPC, "internal"), want: driver.ErrUnreachable},
		"anything else":            {err: said(golibvirt.ErrInternalError, "qemu unexpectedly closed the monitor"), want: driver.ErrLeaseUnavailable},
		"no error of libvirt":      {err: errors.New("odd"), want: driver.ErrLeaseUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.op == "" {
				test.op = libvirt.OpStart
			}
			if test.uri == "" {
				test.uri = uri
			}
			pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) {
				c := newConnection(golibvirt.DomainRunning)
				c.fail = test.err
				return c, nil
			}}
			_, err := pool.Do(t.Context(), libvirt.Request{Op: test.op, URI: test.uri, UUID: id})
			if test.want == nil {
				if fault.KindOf(err) != fault.Denied {
					t.Errorf("it is %v", err)
				}
			} else if !errors.Is(err, test.want) {
				t.Errorf("it is %v, not %v", err, test.want)
			}
			if text := strings.ToLower(err.Error()); !strings.Contains(text, strings.ToLower(test.err.Error())) {
				t.Errorf("what libvirt said is not in %q", text)
			}
			var foreign golibvirt.Error
			if errors.As(err, &foreign) {
				t.Error("an error of the library leaves the package as a type")
			}
			if hint := fault.HintOf(err); hint != test.hint {
				t.Errorf("the hint is %q, not %q", hint, test.hint)
			}
		})
	}
}

// A state that already holds is not requested, and a missing object needs no removal.
func TestWhatHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		op    libvirt.Op
		state golibvirt.DomainState
		want  []string
	}{
		"start":         {libvirt.OpStart, golibvirt.DomainShutoff, []string{"lookup", "create"}},
		"start again":   {libvirt.OpStart, golibvirt.DomainRunning, []string{"lookup"}},
		"suspend":       {libvirt.OpSuspend, golibvirt.DomainRunning, []string{"lookup", "suspend"}},
		"suspend again": {libvirt.OpSuspend, golibvirt.DomainPaused, []string{"lookup"}},
		"resume":        {libvirt.OpResume, golibvirt.DomainPaused, []string{"lookup", "resume"}},
		"resume again":  {libvirt.OpResume, golibvirt.DomainRunning, []string{"lookup"}},
		"stop":          {libvirt.OpStop, golibvirt.DomainPaused, []string{"lookup", "destroy"}},
		"stop again":    {libvirt.OpStop, golibvirt.DomainShutoff, []string{"lookup"}},
		"undefine":      {libvirt.OpUndefine, golibvirt.DomainShutoff, []string{"lookup", "undefine"}},
		"snapshot":      {libvirt.OpSnapshot, golibvirt.DomainRunning, []string{"lookup", "snapshot", "describe"}},
		"redefine":      {libvirt.OpRedefine, golibvirt.DomainShutoff, []string{"lookup", "redefine <x/>"}},
		"revert":        {libvirt.OpRevert, golibvirt.DomainShutoff, []string{"lookup", "snapshot lookup", "revert, running"}},
		"revert off":    {libvirt.OpRevertOff, golibvirt.DomainShutoff, []string{"lookup", "snapshot lookup", "revert"}},
		"forget":        {libvirt.OpForget, golibvirt.DomainRunning, []string{"lookup", "snapshot lookup", "snapshot delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConnection(test.state)
			pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) { return c, nil }}
			if _, err := pool.Do(t.Context(), libvirt.Request{Op: test.op, URI: uri, UUID: id, Name: "x", XML: "<x/>"}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, c.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	c := newConnection(golibvirt.DomainPaused)
	c.reason = int32(golibvirt.DomainPausedIoerror)
	bare := newConnection(golibvirt.DomainRunning)
	bare.without = true
	lost := newConnection(golibvirt.DomainRunning)
	lost.fail = said(golibvirt.ErrNoDomain, "Domain not found")
	for _, test := range []struct {
		name string
		conn *connection
		op   libvirt.Op
		want libvirt.Answer
	}{
		{"version", c, libvirt.OpVersion, libvirt.Answer{Text: "9.1.2"}},
		{"paused for want of space", c, libvirt.OpState, libvirt.Answer{State: libvirt.Paused, Reason: "ioerror"}},
		{"measures", c, libvirt.OpMeasure, libvirt.Answer{State: libvirt.Paused, Reason: "ioerror", Measures: &libvirt.Measures{
			CPU: 1234, Memory: 3 << 10, Balloon: 8 << 10, Used: 2 << 10, Read: 10, Written: 20,
		}}},
		{"lost", lost, libvirt.OpState, libvirt.Answer{State: libvirt.Lost}},
		{"a snapshot", c, libvirt.OpSnapshot, libvirt.Answer{Text: "<domainsnapshot/>"}},
		{"no snapshot to forget", bare, libvirt.OpForget, libvirt.Answer{}},
		{"undefined already", lost, libvirt.OpUndefine, libvirt.Answer{State: libvirt.Lost}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) { return test.conn, nil }}
			got, err := pool.Do(t.Context(), libvirt.Request{Op: test.op, URI: uri, UUID: id})
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// A libvirtd that was restarted costs a dial and no error.
func TestRedial(t *testing.T) {
	t.Parallel()
	var made []*connection
	pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) {
		c := newConnection(golibvirt.DomainRunning)
		if len(made) == 1 {
			c.fail = golibvirt.ErrInterrupted
		}
		made = append(made, c)
		return c, nil
	}}
	state := func() {
		t.Helper()
		if answer, err := pool.Do(t.Context(), libvirt.Request{Op: libvirt.OpState, URI: uri, UUID: id}); err != nil || answer.State != libvirt.Runs {
			t.Errorf("it is %v, %v", answer, err)
		}
	}
	state()
	state()
	if len(made) != 1 {
		t.Errorf("two questions take %d connections", len(made))
	}
	close(made[0].gone) // the next is interrupted, and the one after that is whole
	state()
	if len(made) != 3 {
		t.Errorf("%d connections were made, not 3", len(made))
	}
}

// A libvirtd that does not answer costs the caller's patience, not more.
func TestHang(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	defer close(hung)
	pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) {
		<-hung
		return nil, io.EOF
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := pool.Do(ctx, libvirt.Request{Op: libvirt.OpSuspend, URI: uri, UUID: id})
	if !errors.Is(err, driver.ErrPauseTimeout) {
		t.Errorf("it is %v", err)
	}
}

// A request is repeated when its error may pass, and only then.
func TestRetries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"another job holds it": {said(golibvirt.ErrOperationTimeout, "Timed out during operation: cannot acquire state change lock (held by monitor=qemu)"), true},
		"it is busy":           {said(golibvirt.ErrResourceBusy, "resource busy"), true},
		"the protocol":         {said(golibvirt.ErrRPC, "internal"), true},
		"libvirtd restarts":    {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"the pipe broke":       {syscall.EPIPE, true},
		"no libvirtd":          {&net.OpError{Op: "dial", Err: syscall.ENOENT}, false},
		"it takes too long":    {said(golibvirt.ErrOperationTimeout, "Timed out during operation"), false},
		"no room":              {said(golibvirt.ErrSystemError, "No space left on device"), false},
		"not permitted":        {said(golibvirt.ErrAccessDenied, "access denied"), false},
		"anything else":        {errors.New("odd"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) {
				c := newConnection(golibvirt.DomainRunning)
				if tries++; tries == 1 {
					return nil, test.err
				}
				return c, nil
			}}
			_, err := pool.Do(t.Context(), libvirt.Request{Op: libvirt.OpState, URI: uri, UUID: id})
			if again := err == nil && tries == 2; again != test.again {
				t.Errorf("after %d attempts: %v", tries, err)
			}
		})
	}
}

// libvirt's numbers of states and reasons have the words of its own programs.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		state  golibvirt.DomainState
		reason int32
		want   libvirt.Answer
	}{
		{golibvirt.DomainRunning, int32(golibvirt.DomainRunningUnpaused), libvirt.Answer{State: libvirt.Runs, Reason: "unpaused"}},
		{golibvirt.DomainRunning, int32(golibvirt.DomainRunningFromSnapshot), libvirt.Answer{State: libvirt.Runs, Reason: "from snapshot"}},
		{golibvirt.DomainPaused, int32(golibvirt.DomainPausedUser), libvirt.Answer{State: libvirt.Paused, Reason: "user"}},
		{golibvirt.DomainPaused, int32(golibvirt.DomainPausedCrashed), libvirt.Answer{State: libvirt.Paused, Reason: "crashed"}},
		{golibvirt.DomainPmsuspended, 0, libvirt.Answer{State: libvirt.Paused, Reason: "unknown"}},
		{golibvirt.DomainShutoff, int32(golibvirt.DomainShutoffCrashed), libvirt.Answer{State: libvirt.Off, Reason: "crashed"}},
		{golibvirt.DomainShutoff, int32(golibvirt.DomainShutoffDestroyed), libvirt.Answer{State: libvirt.Off, Reason: "destroyed"}},
		{golibvirt.DomainShutoff, int32(golibvirt.DomainShutoffDaemon), libvirt.Answer{State: libvirt.Off, Reason: "daemon"}},
		{golibvirt.DomainShutoff, 99, libvirt.Answer{State: libvirt.Off, Reason: "reason 99"}}, // of a newer libvirt
	} {
		c := newConnection(test.state)
		c.reason = test.reason
		pool := &rpc.Pool{Connect: func(string) (rpc.Connection, error) { return c, nil }}
		got, err := pool.Do(t.Context(), libvirt.Request{Op: libvirt.OpState, URI: uri, UUID: id})
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("state %d, reason %d: %v\n%s", test.state, test.reason, err, diff)
		}
	}
}
