package image

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// layout is an OCI image layout on disk (image-spec, image-layout.md).
type layout struct {
	dir  string
	name string // which image of several; empty means the only one
}

// refName is the annotation that names an image within a layout.
const refName = "org.opencontainers.image.ref.name"

func (l layout) top(_ context.Context) (descriptor, []byte, error) {
	f, err := os.Open(filepath.Join(l.dir, "index.json"))
	if err != nil {
		return descriptor{}, nil, fault.New(fault.NotFound, "cannot use %q as an OCI layout: it has no index.json", l.dir).
			WithHint("skopeo copy docker://IMAGE oci:%s", l.dir)
	}
	defer f.Close()
	content, err := readDocument(f)
	if err != nil {
		return descriptor{}, nil, fault.Wrap("", err, "cannot read the index of %q", l.dir)
	}
	if l.name == "" {
		return descriptor{Digest: digestOf(content)}, content, nil
	}
	var index manifest
	if err := json.Unmarshal(content, &index); err != nil {
		return descriptor{}, nil, fault.New(fault.Invalid, "cannot read the index of %q: %v", l.dir, err)
	}
	var names []string
	for _, d := range index.Manifests {
		names = append(names, d.Annotations[refName])
		if d.Annotations[refName] != l.name {
			continue
		}
		content, err := read(context.Background(), d, l.manifest)
		if err != nil {
			return descriptor{}, nil, fault.Wrap("", err, "cannot read the manifest of %q", l.name)
		}
		return d, content, nil
	}
	return descriptor{}, nil, fault.New(fault.NotFound, "cannot find %q in the OCI layout %q: it has %q", l.name, l.dir, names)
}

func (l layout) manifest(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	return l.blob(ctx, d)
}

func (l layout) blob(_ context.Context, d descriptor) (io.ReadCloser, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(l.dir, "blobs", "sha256", strings.TrimPrefix(d.Digest, "sha256:")))
	if err != nil {
		return nil, fault.New(fault.NotFound, "the OCI layout %q lacks the blob %s", l.dir, d.Digest)
	}
	return f, nil
}
