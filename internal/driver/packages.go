package driver

// Packager is a driver whose places can have packages of their own (Spec.System).
// Others only have the host's directories, or an image.
type Packager interface {
	// Packages reports whether packages are available here; it looks at nothing.
	Packages() bool
}
