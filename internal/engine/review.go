package engine

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// needsTrust ends the note about each thing that a repository's configuration
// asks for and does not get.
const needsTrust = "has no effect until you run: litterbox trust"

// review has the user decide, before anything is made, about what the repository's
// configuration asks for and does not get without trust. Without the image that it
// asks for, no sandbox would be as intended.
func (e *Engine) review(ctx context.Context, repo *git.Repository, found settings, request CreateRequest) (settings, error) {
	withheld := func(note string) bool { return strings.HasSuffix(note, needsTrust) }
	untrusted := Untrusted{Path: filepath.Join(repo.Top, config.RepositoryFile)}
	for _, note := range found.notes {
		if withheld(note) {
			untrusted.Asks = append(untrusted.Asks, note)
		}
	}
	if len(untrusted.Asks) == 0 {
		return found, nil
	}
	if slices.Contains(found.withheld, "container.base-image") {
		untrusted.Image = found.image
	}
	if request.Review != nil {
		trust, err := request.Review(ctx, untrusted)
		if err != nil {
			return found, err
		}
		if trust {
			if _, err := e.trust(ctx, request.Dir, found.hash); err != nil {
				return found, err
			}
			return e.settings(ctx, repo.Top, repo.CommonDir)
		}
		found.notes, found.said = slices.DeleteFunc(found.notes, withheld), untrusted.Asks
	}
	if untrusted.Image != "" {
		return found, fault.New(fault.Denied, "cannot create sandbox %q: %s asks for the image %q, which %s",
			request.Name, config.RepositoryFile, untrusted.Image, needsTrust).WithHint("litterbox trust")
	}
	return found, nil
}
