package layer

// Copy is a workspace that is one directory with everything in it, where no
// overlay can show the layers.
type Copy struct {
	Layers []string // as [Cache.Layers] gives them
	Upper  string   // from [PrepareUpper]; becomes the workspace
	Base   string   // file that remembers what was copied, for [workspace.Base]
	Format string   // object format
}
