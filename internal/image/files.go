package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// largestCopied bounds a file that CopyFiles copies.
const largestCopied = 1 << 20

// CopyFiles copies regular files of the merged view of layers, topmost first, to
// below a directory: those that are named, and those directly in directories that
// are named. A deletion in an upper layer counts only where a whiteout replaces
// the file itself; links lead nowhere out of a layer.
func CopyFiles(layers []string, to string, names ...string) error {
	seen := map[string]bool{}
	for _, layer := range layers {
		if err := copyFrom(layer, to, names, seen); err != nil {
			return err
		}
	}
	return nil
}

func copyFrom(layer, to string, names []string, seen map[string]bool) error {
	root, err := os.OpenRoot(layer)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		name = strings.Trim(name, "/")
		files := []string{name}
		if info, err := root.Stat(name); err == nil && info.IsDir() {
			entries, err := fs.ReadDir(root.FS(), name)
			if err != nil {
				return err
			}
			files = nil
			for _, entry := range entries {
				files = append(files, path.Join(name, entry.Name()))
			}
		}
		for _, file := range files {
			info, err := root.Lstat(file)
			if errors.Is(err, fs.ErrNotExist) || seen[file] {
				continue
			}
			if err != nil {
				return err
			}
			if seen[file] = true; !info.Mode().IsRegular() {
				continue
			}
			if err := copyFile(root, file, path.Join(to, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(root *os.Root, file, to string) error {
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, largestCopied))
	if err == nil {
		err = os.MkdirAll(path.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	return err
}
