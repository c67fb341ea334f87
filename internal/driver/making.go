package driver

import "context"

// Maker is also implemented by drivers that make machines for places and keep
// them when the places are gone, for the next ones.
type Maker interface {
	// Made lists the machines that it has made for the state directory root. If
	// none was ever made it makes no requests. A machine whose engine cannot be
	// asked is listed with its trouble.
	Made(ctx context.Context, root string) ([]Made, error)

	// Unmake removes one of them, by its name, with all that it holds. One that
	// sandboxes or goldens are in stays: fault.Conflict. A missing one is not an error.
	Unmake(ctx context.Context, root, name string) error
}

// MadeDisk is the kind of a copy of a disk image, which machines stand on.
const MadeDisk = "disk image"

// Made is a machine of a Maker's, or what such machines begin with.
type Made struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind,omitempty"`  // what it is; empty is a container
	Image     string   `json:"image,omitempty"` // what it is made of, as humans name it
	Engine    string   `json:"engine"`          // the address of the engine that holds it
	Running   bool     `json:"running"`
	Sandboxes []string `json:"sandboxes"`         // ids of those in it
	Goldens   []string `json:"goldens,omitempty"` // directories of those kept in it
	Bytes     int64    `json:"bytes"`             // of its disk; -1: not said
	Trouble   string   `json:"trouble,omitempty"` // why nothing more is known
}
