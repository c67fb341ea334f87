package driver

// Stray is something that runs or lies around for a sandbox that nobody knows
// any more.
type Stray struct {
	SandboxID string
	Kind      string // "a process" when it is empty
	Shared    bool   // it may as well be of another state directory: nothing but the id tells
	What      string // for people: "guest, process 4711"
	End       func() error
}

// StrayFinder is a driver that can find what a lost sandbox left behind. A
// driver whose places cannot outlive their records does not need it.
type StrayFinder interface {
	// Strays lists what belongs to sandboxes of the state directory root that
	// known does not know.
	Strays(root string, known func(sandboxID string) bool) ([]Stray, error)
}
