package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
)

// sources writes both files and loads them.
func sources(t *testing.T, user, repo string) config.Sources {
	t.Helper()
	home, top := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".config", "litterbox", "config.toml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{own: user, filepath.Join(top, config.RepositoryFile): repo} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := config.LoadSources(&caller.Caller{Home: home}, top)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The shown settings, read as a file, are the ones that count.
func TestSettingsReadBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user, repo string
		trusted    bool
	}{
		"both, trusted":         {userFile, repositoryFile, true},
		"both, untrusted":       {userFile, repositoryFile, false},
		"the user's only":       {userFile, "", false},
		"the repository's only": {"", repositoryFile, true},
		"only untrusted":        {"", repositoryFile, false},
		"strange strings":       {`container.env = { A = "a\"\\\u001b[31m\n", B_C = "é😀" }`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sources(t, c.user, c.repo)
			want, withheld := config.Merge(s.User(), s.Repository(), c.trusted)
			settings, err := s.Settings(want)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, set := range settings {
				if set.Value != "" {
					lines = append(lines, set.Key+" = "+set.Value)
				}
			}
			text := strings.Join(lines, "\n") + "\n"
			if strings.ContainsRune(text, '\x1b') {
				t.Error("an escape sequence is shown")
			}
			got, err := config.Parse("", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			got.File, got.Hash = want.File, want.Hash
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what counts, and what is shown (- +):\n%s\nwithheld: %q\n%s", diff, withheld, text)
			}
		})
	}
}

func TestSettingsHaveOrigins(t *testing.T) {
	t.Parallel()
	s := sources(t, "network.allow = [\"a.example\"]\nlimits.pids = 500\n", "network.allow = [\"b.example\"]\nlimits.pids = 100\ndurability = \"strict\"\n")
	for trusted, want := range map[bool]string{
		false: `network.allow=["a.example"] from ["a.example"] true, ["b.example"] false; durability="strict" from "strict" true; limits.pids=100 from 500 false, 100 true; `,
		true:  `network.allow=["a.example", "b.example"] from ["a.example"] true, ["b.example"] true; durability="strict" from "strict" true; limits.pids=100 from 500 false, 100 true; `,
	} {
		counts, _ := config.Merge(s.User(), s.Repository(), trusted)
		settings, err := s.Settings(counts)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, set := range settings {
			got.WriteString(set.Key + "=" + set.Value + " from ")
			for n, origin := range set.Origins {
				if n > 0 {
					got.WriteString(", ")
				}
				got.WriteString(origin.Value)
				got.WriteString(map[bool]string{true: " true", false: " false"}[origin.Counts])
			}
			got.WriteString("; ")
		}
		if got.String() != want {
			t.Errorf("trusted %v:\n got %s\nwant %s", trusted, got.String(), want)
		}
	}
}
