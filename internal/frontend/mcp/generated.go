package mcp

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// generatedNames are directories and files that tools generate and that projects
// keep out of git: those that the usual .gitignore of their language names.
func generatedNames() []string {
	return []string{
		"node_modules/", ".next/", ".nuxt/", ".parcel-cache/", ".turbo/", "coverage/", ".nyc_output/", // JavaScript
		"__pycache__/", "*.pyc", "*.pyo", ".venv/", "venv/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".tox/", "*.egg-info/", // Python
		"target/", ".gradle/", "*.class", "*.jar", // Rust, Java
		"*.o", "*.a", "*.so", "*.dylib", "*.dll", "*.exe", "*.test", "*.prof", // compilers
		"*.zip", "*.tar", "*.tar.gz", "*.tgz", "*.tar.xz", "*.7z", // archives
		"*.log", "*.sqlite", "*.sqlite3", "*.db", ".DS_Store", "core", "*.swp", // leftovers
	}
}

// picture reports whether a binary file is of a kind that people keep in git.
func picture(file string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".svg", ".woff", ".woff2", ".ttf", ".pdf"}, strings.ToLower(filepath.Ext(file)))
}

// generated reports whether a path looks like something that a tool generated.
func generated(file string) bool { return generatedBy(file) != "" }

// generatedBy gives the name in generatedNames that a path matches.
func generatedBy(file string) string {
	parts := strings.Split(file, "/")
	for _, name := range generatedNames() {
		dir, isDir := strings.CutSuffix(name, "/")
		if !isDir {
			if ok, _ := filepath.Match(name, parts[len(parts)-1]); ok { // the patterns are well formed
				return name
			}
			continue
		}
		if slices.ContainsFunc(parts[:len(parts)-1], func(part string) bool {
			ok, _ := filepath.Match(dir, part)
			return ok
		}) {
			return name
		}
	}
	return ""
}

// aboutLarge names the large files of a milestone with their sizes.
func aboutLarge(large []engine.LargeFile) []string {
	if len(large) == 0 {
		return nil
	}
	var named []string
	for _, f := range large[:min(len(large), 20)] {
		named = append(named, printable(f.Path)+" ("+size(f.Size)+")")
	}
	return []string{"large for git, which keeps every version for ever: " + several(named, len(large))}
}

// size is a number of bytes as people say it.
func size(bytes int64) string {
	if bytes >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// aboutGenerated warns of generated files in a milestone, and proposes lines for
// .gitignore: each line once in a session, for a model that has decided to keep
// such files.
func (c *call) aboutGenerated(files []string) []string {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	var named, names []string
	for _, file := range files {
		name := generatedBy(file)
		if name == "" {
			name = file // a binary file of no known kind
		}
		if c.session.proposed[c.hold.ID+"/"+name] {
			continue
		}
		named = append(named, file)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		c.session.proposed[c.hold.ID+"/"+name] = true
	}
	slices.Sort(names)
	return []string{
		"this looks generated: " + several(named, len(named)) + "; if so, write these lines into .gitignore, take the files out with git rm -r --cached, and make the milestone again: " +
			strings.Join(names, " "),
	}
}
