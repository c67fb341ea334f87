package frozen

import "bytes"

// Edit replaces a text in a file of a golden's layer. Path begins with the part that
// the file is in.
type Edit struct{ Path, Old, New string }

// Edit gives a sandbox, which has not run, its own version of the files of a golden
// that edits name.
func (b Box) Edit(layer string, edits []Edit) error {
	done := map[string]bool{}
	for _, one := range edits {
		if done[one.Path] {
			continue
		}
		done[one.Path] = true
		err := b.Rewrite(layer, one.Path, func(content []byte) []byte {
			for _, edit := range edits {
				if edit.Path == one.Path {
					content = bytes.ReplaceAll(content, []byte(edit.Old), []byte(edit.New))
				}
			}
			return content
		})
		if err != nil {
			return err
		}
	}
	return nil
}
