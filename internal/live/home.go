package live

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// HomeGone reports whether the home of an environment was removed.
func HomeGone(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "home"))
	return errors.Is(err, fs.ErrNotExist)
}

// FurnishHome makes the home of an environment, before it first starts: git inside
// has the author of commits, and starts no work on the whole repository by itself.
func FurnishHome(dir, author, email string, owner git.Owner) error {
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return cannot(err)
	}
	text := "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
	if author != "" {
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")
		text = "[user]\n\tname = \"" + quote.Replace(author) + "\"\n\temail = \"" + quote.Replace(email) + "\"\n" + text
	}
	file := filepath.Join(home, ".gitconfig")
	err := git.ReplaceFile(file, []byte(text))
	if err == nil {
		err = owner.Give(file)
	}
	return cannot(err)
}
