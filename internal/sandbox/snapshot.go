package sandbox

import (
	"strconv"
	"strings"
	"time"
)

// SnapshotKind says why a snapshot was taken.
type SnapshotKind string

// The kinds of snapshots. Those of iterations and milestones are automatic, and
// are kept up to a number; the others stay until they are deleted.
const (
	SnapshotAsked     SnapshotKind = "asked"
	SnapshotIteration SnapshotKind = "iteration"
	SnapshotMilestone SnapshotKind = "milestone"
	SnapshotBefore    SnapshotKind = "before" // the state before a restore or a rewind
	SnapshotFork      SnapshotKind = "fork"   // what a fork began with
)

// Automatic reports whether the snapshot was taken without being asked for.
func (k SnapshotKind) Automatic() bool { return k == SnapshotIteration || k == SnapshotMilestone }

// Snapshot is the record of a sandbox's files at one moment, with the related
// state. The driver keeps the files, under ID.
type Snapshot struct {
	Version   int          `json:"version"`
	Number    int          `json:"number"` // counts up from 1 within the sandbox; s1 is its short name
	ID        string       `json:"id"`     // of the driver's making
	Label     string       `json:"label"`
	Kind      SnapshotKind `json:"kind"`
	CreatedAt time.Time    `json:"created_at"`
	Iteration int          `json:"iteration"` // the last one before it; 0 if there is none
	Commit    string       `json:"commit"`    // where the branch stood
	Policy    int          `json:"policy_revision"`
	Sandbox   Sandbox      `json:"sandbox"`         // as it was: base, layers, environment
	Lease     *Lease       `json:"lease,omitempty"` // of the place whose processes are part of it; nil: it has only files
	Holder    Process      `json:"holder,omitzero"` // of one for forks: who makes them and deletes it then
}

// Name is the short name of a snapshot: s3.
func (s *Snapshot) Name() string { return "s" + strconv.Itoa(s.Number) }

// SnapshotNumber reads a short name.
func SnapshotNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "s")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}
