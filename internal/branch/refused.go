package branch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// refusedFile names, in a quarantine, the commit that was refused last, and on
// further lines why. It is read after each command: checking the same commit
// again would take as long as before.
const refusedFile = "refused"

// Refused reports why the history up to want was refused before; nil if it was not.
func (q Quarantine) Refused(want string) error {
	content, err := os.ReadFile(filepath.Join(q.Dir, refusedFile))
	if err != nil {
		return nil // it is checked again
	}
	commit, why, ok := strings.Cut(strings.TrimSuffix(string(content), "\n"), "\n")
	if !ok || commit != want {
		return nil
	}
	return fault.New(fault.Denied, "%s", why)
}

// packs lists the files of the packs in the quarantine.
func (in intake) packs() []string {
	names, _ := filepath.Glob(filepath.Join(git.GlobEscape(in.q.Dir), "objects", "pack", "*")) // only a bad pattern fails
	return names
}

// sweep removes the remains of a killed git.
func (in intake) sweep() {
	for _, name := range in.packs() {
		if strings.HasPrefix(filepath.Base(name), "tmp_") {
			_ = os.Remove(name) // it only costs space
		}
	}
}

// refuse drops the packs that came since had was listed, and remembers a
// refusal that would recur.
func (in intake) refuse(want string, had []string, why error) error {
	if fault.KindOf(why) != fault.Denied {
		return why
	}
	var problems []error
	for _, name := range in.packs() {
		if !slices.Contains(had, name) {
			problems = append(problems, os.Remove(name))
		}
	}
	path := filepath.Join(in.q.Dir, refusedFile)
	err := os.WriteFile(path, []byte(want+"\n"+why.Error()+"\n"), 0o644)
	if err = errors.Join(append(problems, err)...); err != nil {
		return errors.Join(why, fault.Wrap(fault.Unavailable, err, "cannot clear the quarantine"))
	}
	return why
}
