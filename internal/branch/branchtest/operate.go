package branchtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// names returns paths that have gone wrong somewhere: spaces, line breaks, dashes,
// quotes, bytes that are not UTF-8, names that look like options or patterns.
func names() []string {
	return []string{
		"a", "b", "c.o", "-rf", "--all", "with space", "new\nline", "tab\t", `quo"te`, `back\slash`, "\xff\xfe",
		"\x01\x7f", "é", "*", "[a]", "!bang", "#hash", " lead", "trail ", "build", "keep.o", "tmp.log", ".hidden", "@{u}",
		"HEAD", "refs", "...", "git~2", ".gitfoo", "日本",
	}
}

// operate changes the current directory at random, the same way for one seed.
func operate(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	all := names()
	pick := func() string {
		path := all[rng.IntN(len(all))]
		for rng.IntN(3) == 0 {
			path = filepath.Join([]string{"src", "src/lib", "docs", "tools", "build", "x", "y", "deep/er"}[rng.IntN(8)], path)
		}
		return path
	}
	existing := func() string {
		var found []string
		_ = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
			if path == ".git" {
				return filepath.SkipDir
			}
			if path != "." {
				found = append(found, path)
			}
			return nil
		})
		if len(found) == 0 {
			return "none"
		}
		return found[rng.IntN(len(found))]
	}
	for range 12 {
		// Errors are fine: whatever the state becomes, both sides see the same.
		switch rng.IntN(14) {
		case 0, 1, 2:
			path := pick()
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			_ = os.WriteFile(path, []byte(fmt.Sprintf("%d\n", rng.IntN(5))), 0o644)
		case 3:
			path := existing()
			if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteString("more\n")
				_ = f.Close()
			}
		case 4:
			_ = os.RemoveAll(existing())
		case 5: // a directory in the place of whatever was there
			path := existing()
			_ = os.RemoveAll(path)
			_ = os.MkdirAll(path, 0o755)
			_ = os.WriteFile(filepath.Join(path, "inner"), []byte("x"), 0o644)
		case 6: // a file in the place of whatever was there
			path := existing()
			_ = os.RemoveAll(path)
			_ = os.WriteFile(path, []byte("flat"), 0o644)
		case 7:
			_ = os.Chmod(existing(), 0o755)
		case 8:
			path := pick()
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			_ = os.Remove(path)
			_ = os.Symlink(existing(), path)
		case 9:
			_ = os.Rename(existing(), pick())
		case 10:
			lines := []string{"*.o", "!keep.o", "build/", "/x", "docs", "*.log", "src/lib/*", "!src/lib/a.c", "[ab]", `\#hash`, "deep/**"}
			dir := []string{".", "src", "docs", "x"}[rng.IntN(4)]
			_ = os.MkdirAll(dir, 0o755)
			text := ""
			for range rng.IntN(4) {
				text += lines[rng.IntN(len(lines))] + "\n"
			}
			_ = os.Remove(filepath.Join(dir, ".gitignore"))
			_ = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o644)
		case 11: // touched, not changed
			path := existing()
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				content, _ := os.ReadFile(path)
				_ = os.WriteFile(path, content, 0o644)
			}
		case 12:
			_ = os.Link(existing(), pick())
		case 13:
			_ = os.MkdirAll(filepath.Join("empty", pick()), 0o755)
		}
	}
}
