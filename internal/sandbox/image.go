package sandbox

// Image is what a sandbox's root file system is made of where that is not the
// host's own userland. It is fixed when the sandbox is created: a changed
// configuration, or a tag that moved, counts for the next one.
type Image struct {
	Reference string `json:"reference"`           // in full; of a directory its path
	Digest    string `json:"digest,omitempty"`    // of its manifest; a directory has none
	Directory string `json:"directory,omitempty"` // used as it is, instead of layers
	// Layers are the diff ids of the image's layers, lowest first.
	Layers     []string `json:"layers,omitempty"`
	Env        []string `json:"env,omitempty"`         // K=V, as the image has it
	WorkingDir string   `json:"working_dir,omitempty"` // likewise
	User       string   `json:"user,omitempty"`        // likewise, without a group
}
