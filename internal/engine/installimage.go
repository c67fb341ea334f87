package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/image"
	"github.com/litterbox-sandbox/litterbox/internal/userland"
)

// adopt prepares the first installation above a directory that a user owns: entries
// there that belong to others than the owner of its top are made again, for the
// sandbox's id.
func (e *Engine) adopt(ctx context.Context, p, q *place, base *driver.Base) error {
	has, err := e.system(p)
	if err != nil || has != nil || base.Owned {
		return err
	}
	own := q.driver.Ownership(q.record.ID)
	above := userland.Above{
		Root: base.Layers[0], To: frozen.SystemUpper(q.dir, "", ""),
		Owner: userland.Owner{UID: own.UpperUID, GID: own.UpperGID, Chown: own.ChownLayers},
	}
	return above.Adopt(ctx)
}

// imageManager finds the package manager of an image, and copies its sources of
// packages to a directory, where the preset reads them.
func imageManager(layers []string, to string) (manager, error) {
	m, found := managerOf(layers)
	if !found {
		return m, fault.New(fault.Unsupported, "cannot install packages: the base image has no apt-get, dnf, pacman or apk, and other package managers are not supported").
			WithHint("container.base-image, an image that has the packages")
	}
	return m, image.CopyFiles(layers, to, m.sources...)
}
