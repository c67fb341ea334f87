package sandbox

// Modules are the submodules of a sandbox's base.
type Modules struct {
	Layer string   `json:"layer,omitempty"` // holds their files and git directories; empty when none has any
	List  []Module `json:"list,omitempty"`  // nested ones after the one that they are in
}

// Module is one submodule.
type Module struct {
	Path   string `json:"path"`             // from the top of the work tree, of a nested one too
	GitDir string `json:"git_dir"`          // "modules/name", from the top's git directory, inside as on the host
	Commit string `json:"commit"`           // that the base names
	Origin string `json:"origin,omitempty"` // git directory on the host that lent its objects; empty: it is empty inside
	Head   string `json:"head,omitempty"`   // commit taken from it last
}

// OwnLayers are the layers without that of the submodules: the files of a submodule
// are not part of the repository.
func (s *Sandbox) OwnLayers() []string {
	if s.Modules.Layer != "" && len(s.Layers) > 0 && s.Layers[0] == s.Modules.Layer {
		return s.Layers[1:]
	}
	return s.Layers
}
