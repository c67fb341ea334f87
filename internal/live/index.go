package live

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// gitlinks are the paths of submodules in an index; none where it cannot be read.
func gitlinks(index []byte, format string) []string {
	var found []string
	_, err := git.IndexEntries(index, format, func(entry []byte, path string) error {
		if binary.BigEndian.Uint32(entry[git.EntryMode:]) == git.ModeGitlink {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return found
}

// indexDigest is the same for two indexes with the same entries, regardless of
// the times and owners of files in them.
func indexDigest(index []byte, format string) (string, error) {
	sum := sha256.New()
	size := git.NewHash(format).Size()
	_, err := git.IndexEntries(index, format, func(entry []byte, path string) error {
		sum.Write(entry[git.EntryMode : git.EntryMode+4])
		sum.Write(entry[git.EntryOid : git.EntryOid+size])
		flags := binary.BigEndian.Uint16(entry[git.EntryOid+size:])
		fmt.Fprintf(sum, "%d %q\n", flags>>12&3, path) // the stage
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// plainIndex is an index without its extensions and its checksum, which
// [git.WriteIndex] takes: git makes the extensions again, and some of them name
// programs' answers or other files. It fails for a path that git would not have
// put there, or a submodule is new: git on the host runs in each.
func plainIndex(index []byte, format string, known []string) ([]byte, error) {
	last := ""
	extensions, err := git.IndexEntries(index, format, func(entry []byte, path string) error {
		mode := binary.BigEndian.Uint32(entry[git.EntryMode:])
		switch mode {
		case git.ModeFile, git.ModeExecutable, git.ModeLink:
		case git.ModeGitlink:
			if !slices.Contains(known, path) {
				return fmt.Errorf("%q is a repository inside the repository, in which git outside would run by what its configuration says", git.Printable(path))
			}
		default:
			return fmt.Errorf("%q has the mode %o", git.Printable(path), mode)
		}
		if why := git.BadPath(path, mode); why != "" {
			return fmt.Errorf("%q: %s", git.Printable(path), why)
		}
		if path < last {
			return errors.New("its paths are in no order")
		}
		last = path
		return nil
	})
	if err != nil {
		return nil, err
	}
	return index[:len(index)-git.NewHash(format).Size()-len(extensions)], nil
}
