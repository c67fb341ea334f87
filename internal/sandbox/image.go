package sandbox

// Image is the source of a sandbox's root file system where that is not the host's
// own userland. It is fixed when the sandbox is created: a changed configuration,
// or a tag that moved, counts for the next one.
type Image struct {
	Reference string `json:"reference"`           // in full; of a directory its path
	Digest    string `json:"digest,omitempty"`    // of its manifest; a directory has none
	Directory string `json:"directory,omitempty"` // used as it is, instead of layers
	// Layers are the diff ids of the image's layers, lowest first.
	Layers     []string `json:"layers,omitempty"`
	Env        []string `json:"env,omitempty"`         // K=V, as the image has it
	WorkingDir string   `json:"working_dir,omitempty"` // likewise
	User       string   `json:"user,omitempty"`        // likewise, without a group

	// Engine is the address of the engine that has the image, where a driver has
	// one; Digest is then the image's id there.
	Engine string `json:"engine,omitempty"`
	// Runtime is that of the container, where another was chosen than the engine's
	// default.
	Runtime string `json:"runtime,omitempty"`
}
