package driver

// Packager is a driver whose places can have packages of their own (Spec.System).
// Others only have the host's directories, or an image.
type Packager interface {
	// Packages reports whether packages are available here; it looks at nothing.
	Packages() bool

	// Guest is the path of the guest's program inside a place whose workspace has
	// layers. It is apt-get there under that name (package installer).
	Guest() string
}
