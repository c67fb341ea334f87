package landing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Missing returns the first path that neither the checkout nor one of the commits
// has; "" when each is somewhere.
func Missing(ctx context.Context, r *git.Repository, commits, paths []string) (string, error) {
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	defer root.Close()
	for _, path := range paths {
		if path == "" {
			continue // the top
		}
		// Anything but its absence means that it is there, or cannot be told.
		if _, err := root.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		has, err := inOneOf(ctx, r.Command(), commits, path)
		if err != nil || !has {
			return path, err
		}
	}
	return "", nil
}

// Absent returns the first path behind the -- of git diff's arguments that neither
// commit has; "" when each is in one of them, or cannot be told. dir is where the
// user stands.
func Absent(ctx context.Context, dir, from, to string, args []string) (string, error) {
	at := slices.Index(args, "--")
	if at < 0 {
		return "", nil
	}
	for _, path := range args[at+1:] {
		up := strings.Trim(filepath.ToSlash(filepath.Clean(path)), "./") == ""
		if up || filepath.IsAbs(path) || strings.HasPrefix(path, ":") || strings.ContainsAny(path, `*?[\`) {
			continue // a directory above, or a pattern (gitglossary(7), pathspec)
		}
		command := git.Command{Dir: dir, Plain: true, Tight: git.Bounds{Memory: git.GitMemory}}
		has, err := inOneOf(ctx, command, []string{from, to}, "./"+path)
		if err != nil || !has {
			return path, err
		}
	}
	return "", nil
}

// inOneOf reports whether one of the commits has a path, or that cannot be told:
// the command that follows says what else is wrong. The command's arguments are
// replaced.
func inOneOf(ctx context.Context, command git.Command, commits []string, path string) (bool, error) {
	for _, commit := range commits {
		command.Args = []string{"rev-parse", "--verify", "--quiet", commit + ":" + path}
		_, err := command.Output(ctx)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if git.ExitCode(err) != 1 {
			return true, nil
		}
	}
	return false, nil
}
