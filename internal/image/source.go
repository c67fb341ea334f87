package image

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Kind is where a base comes from.
type Kind string

// The kinds of container.base-image.
const (
	Host      Kind = "host"           // the host's own userland
	Directory Kind = "directory"      // a root file system as files
	Layout    Kind = "oci"            // an OCI image layout
	Archive   Kind = "docker-archive" // what `docker save` writes
	Registry  Kind = "registry"
)

// Source is a parsed container.base-image. The zero value is none.
type Source struct {
	Kind Kind
	Path string // Directory, Layout, Archive; for the latter two perhaps with ":NAME"
	// Of an image in a registry: host, with port where it has one, name
	// within it, and a tag or a digest ("sha256:…", which wins).
	Host, Name, Tag, Digest string
}

// Parse reads container.base-image as people type it. It looks at no file.
func Parse(typed string) (Source, error) {
	refuse := func(why, hint string) (Source, error) {
		return Source{}, fault.New(fault.Invalid, "cannot use the base image %q: %s", typed, why).WithHint("%s", hint)
	}
	if strings.ContainsFunc(typed, unicode.IsControl) {
		return refuse("it holds a control character", `base-image = "docker.io/library/debian:12"`)
	}
	scheme, rest, _ := strings.Cut(typed, ":")
	switch {
	case typed == "":
		return refuse("it is empty", `base-image = "host"`)
	case typed == string(Host):
		return Source{Kind: Host}, nil
	case scheme == string(Layout) || scheme == string(Archive):
		if rest == "" {
			return refuse("it names no path", `base-image = "`+scheme+`:/path/to/it"`)
		}
		return Source{Kind: Kind(scheme), Path: rest}, nil
	case scheme == "docker-daemon" || scheme == "containers-storage":
		return Source{}, fault.New(fault.Unsupported, "cannot use the base image %q: litterbox asks no container engine", typed).
			WithHint("docker save -o image.tar %s, then base-image = \"docker-archive:image.tar\"", strings.TrimLeft(rest, "/"))
	case scheme == "oci-archive":
		return Source{}, fault.New(fault.Unsupported, "cannot use the base image %q: unpack the archive first", typed).
			WithHint("mkdir image && tar -xf %s -C image, then base-image = \"oci:image\"", rest)
	case strings.Contains(typed, "://"):
		_, name, _ := strings.Cut(typed, "://")
		return refuse("a registry's image is named without a scheme", `base-image = "`+name+`"`)
	case isPath(typed):
		return Source{Kind: Directory, Path: typed}, nil
	}
	s, why := parseReference(typed)
	if why != "" {
		return refuse(why, `base-image = "docker.io/library/debian:12", or "./`+typed+`" for a directory of the repository`)
	}
	return s, nil
}

// isPath tells a directory from a reference: a text that begins like a path is
// one.
func isPath(typed string) bool {
	for _, prefix := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(typed, prefix) {
			return true
		}
	}
	return typed == "." || typed == ".." || typed == "~"
}

// String is the source in its full form, which Parse reads again.
func (s Source) String() string {
	switch s.Kind {
	case Host:
		return string(Host)
	case Directory:
		return s.Path
	case Layout, Archive:
		return string(s.Kind) + ":" + s.Path
	}
	if s.Digest != "" {
		return s.Host + "/" + s.Name + "@" + s.Digest
	}
	return s.Host + "/" + s.Name + ":" + s.Tag
}

// Locate makes the path of a source absolute. A relative one is meant from the top of the
// repository and must stay in it: a link there came with a clone. ~ stands for home.
func (s Source) Locate(top, home string) (Source, error) {
	if s.Kind != Directory && s.Kind != Layout && s.Kind != Archive {
		return s, nil
	}
	if below, ok := strings.CutPrefix(s.Path, "~/"); ok {
		if home == "" {
			return s, fault.New(fault.Invalid, "cannot find the base image %q: HOME is not set", s.String()).WithHint("export HOME=/home/you")
		}
		s.Path = filepath.Join(home, below)
	}
	if filepath.IsAbs(s.Path) {
		s.Path = filepath.Clean(s.Path)
		return s, nil
	}
	path := filepath.Join(top, s.Path)
	file, _ := s.split(path)
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return s, fault.Wrap(fault.NotFound, missing(err), "cannot find the base image %q in %q", s.String(), top)
	}
	inside, err := filepath.EvalSymlinks(top)
	if err != nil {
		return s, fault.Wrap(fault.NotFound, err, "cannot find the repository %q", top)
	}
	if real != inside && !strings.HasPrefix(real, inside+"/") {
		return s, fault.New(fault.Denied, "cannot use the base image %q: it leads out of the repository, to %q", s.String(), real).
			WithHint("name it by its absolute path: %s", real)
	}
	s.Path = path
	return s, nil
}

// split removes ":NAME" from the path of a layout or an archive. A path that
// exists as given has none.
func (s Source) split(path string) (file, name string) {
	at := strings.LastIndexByte(path, ':')
	if s.Kind == Directory || at < 0 {
		return path, ""
	}
	if s.Kind == Archive {
		// NAME is a reference and has a colon of its own: file.tar:debian:12.
		for i := range path {
			if path[i] == ':' && exists(path[:i]) && !exists(path) {
				return path[:i], path[i+1:]
			}
		}
	}
	if exists(path) || strings.Contains(path[at:], "/") {
		return path, ""
	}
	return path[:at], path[at+1:]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// missing drops the path that a PathError repeats.
func missing(err error) error {
	if os.IsNotExist(err) {
		return fault.New(fault.NotFound, "there is no such file or directory")
	}
	return err
}

// CheckDirectory refuses a directory that cannot be a root file system, or that
// would show paths that a sandbox must not see. hidden are paths that must not be
// in it: the human's home, the state directory.
func CheckDirectory(path string, hidden ...string) error {
	refuse := func(kind fault.Kind, why string) error {
		return fault.New(kind, "cannot use the base image %q: %s", path, why).
			WithHint(`container.base-image = "host" is this machine's own userland`)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fault.Wrap(fault.NotFound, missing(err), "cannot use the base image %q", path)
	}
	info, err := os.Stat(real)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot use the base image %q", path)
	}
	if !info.IsDir() {
		return fault.New(fault.Invalid, "cannot use the base image %q: it is not a directory", path).
			WithHint(`for an archive that docker save wrote: base-image = "docker-archive:%s"`, path)
	}
	for _, secret := range hidden {
		if secret, err = filepath.EvalSymlinks(secret); err != nil {
			continue // nothing there to be seen
		}
		if real == "/" || secret == real || strings.HasPrefix(secret, real+"/") {
			return refuse(fault.Denied, "all of "+secret+" would be visible in it")
		}
	}
	if exists(filepath.Join(real, "oci-layout")) {
		return fault.New(fault.Invalid, "cannot use the base image %q: it is an OCI layout", path).
			WithHint(`base-image = "oci:%s"`, path)
	}
	for _, dir := range []string{"bin", "usr", "sbin", "nix"} {
		if _, err := os.Lstat(filepath.Join(real, dir)); err == nil {
			return nil
		}
	}
	return refuse(fault.Invalid, "it holds no root file system (neither bin nor usr)")
}
