package ignore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
)

// names are chosen to meet the special characters of the patterns.
var names = []string{
	"a", "b", "ab", "aab", "A", "Ab", "a b", "a ", "a.o", "a*", "a?b", "[a]", "a]", "-", "a-b", "^", "!", "!a", "#a", `a\`, `\a`,
	"ä", "\xff", "\xe4b", "a\n", "a\r", "\t", "\ufeffa", "1", "x1", ".a", "z", "Z", "[", ":", "a,b", "\va", "**",
}

var dirs = []string{"a", "b", "ab", "a/a", "a/b", "a/b/a", "b/ab", "A"}

// grammar of patterns: special characters far more often than in real files.
var pieces = []string{
	"a", "a", "b", "b", "ab", "A", "Z", "1", ".o", " ", "-", "^", "!", "#", "]", ",", "\xff", "ä", "\t", "\v", "\xe4",
	"/", "/", "/", "*", "*", "*", "**", "**/", "/**", "/**/", "***", "?", "?", `\`, `\*`, `\/`, `\a`, `\A`, `\ `, `\!`, `\#`, `\[`,
	"[", "[ab]", "[!a]", "[^a]", "[a-z]", "[A-Z]", "[z-a]", "[]a]", "[!]a]", "[]-a]", "[a-]", "[-a]", `[\]a]`, `[a\-z]`, `[\a-\z]`,
	"[A]", "[!A]", "[[:alpha:]]", "[[:upper:]]", "[[:lower:]b]", "[![:digit:]]", "[[:space:]]", "[[:punct:]a]", "[[:alnum:]-z]",
	"[[:cntrl:]]", "[[:graph:]]", "[[:print:]]", "[[:xdigit:]]", "[[:blank:]]", "[[:nope:]]", "[[:a]", "[[::]]", "[:]", "[a/b]", "[+-0]",
}

// structure are the few pieces whose order matters most.
var structure = []string{"a", "b", "/", "*", "**", "/**/", "?", "[!b]"}

func pattern(r *rand.Rand) string {
	var b strings.Builder
	pieces := pieces
	if r.IntN(2) == 0 {
		pieces = structure
	}
	if r.IntN(5) == 0 {
		b.WriteByte('!')
	}
	if r.IntN(6) == 0 {
		b.WriteByte('/')
	}
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	switch r.IntN(10) {
	case 0:
		b.WriteByte('/')
	case 1:
		b.WriteString("  ")
	case 2:
		b.WriteByte('\r')
	}
	return b.String()
}

func file(r *rand.Rand, lines int) []byte {
	if r.IntN(3) == 0 {
		return nil
	}
	var b bytes.Buffer
	if r.IntN(12) == 0 {
		b.WriteString("\ufeff")
	}
	for range 1 + r.IntN(lines) {
		b.WriteString(pattern(r))
		b.WriteByte('\n')
	}
	content := b.Bytes()
	if r.IntN(4) == 0 {
		content = content[:len(content)-1]
	}
	return content
}

// repository is a work tree of many plots: directories with the same names
// and each with ignore files of its own, so that one git process judges many.
type repository struct {
	root  string
	plots int
	paths []string // all below a plot
	isDir map[string]bool
}

func newRepository(t *testing.T, plots int) *repository {
	t.Helper()
	repo := &repository{root: t.TempDir(), plots: plots, isDir: map[string]bool{}}
	repo.git(t, nil, "init", "-q")
	for _, d := range append([]string{""}, dirs...) {
		for _, n := range names {
			repo.paths = append(repo.paths, strings.TrimPrefix(d+"/"+n, "/"))
		}
	}
	for _, d := range dirs {
		repo.isDir[d] = true
	}
	for p := range plots {
		for _, d := range dirs {
			if err := os.MkdirAll(repo.at(p, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range repo.paths {
			if repo.isDir[path] {
				continue
			}
			if err := os.WriteFile(repo.at(p, path), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return repo
}

func plot(p int) string { return fmt.Sprintf("p%d", p) }

func (repo *repository) at(p int, path string) string {
	return filepath.Join(repo.root, plot(p)) + "/" + path
}

func (repo *repository) git(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = repo.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "HOME="+repo.root)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 { // 1: nothing is ignored
		t.Fatalf("git %q: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

func (repo *repository) write(t *testing.T, path string, content []byte) {
	t.Helper()
	path = filepath.Join(repo.root, path)
	err := os.Remove(path)
	if content != nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// TestAsGit compares every verdict with git check-ignore over random files.
func TestAsGit(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	repo := newRepository(t, 24)
	var stdin bytes.Buffer
	for p := range repo.plots {
		for _, path := range repo.paths {
			fmt.Fprintf(&stdin, "%s/%s\x00", plot(p), path)
		}
	}
	judged, ignored := 0, 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(7, uint64(round)))
		fold := round%4 == 3
		global, info, top := file(r, 2), file(r, 2), file(r, 2)
		repo.write(t, ".git/global", global)
		repo.write(t, ".git/info/exclude", info)
		repo.write(t, ".gitignore", top)
		contents := map[string][]byte{}
		for p := range repo.plots {
			for _, d := range append([]string{""}, dirs...) {
				content := file(r, 3)
				contents[strings.TrimSuffix(plot(p)+"/"+d, "/")] = content
				repo.write(t, plot(p)+"/"+d+"/.gitignore", content)
			}
		}
		out := repo.git(t, stdin.Bytes(), "-c", "core.excludesFile="+repo.root+"/.git/global", "-c", fmt.Sprintf("core.ignoreCase=%v", fold),
			"check-ignore", "--no-index", "--stdin", "-z", "-v", "-n")

		stacks := map[string]*ignore.Stack{"": ignore.NewStack(fold, global, info).Enter("", top)}
		var enter func(dir string) *ignore.Stack
		enter = func(dir string) *ignore.Stack {
			if s := stacks[dir]; s != nil {
				return s
			}
			stacks[dir] = enter(parent(dir)).Enter(dir, contents[dir])
			return stacks[dir]
		}
		fields := strings.Split(string(out), "\x00") // source, line, pattern, path
		for ; len(fields) >= 4; fields = fields[4:] {
			source, by, path := fields[0], fields[2], fields[3]
			_, inPlot, _ := strings.Cut(path, "/")
			matched, ign := enter(parent(path)).Verdict(path, repo.isDir[inPlot])
			judged++
			if ign {
				ignored++
			}
			if wantMatched, wantIgnored := source != "", source != "" && by[0] != '!'; matched != wantMatched || ign != wantIgnored {
				t.Errorf("round %d: %q is %v, %v; git says %v, %v by %q of %s", round, path, matched, ign, wantMatched, wantIgnored, by, source)
			}
		}
		if t.Failed() {
			break
		}
	}
	if want := rounds * repo.plots * len(repo.paths); judged != want {
		t.Errorf("git judged %d paths of %d", judged, want)
	}
	if ignored < judged/20 || ignored > judged*19/20 {
		t.Errorf("%d of %d ignored: the patterns test nothing", ignored, judged)
	}
}

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }
