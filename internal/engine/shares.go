package engine

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
)

// shares lists the directories of mounts.read-write that the sandbox gets besides
// those mounted already.
func (e *Engine) shares(p *place, caller *caller.Caller, mounted []Mount) []Mount {
	var found []Mount
	for _, path := range ofHome(p.config.Mounts.ReadWrite, caller.Home) {
		if e.unshareable(p, caller, path, slices.Concat(mounted, found)) == "" {
			found = append(found, Mount{Path: path, Why: "mounts.read-write", Writable: true})
		}
	}
	return found
}

// unshareable says why a directory cannot be shared; "" when it can. The driver
// looks for links again at the time of the mount.
func (e *Engine) unshareable(p *place, caller *caller.Caller, path string, mounted []Mount) string {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return "it is not a directory"
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return "a part of its path is a symbolic link"
	}
	own := []string{e.Store.Shared()}
	if file, err := config.UserFile(caller); err == nil {
		own = append(own, filepath.Dir(file))
	}
	for _, dir := range own {
		if overlaps(dir, path) || overlaps(realPath(dir), path) {
			return "it holds files of litterbox"
		}
	}
	for _, dir := range []string{p.record.Repository, p.record.GitDir} {
		if overlaps(dir, path) {
			return "it holds the repository, or lies in it"
		}
	}
	if home := caller.Home; home != "" && (within(home, path) || within(realPath(home), path)) {
		return "it is the whole home directory"
	}
	if at := slices.IndexFunc(mounted, func(m Mount) bool { return overlaps(m.Path, path) }); at >= 0 {
		return mounted[at].Path + " is mounted already"
	}
	return ""
}

// realPath is a path without its links; the path itself where it is not there.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// noteRefusedShares says which directories are not shared.
func (e *Engine) noteRefusedShares(p *place, caller *caller.Caller) {
	shared := e.mounts(p, caller, homeInside(caller, p.record.Repository), caller.Get("PATH"))
	for _, path := range ofHome(p.config.Mounts.ReadWrite, caller.Home) {
		if slices.ContainsFunc(shared, func(m Mount) bool { return m.Writable && m.Path == path }) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(shared), func(m Mount) bool { return m.Path == path })
		p.note("mounts.read-write: " + path + " is not shared: " + e.unshareable(p, caller, path, others))
	}
}

// noteUnshared says that no directory is shared.
func (p *place) noteUnshared(why string) {
	for _, path := range p.config.Mounts.ReadWrite {
		p.note("mounts.read-write: " + path + " is not shared: " + why)
	}
}
