package libvirt

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Op is an operation of libvirt.
type Op string

// The operations.
const (
	OpVersion  Op = "version"  // → Answer.Text
	OpDefine   Op = "define"   // XML; again for a domain that exists changes its next start
	OpStart    Op = "start"    // one that runs is no error
	OpState    Op = "state"    // → State, Reason; a missing domain is Lost
	OpSuspend  Op = "suspend"  // one that is paused is no error
	OpResume   Op = "resume"   // one that runs is no error
	OpStop     Op = "stop"     // without asking the guest; one that is off is no error
	OpUndefine Op = "undefine" // with its snapshots; a missing one is no error
	OpMeasure  Op = "measure"  // → Measures

	// Snapshots of the domain's own disk, and of its memory if it is on. Revert is for
	// those with memory, and the domain runs afterwards; RevertOff for the others,
	// and it is off. Redefine makes libvirt know a snapshot that the disk has.
	OpSnapshot  Op = "snapshot" // Name → Text: libvirt's description of it
	OpRedefine  Op = "redefine" // XML: that description
	OpRevert    Op = "revert"   // Name
	OpRevertOff Op = "revert-off"
	OpForget    Op = "forget" // Name; a missing one is no error
)

// Request asks about one domain of one libvirt.
type Request struct {
	Op   Op     `json:"op"`
	URI  string `json:"uri"`
	UUID string `json:"uuid,omitempty"`
	XML  string `json:"xml,omitempty"`
	Name string `json:"name,omitempty"`
}

// State of a domain.
type State string

// The states.
const (
	Runs   State = "running"
	Paused State = "paused"
	Off    State = "off"
	Lost   State = "lost" // libvirt does not know it
)

// Answer is libvirt's answer. Only the fields of the operation are set.
type Answer struct {
	Text     string    `json:"text,omitempty"`
	State    State     `json:"state,omitempty"`
	Reason   string    `json:"reason,omitempty"` // libvirt's word for why, as "user" or "ioerror"
	Measures *Measures `json:"measures,omitempty"`
}

// Measures are libvirt's measurements of a domain. Negative values mean: not measured.
type Measures struct {
	CPU     int64 `json:"cpu_ns"`
	Memory  int64 `json:"memory_bytes"`  // that the host has given
	Balloon int64 `json:"balloon_bytes"` // that the guest may use
	Used    int64 `json:"used_bytes"`    // by the guest's own count, without what it could drop
	Read    int64 `json:"read_bytes"`
	Written int64 `json:"written_bytes"`
}

// Hypervisor asks libvirt. It is safe for concurrent use. Its errors are those of
// package driver: ErrMachineLost for a missing domain, ErrUnreachable,
// ErrPauseTimeout, ErrDiskFull and ErrUnsupported, and fault.Denied with the group
// to join.
type Hypervisor interface {
	Do(ctx context.Context, q Request) (Answer, error)
}

// Reply is an answer or an error on its way between two programs of one machine.
type Reply struct {
	Answer  Answer           `json:"answer"`
	Failure *outpost.Failure `json:"failure,omitempty"`
}

// Replied makes a Reply from the results of Do.
func Replied(answer Answer, err error) Reply {
	if err != nil {
		return Reply{Failure: outpost.FailureOf(err)}
	}
	return Reply{Answer: answer}
}

// Result returns the results for Do.
func (r Reply) Result() (Answer, error) {
	if r.Failure != nil {
		return Answer{}, r.Failure.Err()
	}
	return r.Answer, nil
}
