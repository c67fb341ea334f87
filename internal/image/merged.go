package image

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Has reports whether a path leads to a file or directory in the merged view of
// layers, topmost first. Links are followed within the image. It only looks, and
// opens nothing.
func Has(layers []string, name string) bool {
	const maxLinks = 40 // as the kernel, path_resolution(7)
	rest := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	visible, at := layers, "/"
	for links := 0; len(rest) > 0; {
		part := rest[0]
		below, info, link := step(visible, path.Join(at, part))
		switch {
		case part == "":
			return true
		case info == nil:
			return false
		case link != "":
			if links++; links > maxLinks {
				return false
			}
			if !path.IsAbs(link) {
				link = path.Join(at, link)
			}
			rest = append(strings.Split(strings.Trim(path.Clean("/"+link), "/"), "/"), rest[1:]...)
			visible, at = layers, "/"
			continue
		case len(rest) > 1 && !info.IsDir():
			return false
		}
		visible, at, rest = below, path.Join(at, part), rest[1:]
	}
	return true
}

// step finds a name in the layers that show through at its directory, and gives
// those that show through below it.
func step(visible []string, name string) (below []string, first fs.FileInfo, link string) {
	for _, layer := range visible {
		file := filepath.Join(layer, name)
		info, err := os.Lstat(file)
		if err != nil {
			continue
		}
		if first != nil && !info.IsDir() || hides(info) {
			break
		}
		if first == nil {
			first = info
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(file); err != nil || link == "" {
				return nil, nil, ""
			}
			break
		}
		below = append(below, layer)
		if !info.IsDir() || isOpaque(file) {
			break
		}
	}
	return below, first, link
}

func hides(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}
