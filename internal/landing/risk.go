package landing

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Change is one path that differs between two trees.
type Change struct {
	Path    string
	OldMode uint32 // 0: added
	NewMode uint32 // 0: deleted
	OldOid  string
	NewOid  string
	Status  byte // A, D, M or T, git-diff-tree(1); U: a conflict, with the merged side
}

// Class says what runs a changed path, or what else it can do.
type Class string

// The classes; rank puts them in order.
const (
	Git          Class = "git"    // git runs or obeys it
	Shell        Class = "shell"  // a shell that enters the directory
	Editor       Class = "editor" // an editor that opens it
	Agent        Class = "agent"  // an agent that is started in it
	Run          Class = "run"    // an interpreter or debugger, at its start
	Package      Class = "package"
	Build        Class = "build"
	Test         Class = "test"
	Lint         Class = "lint"
	Container    Class = "container"
	Submodule    Class = "submodule"
	Outside      Class = "outside" // a link that leads out of the repository, or into its git directory
	Instructions Class = "instructions"
	CI           Class = "ci"
	Dependencies Class = "dependencies"
	Executable   Class = "executable"
	Link         Class = "link"
)

// Rank is how soon a class runs: 1 by itself, when git is used or the directory
// is opened; 2 at the next install, build, test or start; 3 when an agent reads
// it; 4 on other machines, or through what it selects; 5 when it is called.
func (c Class) Rank() int {
	switch c {
	case Git, Shell, Editor, Agent:
		return 1
	case Run, Package, Build, Test, Lint, Container, Submodule, Outside:
		return 2
	case Instructions:
		return 3
	case CI, Dependencies:
		return 4
	default:
		return 5
	}
}

// Risk is a changed path that could run code on the host after a merge, or
// make something else run it.
type Risk struct {
	Path   string
	Class  Class
	Reason string
	change Change
}

// Same reports whether the other risk has the same content at the same path.
func (r Risk) Same(other Risk) bool {
	return r.Path == other.Path && r.Class == other.Class && r.change.NewMode == other.change.NewMode && r.change.NewOid == other.change.NewOid
}

// riskRule names files that run something, and when.
//
// To add a rule: 1. one line in the table of its kind, with words of the tool's
// own documentation, 2. one line in the table of the test, 3. the page:
// go test ./internal/landing -run RiskyFilesPage -update.
type riskRule struct {
	class  Class
	tool   string // as people call it
	paths  string // patterns, see risknames.go
	reason string
	look   look   // "": the name is enough
	hooks  bool   // managers of git's hooks read it, so it runs in any hook
	calls  string // programs that read it, besides those of the tool's name
}

func riskRules() []riskRule {
	return slices.Concat(selfRules(), toolRules(), elsewhereRules())
}

// Risky names the risks by paths and modes alone, the most urgent first. A path
// whose content would need a look counts. Deletions run nothing.
func Risky(changes []Change) []Risk {
	return judgeChanges(changes, newMatcher(riskRules()), nil, nil)
}

// risks names the risks of changes, the most urgent first. git gives access to
// their objects, and listing lists the entries of the tree that they make.
func risks(ctx context.Context, r *git.Repository, git func(...string) git.Command, changes []Change, listing ...string) ([]Risk, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	entries, err := listTree(ctx, git(listing...))
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list what the merge makes")
	}
	m := newMatcher(riskRules())
	contents := newContents(git)
	if err := contents.fetch(ctx, wanted(changes, m, entries.links)); err != nil {
		return nil, err
	}
	config, err := namedByConfig(ctx, r, changes)
	if err != nil {
		return nil, err
	}
	risks := judgeChanges(changes, m, entries, contents)
	return byRank(append(config, risks...)), nil
}

// judgeChanges judges each change by its own name, by the names of links to it, and
// by its kind. Without contents, rules that would look count.
func judgeChanges(changes []Change, m *matcher, entries *treeEntries, contents *contents) []Risk {
	aliases := entries.aliases(contents)
	var risks []Risk
	for _, c := range changes {
		if c.NewMode == 0 {
			continue
		}
		found, ok := m.judge(c, c.Path, contents)
		for _, alias := range aliases.of(c.Path) {
			if other, risky := m.judge(c, alias, contents); risky && (!ok || other.Class.Rank() < found.Class.Rank()) {
				other.Reason = git.Printable(alias) + " leads here: " + other.Reason
				found, ok = other, true
			}
		}
		own, is := byKind(c, contents, entries)
		if is && (!ok || own.Class.Rank() < found.Class.Rank()) {
			found, ok = own, true
		}
		if ok {
			found.Path, found.change = c.Path, c
			risks = append(risks, found)
		}
	}
	return byRank(risks)
}

// byRank sorts by rank, class and path, and keeps the first of each path.
func byRank(risks []Risk) []Risk {
	slices.SortStableFunc(risks, func(a, b Risk) int {
		return cmp.Or(cmp.Compare(a.Class.Rank(), b.Class.Rank()), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Path, b.Path))
	})
	seen := make(map[string]bool, len(risks))
	return slices.DeleteFunc(risks, func(r Risk) bool {
		again := seen[r.Path]
		seen[r.Path] = true
		return again
	})
}

// byKind judges a change by its kind, under any name.
func byKind(c Change, contents *contents, entries *treeEntries) (Risk, bool) {
	switch {
	case c.NewMode == git.ModeLink:
		return linkRisk(c, contents)
	case c.NewMode == git.ModeGitlink:
		return Risk{Class: Submodule, Reason: "a submodule: git fetches what it names"}, true
	case entries.bare(c.Path):
		return Risk{Class: Git, Reason: "part of a bare repository: git obeys its configuration in that directory"}, true
	case c.NewMode == git.ModeExecutable && c.OldMode != git.ModeExecutable:
		return Risk{Class: Executable, Reason: "a new executable"}, true
	}
	return Risk{}, false
}

// linkRisk judges a link that is new or has a new target.
func linkRisk(c Change, contents *contents) (Risk, bool) {
	verb := "a new symbolic link"
	if c.OldMode == git.ModeLink {
		verb = "a changed symbolic link"
	}
	target, known := contents.get(c.NewOid)
	if !known {
		return Risk{Class: Link, Reason: verb}, true
	}
	reason := verb + " to " + git.Printable(string(target))
	to := string(target)
	joined := path.Join(path.Dir(c.Path), to)
	inGit := slices.ContainsFunc(strings.Split(foldName(joined), "/"), func(s string) bool { return s == ".git" })
	switch {
	case path.IsAbs(to), joined == "..", strings.HasPrefix(joined, "../"):
		return Risk{Class: Outside, Reason: reason + ", outside of the repository"}, true
	case inGit:
		return Risk{Class: Outside, Reason: reason + ", in the git directory"}, true
	}
	return Risk{Class: Link, Reason: reason}, true
}

// wanted lists the objects that a judgement must read.
func wanted(changes []Change, m *matcher, links map[string]string) []string {
	var oids []string
	for _, c := range changes {
		if c.NewMode == git.ModeLink {
			oids = append(oids, c.NewOid)
		} else if c.NewMode != 0 && c.NewMode != git.ModeGitlink && m.looks(c.Path) {
			oids = append(oids, c.NewOid)
			if c.OldMode != 0 && c.OldMode != git.ModeGitlink {
				oids = append(oids, c.OldOid)
			}
		}
	}
	for _, oid := range links {
		oids = append(oids, oid)
	}
	return oids
}

// ChangedAgainst lists what a sandbox changed: the changes of to since the
// merge base with from, and the risks among them.
func ChangedAgainst(ctx context.Context, r *git.Repository, from, to string) ([]Change, []Risk, error) {
	if err := git.CheckOids(from, to); err != nil {
		return nil, nil, err
	}
	base, err := r.Command("merge-base", from, to).Line(ctx)
	if git.ExitCode(err) == 1 {
		base, err = r.EmptyTree(), nil // unrelated: everything is new
	}
	if err != nil {
		return nil, nil, fault.Wrap("", err, "cannot find where %s and %s parted", from, to)
	}
	changes, err := changes(ctx, r, base, to)
	if err != nil {
		return nil, nil, err
	}
	risks, err := risks(ctx, r, r.Command, changes, "ls-tree", "-r", "-z", to)
	return changes, risks, err
}
