package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Bounds of what an image may ask for. Registries themselves refuse larger
// documents. The kernel takes 500 layers (OVL_MAX_STACK), but their names must
// fit in the page that mount(2) takes, with the paths of a state directory of any
// length: 18 bytes for each. Container engines stop at 128 as well (overlay2).
const (
	maxDocument = 8 << 20 // bytes of a manifest or a configuration
	maxLayers   = 128
	maxDepth    = 3 // of indexes in indexes
)

// descriptor points at a document or a layer (image-spec, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform"`
	Annotations map[string]string `json:"annotations"`
	URLs        []string          `json:"urls"`
}

type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
}

// manifest is an image's manifest, or an index of several: its fields tell which
// of the two it is.
type manifest struct {
	MediaType string       `json:"mediaType"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
	Manifests []descriptor `json:"manifests"`
}

func (m manifest) isIndex() bool {
	return len(m.Manifests) > 0 || strings.Contains(m.MediaType, "index") || strings.Contains(m.MediaType, "manifest.list")
}

// check refuses a document that one reader takes for an image and another for an
// index (CVE-2021-41190): what was inspected elsewhere is then not what runs.
func (m manifest) check() error {
	image := m.Config.Digest != "" || len(m.Layers) > 0
	says := strings.Contains(m.MediaType, "manifest") && !strings.Contains(m.MediaType, "manifest.list")
	if m.isIndex() && (image || says) {
		return fault.New(fault.Invalid, "its manifest is that of an image and an index of images at once")
	}
	return nil
}

// configuration is an image's description of itself (image-spec, config.md).
type configuration struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Env        []string `json:"Env"`
		WorkingDir string   `json:"WorkingDir"`
		User       string   `json:"User"`
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// other names the platform of an image that cannot run here.
func (c configuration) other() string {
	if (c.OS == "" || c.OS == "linux") && (c.Architecture == "" || c.Architecture == runtime.GOARCH) {
		return ""
	}
	return c.OS + "/" + c.Architecture
}

// choose picks the image for this machine out of an index.
func choose(all []descriptor, name string) (descriptor, error) {
	var offered []string
	var unnamed []descriptor
	for _, d := range all {
		switch {
		case d.Platform == nil:
			unnamed = append(unnamed, d)
		case d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH:
			return d, nil
		case d.Platform.OS != "unknown": // attestations are
			offered = append(offered, d.Platform.OS+"/"+d.Platform.Architecture)
		}
	}
	if len(unnamed) == 1 {
		return unnamed[0], nil
	}
	if len(unnamed) > 1 {
		return descriptor{}, fault.New(fault.Invalid, "cannot use %s: it holds several images without a platform", name)
	}
	return descriptor{}, fault.New(fault.Unsupported, "cannot use %s: it has no image for linux/%s, only for %s",
		name, runtime.GOARCH, strings.Join(offered, ", "))
}

// check refuses values that a layer's descriptor must not have.
func (d descriptor) check() error {
	if len(d.URLs) > 0 || strings.Contains(d.MediaType, "foreign") {
		// Otherwise the image could name any address to fetch from.
		return fault.New(fault.Unsupported, "a layer lies outside of its registry")
	}
	if d.Size < 0 {
		return fault.New(fault.Invalid, "a layer has a negative size")
	}
	return checkDigest(d.Digest)
}

// checkDigest accepts "sha256:" with 64 hexadecimal digits, the one algorithm
// that registries use. It makes a digest safe as a file name.
func checkDigest(digest string) error {
	encoded, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(encoded) != 64 || strings.Trim(encoded, "0123456789abcdef") != "" {
		return fault.New(fault.Unsupported, "%q is not a sha256 digest", digest)
	}
	return nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// read reads a document and verifies it against its descriptor.
func read(ctx context.Context, d descriptor, open func(context.Context, descriptor) (io.ReadCloser, error)) ([]byte, error) {
	if err := checkDigest(d.Digest); err != nil {
		return nil, err
	}
	content, err := open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	data, err := readDocument(content)
	if err != nil {
		return nil, err
	}
	if got := digestOf(data); got != d.Digest {
		return nil, fault.New(fault.Denied, "its content has digest %s, not %s", got, d.Digest)
	}
	return data, nil
}

// readDocument reads no more bytes than a document may have.
func readDocument(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read it")
	}
	if len(data) > maxDocument {
		return nil, fault.New(fault.Unsupported, "it is larger than %d bytes", maxDocument)
	}
	return data, nil
}
