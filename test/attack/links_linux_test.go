package attack_test

import (
	"os"
	"path/filepath"
	"strings"
)

// leadThroughLinks leaves links to the host's files wherever the host reads or
// writes by name.
func leadThroughLinks(w *world) {
	private := filepath.Join(w.Home, "private")
	w.Put(filepath.Join(private, "key"), w.Secret)
	w.sandbox()
	w.InsideShell(box, "ln -s "+private+"/key key; ln -s "+private+" dir; rm -rf src; ln -s "+private+" src; ln -sf "+private+"/key README; "+
		"ln -s ../../../../../../.."+private+"/key dots; ln -s /etc/passwd passwd; ln -s "+w.Canary+"/made out")
	for _, name := range []string{"key", "dir/key", "src/key", "README", "dots", "out"} {
		w.wantNoSecret("litterbox read "+name, w.Litterbox("read", box, name))
		copied := filepath.Join(w.Dir, "copied")
		w.Litterbox("cp", box+":"+name, copied)
		w.wantNoSecret("litterbox cp "+name, w.Shell("cat "+copied+" 2>/dev/null; rm -rf "+copied))
	}
	w.Litterbox("write", box, "out")
	w.Litterbox("write", box, "dir/written")
	w.wantNoSecret("litterbox diff", w.Litterbox("diff", box))
	w.wantNoSecret("the branch", w.Shell("git log -p --all; git grep secret- "+box))
	if got := w.Git("ls-tree", box, "key", "src", "README"); strings.Count(got, "120000 blob") != 3 {
		w.Errorf("links are not committed as links:\n%s", got)
	}
	w.wantUntouched("work on links")
	if _, err := os.Lstat(filepath.Join(private, "written")); err == nil {
		w.Error("a file was written through a link on the host")
	}
}

// dotted is an absolute path as one from the repository upwards.
func dotted(path string) string { return "../../../../../../../../../../../.." + path }
