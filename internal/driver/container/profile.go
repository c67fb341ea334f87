package container

import _ "embed"

// profile is the system call filter of a container, as engines take it. It is
// made from the policy of places with security.nested, which permits the calls
// that build a place: go test ./internal/driver/container -update.
//
//go:embed profile.json
var profile string

// Profile returns the system call filter of every container.
func Profile() string { return profile }
