package frozen

// Found is a file of a layer that contains one of some texts.
type Found struct {
	Path string `json:"path"` // below the layer: "home/.npmrc"
	Text int    `json:"text"` // its index
}
