package sandbox

// Carriage says how the files of a workspace are carried. It is decided when a
// sandbox is created, and stays: the files on the disk depend on it.
type Carriage string

// The ways to carry a workspace. They isolate alike.
const (
	// CarriageOverlay shows shared read-only layers, and keeps only changes.
	CarriageOverlay Carriage = "overlay"
	// CarriageCopy gives the sandbox all files as its own: slower to make and to
	// commit, where no overlay is possible.
	CarriageCopy Carriage = "copy"
	// CarriageFar keeps the files in the place's own machine, where the host cannot
	// look: it asks the place, and knows nothing without an answer.
	CarriageFar Carriage = "far"
)
