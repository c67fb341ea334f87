package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// archive is a file that `docker save` or `podman save` wrote, compressed or not.
type archive struct {
	file string
	name string // which image of several, as RepoTags has it
}

// saved is one entry of its manifest.json.
type saved struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// describe reads the archive's documents. Its image id is the digest of the
// configuration, as docker shows it: an archive has no manifest of its own.
func (a archive) describe(ctx context.Context) (found, error) {
	content, err := a.document(ctx, "manifest.json")
	if err != nil {
		return found{}, fault.Wrap("", err, "cannot use %q as an image", a.file).
			WithHint("docker save -o %s IMAGE", a.file)
	}
	var all []saved
	if err := json.Unmarshal(content, &all); err != nil {
		return found{}, fault.New(fault.Invalid, "cannot read manifest.json of %q: %v", a.file, err)
	}
	image, err := a.pick(all)
	if err != nil {
		return found{}, err
	}
	content, err = a.document(ctx, image.Config)
	if err != nil {
		return found{}, fault.Wrap("", err, "cannot use %q as an image", a.file)
	}
	result, err := configure(content, digestOf(content), len(image.Layers), a.file)
	if err != nil {
		return found{}, err
	}
	for i, name := range image.Layers {
		size, err := a.size(ctx, name)
		if err != nil {
			return found{}, fault.Wrap("", err, "cannot use %q as an image", a.file)
		}
		result.layers = append(result.layers, layer{
			diffID: result.image.Layers[i], size: size,
			open: func(ctx context.Context) (io.ReadCloser, error) { return a.open(ctx, name) },
		})
	}
	return result, nil
}

func (a archive) pick(all []saved) (saved, error) {
	var names []string
	for _, image := range all {
		for _, tag := range image.RepoTags {
			names = append(names, tag)
			if a.name != "" && strings.TrimPrefix(tag, "docker.io/library/") == strings.TrimPrefix(a.name, "docker.io/library/") {
				return image, nil
			}
		}
	}
	switch {
	case a.name != "":
		return saved{}, fault.New(fault.NotFound, "cannot find %q in %q: it has %q", a.name, a.file, names)
	case len(all) != 1:
		return saved{}, fault.New(fault.Invalid, "cannot use %q: it holds %d images, %q", a.file, len(all), names).
			WithHint(`base-image = "docker-archive:%s:NAME"`, a.file)
	}
	return all[0], nil
}

func (a archive) document(ctx context.Context, name string) ([]byte, error) {
	f, err := a.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readDocument(f)
}

func (a archive) size(ctx context.Context, name string) (int64, error) {
	f, err := a.open(ctx, name)
	if err != nil {
		return 0, err
	}
	return f.size, f.Close()
}

// member is one file of an archive.
type member struct {
	io.Reader
	size  int64
	close func() error
}

func (m *member) Close() error { return m.close() }

// open finds a file of the archive. Old archives have a link in the place of a
// layer that two images share; it is followed, once, within the archive.
func (a archive) open(ctx context.Context, name string) (*member, error) {
	for range 2 {
		m, link, err := a.find(ctx, path.Clean(name))
		if err != nil || m != nil {
			return m, err
		}
		name = link
	}
	return nil, fault.New(fault.Invalid, "it holds links to links")
}

func (a archive) find(ctx context.Context, name string) (m *member, link string, err error) {
	f, err := os.Open(a.file)
	if err != nil {
		return nil, "", fault.New(fault.NotFound, "%v", missing(err))
	}
	stream, closeStream, err := decompress(f)
	if err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	end := func() error { return errors.Join(closeStream(), f.Close()) }
	// In an uncompressed file, unwanted parts are skipped by seeking.
	if stream == nil {
		stream = f
	}
	for files := tar.NewReader(stream); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, "", errors.Join(fault.New(fault.Invalid, "it holds no %s", name), end())
		case err != nil:
			return nil, "", errors.Join(fault.Wrap(fault.Invalid, err, "it is not a tar archive"), end())
		case path.Clean(header.Name) != name:
		case header.Typeflag == tar.TypeSymlink || header.Typeflag == tar.TypeLink:
			link = header.Linkname // of a hard link, from the archive's top
			if header.Typeflag == tar.TypeSymlink {
				link = path.Join(path.Dir(name), link)
			}
			return nil, link, end()
		default:
			return &member{Reader: files, size: header.Size, close: end}, "", nil
		}
	}
}
