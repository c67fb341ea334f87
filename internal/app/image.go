package app

import (
	"context"
	"io"
	"path/filepath"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/machineimage"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// buildImage builds the image of virtual machines, with the outpost that this
// program carries.
func buildImage(ctx context.Context, r cli.ImageRequest) (cli.ImageResult, error) {
	self := caller.ThisProcess()
	root, err := store.DefaultRoot(&self)
	if err != nil {
		return cli.ImageResult{}, err
	}
	if _, err := store.Open(root); err != nil {
		return cli.ImageResult{}, err
	}
	outpost, err := payload.Outpost("linux", runtime.GOARCH)
	if err != nil {
		return cli.ImageResult{}, err
	}
	order := machineimage.Order{
		Dir: imageDir(self, root), Suite: r.Suite, Mirror: r.Mirror, Packages: r.Packages, Say: r.Say, Env: self.Env,
		Outpost: func() (io.ReadCloser, error) { return outpost.Open() },
	}
	if order.Suite == "" {
		order.Suite = machineimage.DefaultSuite
	}
	if len(order.Packages) == 0 {
		order.Packages = machineimage.DefaultPackages()
	}
	image, err := machineimage.Build(ctx, order)
	if err != nil {
		return cli.ImageResult{}, err
	}
	return cli.ImageResult{ID: image.ID(), Dir: filepath.Join(order.Dir, image.ID()), System: image.System, Kernel: image.Kernel, Packages: image.Packages}, nil
}
