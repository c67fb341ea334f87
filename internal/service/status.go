package service

import "time"

// Wish is a request about a service.
type Wish string

// The wishes, as users and agents type them.
const (
	WishStart   Wish = "start"
	WishStop    Wish = "stop"
	WishRestart Wish = "restart"
	WishStatus  Wish = "status"
)

// Wishes lists every wish.
func Wishes() []Wish { return []Wish{WishStart, WishStop, WishRestart, WishStatus} }

// Status is one service at one moment. The JSON fields are pinned by golden
// files; add, never rename.
type Status struct {
	Name      string    `json:"name"`
	State     State     `json:"state"`
	Wanted    bool      `json:"wanted"`        // it starts with the sandbox
	PID       int       `json:"pid,omitempty"` // inside
	StartedAt time.Time `json:"started_at,omitzero"`
	Restarts  int       `json:"restarts"` // by itself, since the sandbox started
	// How its last process ended; nil when none has.
	Last    *Ending `json:"last,omitempty"`
	Problem string  `json:"problem,omitempty"` // why it is not running although wanted
	// NextStart is when it starts again, in state backoff.
	NextStart time.Time `json:"next_start,omitzero"`
}

// Ending is the end of one process.
type Ending struct {
	Code   int       `json:"code"`             // 128+n when a signal ended it
	Signal string    `json:"signal,omitempty"` // name without SIG
	At     time.Time `json:"at"`
}

// Record is what a sandbox remembers about its services on disk.
type Record struct {
	Version  int      `json:"version"`
	Services []Spec   `json:"services"`
	Wanted   []string `json:"wanted"` // names; survives stop, start and crashes
}
