package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The user's git may collect garbage at any time. With --prune=now, or when its
// grace period is over, it removes what no ref names yet: files that a git of
// ours is writing at this moment, and objects that are written but not yet
// named. Nothing is lost by that, since all of it is made from files that stay;
// it must only be made again.

// vanishPatience bounds how long we try again: a collection ends, and between
// two of them there is time enough for a commit.
const vanishPatience = 30 * time.Second

// vanishing matches git's messages when objects or its own temporary files are
// removed (builtin/fast-import.c, index-pack.c, object-file.c, 2.31 to 2.50).
var vanishing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`cannot store (pack|index) file|cannot create keep file|unable to create temporary file: No such file|could not open '[^']*tmp_|[Uu]nable to (open|rename|create)[^\n]*(tmp_|objects/)|` +
		`bad (tree )?object [0-9a-f]{40}|[Bb]ad object|[Nn]ot a valid object|nonexistent object|missing object|could not (read|parse) [0-9a-f]{40}|` +
		`unable to (read|find) [0-9a-f]{40}|[Nn]ot a (commit|tree): [0-9a-f]{40}|does not point to a valid object|failed to (read|stat)[^\n]*tmp_|` +
		`object [0-9a-f]{40} not found|cannot (open|read) pack`)
})

// vanished reports whether a collection under way may have caused an error.
func vanished(err error) bool {
	if err == nil || fault.KindOf(err) == fault.Canceled {
		return false
	}
	var git *Failure
	if errors.As(err, &git) && vanishing().MatchString(git.Stderr) {
		return true
	}
	return vanishing().MatchString(err.Error())
}

// DespiteCollection repeats do for as long as the user's git removes what it makes.
func DespiteCollection(ctx context.Context, do func(again bool) error) error {
	deadline := time.Now().Add(vanishPatience)
	pause := 10 * time.Millisecond
	for again := false; ; again = true {
		err := do(again)
		if !vanished(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// keepAge is how old a .keep without its pack must be to count as abandoned:
// git makes it right before the pack. One beside its pack stays until its git
// fast-import ends, a moment later; staleAge is far beyond that.
const (
	keepAge  = 200 * time.Millisecond
	staleAge = 5 * time.Second
)

// keepText is the text git fast-import writes into its .keep (builtin/fast-import.c).
const keepText = "fast-import"

// DropKeeps removes the .keep left by a git fast-import that failed before or
// after storing its pack: the same pack could never be stored again.
func (r *Repository) DropKeeps() {
	keeps, _ := filepath.Glob(filepath.Join(r.CommonDir, "objects", "pack", "pack-*.keep")) // only a bad pattern fails
	for _, keep := range keeps {
		age := keepAge
		if _, err := os.Stat(strings.TrimSuffix(keep, ".keep") + ".pack"); !errors.Is(err, os.ErrNotExist) {
			if text, err := os.ReadFile(keep); err != nil || string(text) != keepText {
				continue // the human's, who keeps that pack
			}
			age = staleAge
		}
		if info, err := os.Stat(keep); err == nil && time.Since(info.ModTime()) > age {
			_ = os.Remove(keep)
		}
	}
}
