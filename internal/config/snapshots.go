package config

import "strconv"

// Snapshots is the section about automatic snapshots.
type Snapshots struct {
	Every string // SnapshotIteration or SnapshotMilestone; empty when not set: off
	Keep  int    // this many of them stay in each sandbox; 0 when not set: KeepSnapshots
}

// The values of snapshots.every.
const (
	SnapshotsOff      = "off"
	SnapshotIteration = "iteration"
	SnapshotMilestone = "milestone"
)

// KeepSnapshots is how many automatic snapshots of a sandbox stay unless
// snapshots.keep says otherwise, and maxKeepSnapshots the most.
const (
	KeepSnapshots    = 10
	maxKeepSnapshots = 1000
)

// snapshotKeys are the keys of [snapshots].
func snapshotKeys() []key {
	return []key{
		{
			Key: Key{
				Name: "snapshots.every", Type: `"iteration", "milestone" or "off"`, NeedsTrust: true,
				Meaning: `Take a snapshot automatically after each iteration, or after each milestone; "off" unless set. While a sandbox runs, each snapshot pauses it and copies what was written since it was last frozen, except for files that the previous snapshot already has. The key is read when a sandbox starts.`,
			},
			shape: text,
			read: func(c *Config, v value) []problem {
				switch c.Snapshots.Every = v.text; v.text {
				case SnapshotIteration, SnapshotMilestone, SnapshotsOff:
					return nil
				}
				return wrong(v, `every = "milestone"`, `snapshots.every must be "iteration", "milestone" or "off", not %q`, v.text)
			},
			merge: func(base *Config, over Config) { base.Snapshots.Every = over.Snapshots.Every },
		},
		{
			Key: Key{
				Name: "snapshots.keep", Type: "number", NeedsTrust: true,
				Meaning: `How many automatic snapshots to keep in each sandbox, 10 unless set; the oldest is removed when a new one is taken. Snapshots that you or a restore took stay until they are deleted.`,
			},
			shape: number,
			read: func(c *Config, v value) []problem {
				n, err := strconv.Atoi(v.text)
				if err != nil || n < 1 || n > maxKeepSnapshots {
					return wrong(v, "keep = 10", "snapshots.keep must be a whole number from 1 to %d, not %s", maxKeepSnapshots, v.text)
				}
				c.Snapshots.Keep = n
				return nil
			},
			merge: func(base *Config, over Config) { base.Snapshots.Keep = over.Snapshots.Keep },
		},
	}
}
