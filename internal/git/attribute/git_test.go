package attribute_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
)

type repository string

func newRepository(t *testing.T) repository {
	t.Helper()
	repo := repository(t.TempDir())
	repo.git(t, nil, "init", "-q")
	return repo
}

// run gives git's output, and its exit code or an error of the test.
func (repo repository) run(t *testing.T, stdin []byte, args ...string) ([]byte, int) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = string(repo)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "LC_ALL=C", "HOME="+string(repo))
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out, cmd.ProcessState.ExitCode()
}

func (repo repository) git(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	out, code := repo.run(t, stdin, args...)
	if code != 0 {
		t.Fatalf("git %q exits %d", args, code)
	}
	return out
}

func (repo repository) write(t *testing.T, path string, content []byte) {
	t.Helper()
	path = filepath.Join(string(repo), path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// attributesLine writes a line that is usually valid and often matches.
func attributesLine(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(r, "", "", "", "", " ", "\t"))
	pattern := pick(r, "*", "a", "b", "*.c", "/a", "a*", "**/a", "d/*", "d/**", "[ab]", "[!a]*", "?", "A", `\a`, `\!a`, "!a", "#a", "a/", "d", `"`,
		`"a b"`, `"a\tb"`, `"\303\244"`, `"\a`, `"a`, `"\\a"`, `"a\"`, `"\101"`, `"\4"`, `"d/a b"`, "\xff", "ä", "x\x00y", "[attr]")
	if r.IntN(6) == 0 {
		pattern = "[attr]" + pick(r, "m", "n", "o", "binary", "text", "eol", "", "-m", "m$")
	} else if r.IntN(40) == 0 {
		pattern = `"[attr]` + pick(r, " m", "n x", "", " ") + `"`
	}
	b.WriteString(pattern)
	for range r.IntN(5) {
		b.WriteString(pick(r, " ", " ", "\t", "  "))
		b.WriteString(pick(r, "", "", "", "-", "!"))
		b.WriteString(pick(r, "text", "text", "crlf", "eol", "ident", "filter", "working-tree-encoding", "m", "n", "o", "binary", "diff"))
		b.WriteString(pick(r, "", "", "", "=auto", "=lf", "=crlf", "=input", "=", "=UTF-16", "=a=b", "=\xff"))
	}
	if r.IntN(30) == 0 {
		b.WriteString(pick(r, " -", " =x", " a$", " --x", " !", " "+strings.Repeat("y", 2020), " x\x00 text"))
	}
	b.WriteString(pick(r, "", "", " ", "\r", "\t\r"))
	return b.String()
}

func attributesFile(r *rand.Rand, lines int) []byte {
	var b strings.Builder
	b.WriteString(pick(r, "", "", "", "", "", "\ufeff"))
	for range r.IntN(lines + 1) {
		b.WriteString(attributesLine(r))
		b.WriteByte('\n')
	}
	return []byte(strings.TrimSuffix(b.String(), pick(r, "", "\n")))
}

// TestLookupAsGit compares with git check-attr over random files.
func TestLookupAsGit(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	repo := newRepository(t)
	const plots = 12
	var stdin bytes.Buffer
	paths := 0
	for p := range plots {
		for _, dir := range []string{"", "d/", "d/d/"} {
			for _, name := range []string{"a", "b", "c", "A", "ab", "a b", "a\tb", "x.c", "ä", "\xff", "!a", "#a", `"a`, `"`, `\a`, "t", "x", "\a"} {
				fmt.Fprintf(&stdin, "p%d/%s%s\x00", p, dir, name)
				paths++
			}
		}
	}
	names := []string{"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"}
	judged, found := 0, 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(3, uint64(round)))
		global, info, top := attributesFile(r, 4), attributesFile(r, 2), attributesFile(r, 5)
		repo.write(t, ".git/global", global)
		repo.write(t, ".git/info/attributes", info)
		repo.write(t, ".gitattributes", top)
		var options []attribute.Option
		if round%5 == 4 {
			options = append(options, attribute.IgnoreCase)
		}
		stacks := map[string]*attribute.Stack{"": attribute.NewStack(global, info, options...).Enter("", top)}
		for p := range plots {
			above := ""
			for _, dir := range []string{"", "/d", "/d/d"} {
				path := fmt.Sprintf("p%d%s", p, dir)
				content := attributesFile(r, 4)
				repo.write(t, path+"/.gitattributes", content)
				stacks[path] = stacks[above].Enter(path, content)
				above = path
			}
		}
		out := repo.git(t, stdin.Bytes(), append([]string{"-c", "core.attributesFile=.git/global", "-c", fmt.Sprintf("core.ignoreCase=%v", options != nil),
			"check-attr", "-z", "--stdin"}, names...)...)
		fields := strings.Split(string(out), "\x00") // path, name, value, for each of names
		for ; len(fields) > 3*len(names); fields = fields[3*len(names):] {
			said := map[string]string{}
			for i, name := range names {
				said[name] = fields[3*i+2]
			}
			path := fields[0]
			want := meaning(said)
			got := stacks[path[:strings.LastIndexByte(path, '/')]].Lookup(path)
			judged++
			if got != (attribute.Attributes{}) {
				found++
			}
			if got != want {
				t.Errorf("round %d: %q is %+v; git says %+v", round, path, got, want)
			}
		}
		if t.Failed() {
			break
		}
	}
	if judged != rounds*paths {
		t.Errorf("git judged %d paths of %d", judged, rounds*paths)
	}
	if found < judged/5 {
		t.Errorf("%d of %d paths have attributes: the files test nothing", found, judged)
	}
}

// meaning reads the words of check-attr as convert.c does.
func meaning(said map[string]string) attribute.Attributes {
	text := func(name string) attribute.Text {
		switch v := said[name]; v {
		case "set", "unset", "auto", "input":
			return attribute.Text(v)
		}
		return attribute.TextUnspecified
	}
	value := func(name string) string {
		switch v := said[name]; v {
		case "set", "unset", "unspecified":
			return ""
		default:
			return v
		}
	}
	a := attribute.Attributes{
		Text: text("text"), CRLF: text("crlf"), Ident: said["ident"] == "set",
		Filter: value("filter"), WorkingTreeEncoding: value("working-tree-encoding"),
	}
	if v := said["eol"]; v == "lf" || v == "crlf" {
		a.EOL = v
	}
	if said["working-tree-encoding"] == "set" {
		a.WorkingTreeEncoding = "true"
	}
	return a
}
