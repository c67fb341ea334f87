package engines_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/engine"
	"github.com/litterbox-sandbox/litterbox/test/uses"
)

// What people do in a sandbox works in a container as it does here.
func TestUses(t *testing.T) {
	for name, start := range map[string]func(*testing.T) trial{
		"docker":           func(t *testing.T) trial { return docker(t, nil) },
		"podman":           podman,
		"podman, rootless": rootless,
	} {
		t.Run(name, func(t *testing.T) {
			if name != "docker" {
				whole(t)
			}
			e := start(t)
			uses.All(t, e.host(engine.Shell))
		})
	}
}
