package landing

import (
	"fmt"
	"strings"
)

// RiskClasses are all classes in the order of their ranks, with their meanings.
func RiskClasses() []struct {
	Class Class
	Title string
} {
	return []struct {
		Class Class
		Title string
	}{
		{Git, "git runs or obeys it"},
		{Shell, "a shell runs or obeys it when it enters the directory"},
		{Editor, "an editor runs or obeys it when it opens the directory"},
		{Agent, "an agent that is started in the directory obeys it"},
		{Run, "an interpreter or a debugger reads it at its start"},
		{Package, "a package manager runs or obeys it"},
		{Build, "a build tool or a runner of tasks runs it"},
		{Test, "a runner of tests loads it"},
		{Lint, "a linter or formatter loads it, often in the editor"},
		{Container, "an engine of containers or machines runs it"},
		{Submodule, "another repository is fetched"},
		{Outside, "a link leads out of the repository"},
		{Instructions, "an agent takes it as instructions"},
		{CI, "another machine runs it, with its secrets"},
		{Dependencies, "it chooses what is fetched and run later"},
		{Executable, "it is a program"},
		{Link, "a link leads elsewhere in the repository"},
	}
}

// RiskyFilesPage is docs/reference/risky-files.md.
func RiskyFilesPage() string {
	var b strings.Builder
	b.WriteString(`# Files that a merge asks about

<!-- Written by go test ./internal/landing -run RiskyFilesPage -update. -->

` + "`litterbox merge` and `litterbox apply`" + ` name changed files that could run code on your machine, and ask. ` + "`litterbox diff`" + ` names them too; ` + "`--json`" + ` gives each a ` + "`path`, `class`, `reason` and `rank`" + `.

- **What is judged** is the tree that this very merge makes, compared with ` + "`HEAD`" + ` entry by entry: a file that you have renamed counts by its new name, and a file that a link leads to counts by the link's name, too. Where your branch is behind the sandbox's, that is the sandbox's tree. Anything else is rehearsed by your own git, with your flags and configuration, in an empty work tree with objects of its own: strategies and their options, ` + "`--squash`, `--no-commit`, `--no-ff`" + ` and older versions of git (from 2.31) all count as they are. Hooks and filters do not run in a rehearsal; merge drivers of your configuration do.
- **What was approved lands.** The commit is merged by its id, whatever tags or branches have its name. If ` + "`HEAD`" + ` moves while you are asked, the merge is judged again. After git has ended, the result is compared with what was approved: if something in between, such as a commit of yours or a merge driver that answers differently, has brought another of these files, the merge is taken back; for that moment its files were in your checkout.
- **Conflicts** are judged with what the sandbox's side has. When you merge again after you have resolved them, only what you have not yet approved is asked about. Merges that plain ` + "`git merge`" + ` began are judged before they are finished.
- **Deleted files** run nothing and are not named.
- **Spelling** does not count: case, letters that Unicode folds to ASCII, and what macOS and Windows ignore in names.

Where the name says too little, the content is compared with that of before: up to 1 MiB of a file and 64 MiB in all. What is larger counts by its name.

| rank | when it runs |
|---|---|
| 1 | by itself, when git is used or the directory is opened in a shell, an editor or an agent |
| 2 | at the next install, build, test or start |
| 3 | when an agent reads it |
| 4 | on other machines, or by what it chooses to fetch |
| 5 | when it is called |

A pattern without a slash is a file name at any depth; one that ends in a slash is a directory at any depth, with everything in it; ` + "`*`" + ` stands for anything within a name.
`)
	rules := riskRules()
	for _, class := range RiskClasses() {
		fmt.Fprintf(&b, "\n## %s: %s\n\nRank %d.", class.Class, class.Title, class.Class.Rank())
		if note := kindNote(class.Class); note != "" {
			b.WriteString(" " + note)
		}
		b.WriteString("\n")
		header := "\n| tool | files | why |\n|---|---|---|\n"
		for _, rule := range rules {
			if rule.class != class.Class {
				continue
			}
			var names []string
			for _, p := range rule.patterns() {
				names = append(names, "`"+p+"`")
			}
			why := rule.reason
			if note := lookNote(rule.look); note != "" {
				why += "; " + note
			}
			fmt.Fprintf(&b, "%s| %s | %s | %s |\n", header, rule.tool, strings.Join(names, " "), why)
			header = ""
		}
	}
	return b.String()
}

// kindNote says what belongs to a class under any name.
func kindNote(c Class) string {
	switch c {
	case Git:
		return "Also: any file that your git configuration names, as a hook, a filter or another program, and files of a bare repository, which git obeys in its directory."
	case Submodule:
		return "Any submodule that is new or names another commit."
	case Outside:
		return "Any symbolic link, new or changed, whose target is absolute, above the repository, or in `.git`."
	case Executable:
		return "Any file that becomes executable."
	case Link:
		return "Any other symbolic link that is new or changed."
	}
	return ""
}

// lookNote says which part of a file counts.
func lookNote(l look) string {
	switch l {
	case lookPackageJSON:
		return "what only describes the package does not count, and dependencies are of the class dependencies"
	case lookPyproject:
		return "metadata and settings of formatters do not count, and dependencies are of the class dependencies"
	case lookCargo:
		return "metadata and profiles do not count, and dependencies are of the class dependencies; `build =`, `links`, build dependencies and procedural macros are named"
	case lookMakefile:
		return "comments do not count"
	case lookGo:
		return "only new lines with `//go:generate` or `#cgo`"
	case lookPlugins:
		return "only with `plugins`, or another `extends`"
	}
	return ""
}
