package guest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// lookBox has files of every sort that a tool may or may not see.
func lookBox(t *testing.T) *box {
	b := newBox(t, func(lower string) {
		for name, content := range map[string]string{
			"main.go":                "package main\n\nfunc main() {}\n",
			"pkg/a.go":               "package pkg\n// needle one\n",
			"pkg/deep/b.ts":          "let needle = 2\n",
			"pkg/deep/data.bin":      "needle\x00\x01",
			"build/out.go":           "package needle\n",
			"keep/out.go":            "needle kept\n",
			".env":                   "needle=secret\n",
			".config/settings":       "needle\n",
			"pkg/.hidden/c.go":       "needle\n",
			".git/HEAD":              "ref: refs/heads/main\n",
			".git/config":            "needle\n",
			".git/info/exclude":      "*.tmp\n",
			".gitignore":             "/build/\n*.log\n",
			"pkg/.gitignore":         "generated*\n",
			"pkg/generated.go":       "needle\n",
			"x.log":                  "needle\n",
			"y.tmp":                  "needle\n",
			"long.txt":               strings.Repeat("a", 1000) + "needle" + strings.Repeat("b", 1000) + "\n",
			"lines.txt":              "one\ntwo\nthree",
			"sp ace/naïve \u202e.md": "needle\n",
		} {
			write(t, filepath.Join(lower, name), content, 0o644)
		}
	})
	b.sh(`mkfifo fifo; ln -s main.go link; ln -s .env innocent; ln -s .config cfg; ln -s /etc/hostname outside
		ln -s .git gitlink; ln -s nowhere dangling; mkdir -p loop; ln -s .. loop/up; ln -s /proc/self proc; mkdir sub; ln -s ../.git sub/g`)
	return b
}

func TestView(t *testing.T) {
	b := lookBox(t)
	for _, c := range []struct {
		path                string
		line, offset, limit int64
		want                string
		at                  int64
		kind                fault.Kind
	}{
		{path: "main.go", want: "package main\n\nfunc main() {}\n"},
		{path: "link", want: "package main\n\nfunc main() {}\n"},
		{path: b.workspace + "/lines.txt", line: 2, want: "two\nthree", at: 4},
		{path: "lines.txt", line: 3, limit: 2, want: "th", at: 8},
		{path: "lines.txt", line: 1, want: "one\ntwo\nthree"},
		{path: "lines.txt", line: 9, want: "", at: 13},
		{path: "lines.txt", offset: 5, limit: 2, want: "wo", at: 5},
		{path: "lines.txt", offset: 99, want: "", at: 99},
		{path: "pkg/../lines.txt", line: 3, want: "three", at: 8},
		{path: "loop/up/lines.txt", line: 3, want: "three", at: 8},
		// Hidden, in every spelling.
		{path: ".env", kind: fault.Denied},
		{path: "./.env", kind: fault.Denied},
		{path: b.workspace + "/.env", kind: fault.Denied},
		{path: "innocent", kind: fault.Denied},
		{path: "cfg/settings", kind: fault.Denied},
		{path: ".config/settings", kind: fault.Denied},
		{path: "loop/up/.env", kind: fault.Denied},
		{path: "gitlink/config", kind: fault.Denied},
		{path: ".git/config", kind: fault.Denied},
		{path: ".missing", kind: fault.Denied},
		{path: "pkg/.hidden/c.go", kind: fault.Denied},
		{path: filepath.Join(b.dir, "home/.ssh/id"), kind: fault.Denied},
		// The guest's own files, and those that the kernel makes up.
		{path: "/proc/self/environ", kind: fault.Denied},
		{path: "/proc/1/mem", kind: fault.Denied},
		{path: "proc/environ", kind: fault.Denied},
		{path: "/sys/kernel/notes", kind: fault.Denied},
		{path: "fifo", kind: fault.Invalid},
		{path: "pkg", kind: fault.Invalid},
		{path: "/dev/null", kind: fault.Invalid},
		{path: "gone", kind: fault.NotFound},
		{path: "dangling", kind: fault.NotFound},
		{path: "", kind: fault.Invalid},
		{path: "main.go", offset: -1, kind: fault.Invalid},
		{path: "main.go", line: -1, kind: fault.Invalid},
		{path: "main.go", limit: -1, kind: fault.Invalid},
	} {
		var got bytes.Buffer
		view, err := wire.ShowFile(limit(t), b.open(), wire.ShowRequest{Path: []byte(c.path), Line: c.line, Offset: c.offset, Limit: c.limit}, &got)
		switch {
		case fault.KindOf(err) == c.kind && err != nil && got.Len() == 0:
		case c.kind == fault.Denied && c.path == "/sys/kernel/notes" && err != nil: // not there on every machine
		case fault.KindOf(err) != c.kind || got.String() != c.want || view.Offset != c.at:
			t.Errorf("%q: %q, %+v, %v", c.path, got.String(), view, err)
		}
	}
}

func TestPut(t *testing.T) {
	b := lookBox(t)
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for _, c := range []struct {
		path    string
		expect  string
		visible bool
		created bool
		kind    fault.Kind
	}{
		{path: "new/file.txt", created: true},
		{path: "new/file.txt"},
		{path: ".github/workflows/ci.yml", created: true},
		{path: "link"},
		{path: "lines.txt", expect: hash("one\ntwo\nthree"), visible: true},
		{path: "lines.txt", expect: hash("something else"), kind: fault.Conflict},
		{path: "none.txt", expect: hash("x"), kind: fault.NotFound},
		{path: ".env", visible: true, kind: fault.Denied},
		{path: "innocent", visible: true, kind: fault.Denied},
		{path: "cfg/new", visible: true, kind: fault.Denied},
		{path: ".git/config", kind: fault.Denied},
		{path: ".git", kind: fault.Denied},
		{path: "gitlink/hooks/post-merge", kind: fault.Denied},
		{path: "sub/g/new/deep/file", kind: fault.Denied},
		{path: "sub/.git", kind: fault.Denied},
		{path: "sub/.GIT/config", kind: fault.Denied},
		{path: "sub/git~1/config", kind: fault.Denied},
		{path: "sub/.git./config", kind: fault.Denied},
		{path: "sub/.g\u200cit/config", kind: fault.Denied},
		{path: "sub/.git::$INDEX_ALLOCATION/config", kind: fault.Denied},
		{path: "pkg", kind: fault.Invalid},
		{path: "fifo", kind: fault.Invalid},
		{path: "dangling", kind: fault.Invalid},
		{path: "new/dir/", kind: fault.Invalid},
		{path: "main.go/x", kind: fault.Invalid},
		{path: "/proc/self/comm", kind: fault.Invalid},
	} {
		info, err := wire.PutFile(limit(t), b.open(), wire.PutRequest{
			Path: []byte(c.path), Expect: c.expect, Visible: c.visible, Content: strings.NewReader("content"),
		})
		switch {
		case c.kind != "" && err != nil && (fault.KindOf(err) == c.kind || strings.HasPrefix(c.path, "/")):
		case fault.KindOf(err) != c.kind || info.Created != c.created:
			t.Errorf("%q: %+v, %v", c.path, info, err)
		case err == nil:
			if got := b.sh("cat '" + c.path + "'"); got != "content" {
				t.Errorf("%q holds %q", c.path, got)
			}
		}
	}
	if got := b.sh("cat .git/config; ls .git"); strings.Contains(got, "content") || strings.Contains(got, "hooks") {
		t.Errorf(".git was written: %q", got)
	}
}

func TestFind(t *testing.T) {
	b := lookBox(t)
	for _, c := range []struct {
		path, glob string
		limit      int
		want       string
		stopped    string
		kind       fault.Kind
	}{
		{glob: "*.go", want: "keep/out.go main.go pkg/a.go"},
		{glob: "**/*.{go,ts}", want: "keep/out.go main.go pkg/a.go pkg/deep/b.ts"},
		{glob: "pkg/**", want: "pkg/a.go pkg/deep/b.ts pkg/deep/data.bin"},
		{glob: "./pkg/*.go", want: "pkg/a.go"},
		{path: "pkg", want: "a.go deep/ deep/b.ts deep/data.bin"},
		{path: "pkg", glob: "*.go", limit: 1, want: "a.go"},
		{path: b.workspace + "/pkg", limit: 2, want: "a.go deep/", stopped: "limit"},
		{path: "build", want: "out.go"}, // asked for by name
		{path: "loop", want: "up@"},
		{path: "sp ace", want: "naïve \u202e.md"},
		{glob: "link", want: "link@"},
		{glob: ".env"},
		{glob: "x.log"},
		{glob: "y.tmp"},
		{glob: "{a,b", kind: fault.Invalid},
		{glob: `\{a,b`, want: ""},
		{glob: `\{main.go,b\}`, want: ""},
		{glob: "main.{go", kind: fault.Invalid},
		{glob: "[[:nothing:]]", kind: fault.Invalid},
		{glob: `main.go\`, kind: fault.Invalid},
		{path: ".config", kind: fault.Denied},
		{path: "cfg", kind: fault.Denied},
		{path: ".git", kind: fault.Denied},
		{path: "gitlink", kind: fault.Denied},
		{path: "/proc", kind: fault.Denied},
		{path: "main.go", kind: fault.Invalid},
		{path: "fifo", kind: fault.Invalid},
		{path: "gone", kind: fault.NotFound},
		{glob: strings.Repeat("{a,b}", 10), kind: fault.Invalid},
	} {
		if c.limit == 0 {
			c.limit = 100
		}
		entries, found, err := wire.FindFiles(limit(t), b.open(), wire.FindRequest{Path: []byte(c.path), Glob: []byte(c.glob), Limit: c.limit})
		var names []string
		for _, e := range entries {
			names = append(names, string(e.Path)+map[string]string{"dir": "/", "link": "@", "other": "?"}[e.Type])
		}
		if fault.KindOf(err) != c.kind || strings.Join(names, " ") != c.want || found.Stopped != c.stopped {
			t.Errorf("%q %q: %q, %+v, %v", c.path, c.glob, names, found, err)
		}
	}
}

func TestSearch(t *testing.T) {
	b := lookBox(t)
	all := []string{
		"keep/out.go:1:needle kept",
		"long.txt:1:…" + strings.Repeat("a", 60) + "needle" + strings.Repeat("b", 174) + "…",
		"pkg/a.go:2:// needle one",
		"pkg/deep/b.ts:1:let needle = 2",
		"sp ace/naïve \u202e.md:1:needle",
	}
	for _, c := range []struct {
		path, pattern, glob string
		fold                bool
		want                []string
		kind                fault.Kind
	}{
		{pattern: "needle", want: all},
		{pattern: "NEEDLE"},
		{pattern: "NEEDLE", fold: true, want: all},
		{pattern: "needle", glob: "*.ts", want: all[3:4]},
		{pattern: "needle", path: "pkg", want: []string{"a.go:2:// needle one", "deep/b.ts:1:let needle = 2"}},
		{pattern: "^// n.*one$", path: "pkg/a.go", want: []string{"a.go:2:// needle one"}},
		{pattern: "needle", path: ".env", kind: fault.Denied},
		{pattern: "needle", path: "innocent", kind: fault.Denied},
		{pattern: "needle", path: "cfg", kind: fault.Denied},
		{pattern: "PATH=", path: "/proc", kind: fault.Denied},
		{pattern: "PATH=", path: "proc/environ", kind: fault.Denied},
		{pattern: "(", kind: fault.Invalid},
		{pattern: "", kind: fault.Invalid},
		{pattern: strings.Repeat("x", 5000), kind: fault.Invalid},
		{pattern: "x", path: "fifo", kind: fault.Invalid},
		{pattern: "(a+)+$", path: "long.txt"}, // exponential for a backtracking matcher
	} {
		matches, _, err := wire.SearchFiles(limit(t), b.open(), wire.FindRequest{
			Path: []byte(c.path), Pattern: []byte(c.pattern), Glob: []byte(c.glob), Fold: c.fold, Limit: 100,
		})
		var got []string
		for _, m := range matches {
			got = append(got, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
		}
		if fault.KindOf(err) != c.kind {
			t.Errorf("%q in %q: %v", c.pattern, c.path, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q in %q: %s", c.pattern, c.path, diff)
		}
	}
}

// A tree that was made to hold up a walk.
func TestWalkIsBounded(t *testing.T) {
	b := newBox(t)
	b.sh(`i=0; d=deep; while [ $i -lt 300 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d; touch $d/end
		mkdir many; cd many; seq 1 6000 | xargs touch; truncate -s 1T huge; head -c 300000 /dev/zero | tr '\0' x >line`)
	entries, found, err := wire.FindFiles(limit(t), b.open(), wire.FindRequest{Path: []byte("deep"), Limit: 1000})
	if err != nil || found.Stopped != "size" || len(entries) > 250 {
		t.Errorf("%d entries, %+v, %v", len(entries), found, err)
	}
	entries, found, err = wire.FindFiles(limit(t), b.open(), wire.FindRequest{Path: []byte("many"), Limit: 100_000})
	if err != nil || found.Stopped != "limit" || len(entries) != 5000 {
		t.Errorf("%d entries, %+v, %v", len(entries), found, err)
	}
	matches, found, err := wire.SearchFiles(limit(t), b.open(), wire.FindRequest{Path: []byte("many"), Pattern: []byte("x$|y"), Limit: 10})
	if err != nil || found.Skipped != 1 || len(matches) != 1 {
		t.Errorf("%d matches, %+v, %v", len(matches), found, err)
	}
	if _, err := os.Stat(filepath.Join(b.upper, "many")); err != nil {
		t.Error(err)
	}
}
