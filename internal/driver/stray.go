package driver

// Stray is something that runs or lies around for a sandbox that is no longer
// known.
type Stray struct {
	SandboxID string
	Kind      string // "a process" when it is empty
	Shared    bool   // it may belong to another state directory: only the id tells
	What      string // for humans: "guest, process 4711"
	End       func() error
}

// StrayFinder is a driver that can find what a lost sandbox left behind. A
// driver whose places cannot outlive their records does not need it.
type StrayFinder interface {
	// Strays lists the strays of sandboxes of the state directory root that known
	// does not know.
	Strays(root string, known func(sandboxID string) bool) ([]Stray, error)
}
