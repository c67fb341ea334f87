package container

import (
	"context"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Op is an operation of an engine.
type Op string

// The orders.
const (
	OpConnect Op = "connect" // → Reply.Found
	OpImage   Op = "image"   // Image, Pull, Runtime → Reply.Image; progress on the way
	OpEnsure  Op = "ensure"  // makes the machine, or starts it
	OpDial    Op = "dial"    // → a stream to the machine's outpost; starts the machine
	OpList    Op = "list"    // → Reply.Machines: those of State
	OpRemove  Op = "remove"  // Machine: its container and its volume
	OpStop    Op = "stop"    // Machine: its container; it starts again on demand
)

// Order is what an engine should do.
type Order struct {
	Op      Op     `json:"op"`
	Kind    Kind   `json:"kind"`
	Address string `json:"address"` // of the engine
	Machine Record `json:"machine,omitzero"`
	Image   string `json:"image,omitempty"`
	Pull    bool   `json:"pull,omitempty"`    // also when the engine has the image
	Runtime string `json:"runtime,omitempty"` // one that the engine must know
	State   string `json:"state,omitempty"`   // a state directory
}

// Reply is the outcome of an order.
type Reply struct {
	Failure  *outpost.Failure `json:"failure,omitempty"`
	Progress *Progress        `json:"progress,omitempty"` // another reply follows
	Found    *Found           `json:"found,omitempty"`
	Image    *sandbox.Image   `json:"image,omitempty"`
	Machines []Kept           `json:"machines,omitempty"`
}

// Progress is how far a long operation has come.
type Progress struct {
	What        string `json:"what"`
	Done, Total int
}

// Found is an engine that answers.
type Found struct {
	Name         string `json:"name"` // as it calls itself, with its version
	Architecture string `json:"architecture"`
}

// Kept is a machine that an engine has.
type Kept struct {
	Record
	Container bool  `json:"container"` // there is one; the volume may exist alone
	Running   bool  `json:"running"`
	Bytes     int64 `json:"bytes"` // of the volume; -1 when the engine does not say
}

// Engine carries orders out. It is safe for concurrent use.
type Engine interface {
	// Do carries out one with a reply; progress may be nil.
	Do(ctx context.Context, order Order, progress func(Progress)) (Reply, error)

	// Dial is for [OpDial].
	Dial(ctx context.Context, order Order) (io.ReadWriteCloser, error)
}
