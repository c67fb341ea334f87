// Package image gets the base of a sandbox's root file system from an OCI
// image: out of a layout or an archive on disk, or from a registry, without
// any container engine. Layers are unpacked once into read-only directories
// that sandboxes share, named by the digest of their content.
//
// An image is foreign data. Every document is checked against the digest that
// names it, every layer against its diff id, and a layer's tar is refused where
// it could leave the layer's directory. The package mounts nothing and runs
// nothing of an image.
//
// The formats are those of the OCI image and distribution specifications
// (github.com/opencontainers, v1.1) and of `docker save`. They are small
// enough to be read by hand; the usual libraries cost every start of the
// program half a millisecond (docs/adr/0005-images-by-hand.md).
//
// Start reading at [Store.Image].
package image

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// found is an image that was looked up: its description, and how to read its
// layers, lowest first.
type found struct {
	image  sandbox.Image
	layers []layer
}

// layer is one layer of an image.
type layer struct {
	diffID string // digest of the tar, "sha256:…"
	size   int64  // of the stream that open gives
	// open gives the tar, compressed or not. Its content is not verified.
	open func(ctx context.Context) (io.ReadCloser, error)
}

// repository holds the documents of images by digest: a layout on disk or a
// repository of a registry.
type repository interface {
	// top is the document that the source names: an index or a manifest.
	top(ctx context.Context) (descriptor, []byte, error)
	// manifest opens an index or a manifest, blob everything else. Nothing that
	// they return is verified.
	manifest(ctx context.Context, d descriptor) (io.ReadCloser, error)
	blob(ctx context.Context, d descriptor) (io.ReadCloser, error)
}

// describe finds the image for this machine in a repository.
func describe(ctx context.Context, r repository, name string) (found, error) {
	at, content, err := r.top(ctx)
	if err != nil {
		return found{}, err
	}
	var doc manifest
	for depth := 0; ; depth++ {
		doc = manifest{}
		if err := json.Unmarshal(content, &doc); err != nil {
			return found{}, fault.New(fault.Invalid, "cannot read the manifest of %s: %v", name, err)
		}
		if err := doc.check(); err != nil {
			return found{}, fault.Wrap("", err, "cannot use %s", name)
		}
		if !doc.isIndex() {
			break
		}
		if depth == maxDepth {
			return found{}, fault.New(fault.Invalid, "cannot use %s: its indexes are nested too deep", name)
		}
		if at, err = choose(doc.Manifests, name); err != nil {
			return found{}, err
		}
		if content, err = read(ctx, at, r.manifest); err != nil {
			return found{}, fault.Wrap("", err, "cannot read the manifest of %s", name)
		}
	}
	if doc.Config.Digest == "" {
		return found{}, fault.New(fault.Unsupported, "cannot use %s: it is not an image of a kind that litterbox knows (%q)", name, doc.MediaType)
	}
	content, err = read(ctx, doc.Config, r.blob)
	if err != nil {
		return found{}, fault.Wrap("", err, "cannot read the configuration of %s", name)
	}
	result, err := configure(content, at.Digest, len(doc.Layers), name)
	if err != nil {
		return found{}, err
	}
	for i, d := range doc.Layers {
		if err := d.check(); err != nil {
			return found{}, fault.Wrap("", err, "cannot use a layer of %s", name)
		}
		result.layers = append(result.layers, layer{
			diffID: result.image.Layers[i], size: d.Size,
			open: func(ctx context.Context) (io.ReadCloser, error) { return r.blob(ctx, d) },
		})
	}
	return result, nil
}

// configure reads an image's configuration document.
func configure(content []byte, digest string, layers int, name string) (found, error) {
	var c configuration
	if err := json.Unmarshal(content, &c); err != nil {
		return found{}, fault.New(fault.Invalid, "cannot read the configuration of %s: %v", name, err)
	}
	if other := c.other(); other != "" {
		return found{}, fault.New(fault.Unsupported, "cannot use %s: it is made for %s, this machine is linux/%s", name, other, runtime.GOARCH)
	}
	switch {
	case layers == 0:
		return found{}, fault.New(fault.Invalid, "cannot use %s: it has no layers", name)
	case layers > maxLayers:
		return found{}, fault.New(fault.Unsupported, "cannot use %s: it has %d layers, %d can be mounted", name, layers, maxLayers)
	case layers != len(c.RootFS.DiffIDs):
		return found{}, fault.New(fault.Invalid, "cannot use %s: it has %d layers and %d diff ids", name, layers, len(c.RootFS.DiffIDs))
	}
	for _, id := range c.RootFS.DiffIDs {
		if err := checkDigest(id); err != nil {
			return found{}, fault.Wrap("", err, "cannot use %s", name)
		}
	}
	user, _, _ := strings.Cut(c.Config.User, ":") // a sandbox cannot have the group
	return found{image: sandbox.Image{
		Digest: digest, Layers: c.RootFS.DiffIDs, User: user, WorkingDir: c.Config.WorkingDir,
		Env: slices.DeleteFunc(c.Config.Env, func(entry string) bool {
			key, _, ok := strings.Cut(entry, "=")
			return !ok || key == "" || strings.ContainsRune(entry, 0)
		}),
	}}, nil
}
