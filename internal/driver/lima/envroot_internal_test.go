package lima

import "testing"

// All environments have one machine, also those that wait in the trash until it answers.
func TestEnvRoot(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"sandboxes/app-1a2b", "trash/sandboxes/app-1a2b", "trash/trash/sandboxes/app-1a2b"} {
		if root := envRoot("/state/litterbox/environments/" + dir); root != "/state/litterbox" {
			t.Errorf("%s lies in %s", dir, root)
		}
	}
}
