package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	got, err := config.Load(top)
	if diff := cmp.Diff(config.Config{}, got); err != nil || diff != "" {
		t.Fatalf("without a file: %v\n%s", err, diff)
	}
	const content = "durability = 'strict'\n"
	file := filepath.Join(top, config.RepositoryFile)
	write(t, file, content)
	got, err = config.Load(top)
	want := config.Config{Durability: config.Strict, Set: []string{"durability"}, File: file, Hash: config.Hash([]byte(content))}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, file string)
		kind    fault.Kind
		text    string
	}{
		"a symbolic link": {
			func(t *testing.T, file string) {
				target := filepath.Join(filepath.Dir(file), "target")
				write(t, target, "durability = 'strict'")
				if err := os.Symlink(target, file); err != nil {
					t.Fatal(err)
				}
			}, fault.Denied, "it is a symbolic link",
		},
		"a dangling link": {
			func(t *testing.T, file string) {
				if err := os.Symlink("nothing", file); err != nil {
					t.Fatal(err)
				}
			}, fault.Denied, "it is a symbolic link",
		},
		"a directory": {
			func(t *testing.T, file string) {
				if err := os.Mkdir(file, 0o755); err != nil {
					t.Fatal(err)
				}
			}, fault.Denied, "it is not a regular file",
		},
		"a pipe that nobody writes to": {
			func(t *testing.T, file string) {
				if err := syscall.Mkfifo(file, 0o644); err != nil {
					t.Fatal(err)
				}
			}, fault.Denied, "it is not a regular file",
		},
		"a huge file": {
			func(t *testing.T, file string) { write(t, file, strings.Repeat("#", config.MaxSize+1)) },
			fault.Invalid, "it is larger than 131072 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			file := filepath.Join(top, config.RepositoryFile)
			c.prepare(t, file)
			_, err := config.Load(top)
			if err == nil || err.Error() != "cannot read "+file+": "+c.text || fault.KindOf(err) != c.kind {
				t.Errorf("%v (%s)", err, fault.KindOf(err))
			}
		})
	}
}

func TestLargestFileIsRead(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write(t, filepath.Join(top, config.RepositoryFile), strings.Repeat("#", config.MaxSize))
	if _, err := config.Load(top); err != nil {
		t.Error(err)
	}
}

func TestErrorsDoNotPrintEscapesOfThePath(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "a\x1b[31mb")
	write(t, filepath.Join(top, config.RepositoryFile), "x = 1")
	_, err := config.Load(top)
	if err == nil {
		t.Fatal("it was accepted")
	}
	checkError(t, err, 1)
}

func TestLoadUser(t *testing.T) {
	for name, c := range map[string]struct{ variable, file string }{
		"without XDG_CONFIG_HOME":       {"", "home/.config/litterbox/config.toml"},
		"with a relative one":           {"relative", "home/.config/litterbox/config.toml"},
		"with XDG_CONFIG_HOME":          {"xdg", "xdg/litterbox/config.toml"},
		"with XDG_CONFIG_HOME and home": {"xdg", "xdg/litterbox/config.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			who := &caller.Caller{Home: filepath.Join(dir, "home"), Env: []string{"XDG_CONFIG_HOME=" + c.variable}}
			if c.variable == "xdg" {
				who.Env = []string{"XDG_CONFIG_HOME=" + filepath.Join(dir, "xdg")}
			}
			if strings.HasSuffix(name, "and home") {
				write(t, filepath.Join(dir, "home/.config/litterbox/config.toml"), "this is not read")
			}
			got, err := config.LoadUser(who)
			if diff := cmp.Diff(config.Config{}, got); err != nil || diff != "" {
				t.Fatalf("without a file: %v\n%s", err, diff)
			}
			// As dotfile managers do it: a link to where it is kept.
			file, kept := filepath.Join(dir, c.file), filepath.Join(dir, "kept.toml")
			write(t, kept, "git.branch-prefix = 'me/'")
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(kept, file); err != nil {
				t.Fatal(err)
			}
			got, err = config.LoadUser(who)
			if err != nil || got.File != file || got.Git.BranchPrefix != "me/" {
				t.Errorf("%+v, %v; want %s", got, err, file)
			}
		})
	}
}
