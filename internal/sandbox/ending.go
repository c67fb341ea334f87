package sandbox

import "time"

// Ending records who ended the processes of a sandbox. Clients that were cut off
// read it when they can no longer find the sandbox.
type Ending struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Verb    string    `json:"verb"`           // merge, delete or stop
	Into    string    `json:"into,omitempty"` // branch that a merge went to
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Holder  Process   `json:"holder"` // the process that ends it
}
