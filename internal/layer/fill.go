package layer

// Copy is a workspace in one directory with everything in it, for use where no
// overlay can show the layers.
type Copy struct {
	Layers []string // as [Cache.Layers] returns them
	Upper  string   // from [PrepareUpper]; becomes the workspace
	Base   string   // file that records what was copied, for [workspace.Base]
	Format string   // object format
}
