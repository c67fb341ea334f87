package machineimage_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/machineimage"
)

// Two builds of the same packages are the same bytes. It downloads a hundred
// megabytes and takes minutes, so it runs by make test-vm, which says where the
// outpost's program is.
func TestBuildTwice(t *testing.T) {
	program := os.Getenv("LITTERBOX_TEST_VM_OUTPOST")
	if program == "" {
		t.Skip("only by make test-vm")
	}
	dir := os.Getenv("LITTERBOX_TEST_VM_IMAGE")
	var images []machineimage.Image
	for _, at := range []string{dir, filepath.Join(t.TempDir(), "second")} {
		image, err := machineimage.Build(t.Context(), machineimage.Order{
			Dir: at, Suite: machineimage.DefaultSuite, Packages: []string{"git"}, Env: os.Environ(),
			Outpost: func() (io.ReadCloser, error) { return os.Open(program) },
			Say:     func(what string) { t.Log(what) },
		})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	if diff := cmp.Diff(images[0], images[1]); diff != "" {
		t.Error(diff)
	}
}
