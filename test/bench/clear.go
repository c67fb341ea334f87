package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// clear deletes everything that a run wrote, its sandboxes first: a keeper
// outlives its files.
func (b *bench) clear() error {
	return errors.Join(b.deleteAll(), os.RemoveAll(b.dir))
}

// deleteAll deletes the remaining sandboxes, as after an error.
func (b *bench) deleteAll() error {
	var all []error
	for _, state := range []string{"state", filepath.Join("fresh*", "*")} {
		records, err := filepath.Glob(filepath.Join(b.dir, state, "litterbox", "sandboxes", "*", "sandbox.json"))
		all = append(all, err)
		for _, path := range records {
			var sandbox struct{ Name, Repository string }
			data, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(data, &sandbox)
			}
			if err == nil {
				at := *b
				at.env = append(b.env[:len(b.env):len(b.env)], "XDG_STATE_HOME="+filepath.Join(path, "../../../.."))
				err = at.command(sandbox.Repository, b.litterbox, "delete", "--force", sandbox.Name)
			}
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
