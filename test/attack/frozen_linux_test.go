package attack_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// planted is what a sandbox prepares for the moment when its files become a
// layer that others stand on.
const planted = `
cp /bin/true suid; chmod 6755 suid
mkdir -p out; ln -s %s out/away; ln -s ../../../../../../../../../..%s out/up
mknod device c 1 3; mknod block b 7 0; mknod hidden c 0 0; mknod src/main.txt.gone c 0 0
python3 - <<'X'
import os
for path in ("src", "out", "suid"):
    for name in ("user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.opaque", "security.capability"):
        try: os.setxattr(path, name, b"y")
        except OSError: pass
X
mkdir .wh.src; : >.wh..wh..opq
true`

// layerAttacks plant files that would mean something in a layer of an overlay.
func layerAttacks() []attack {
	return []attack{{
		Name: "plant what a frozen layer would mean",
		Control: func(w *world) {
			w.Shell("cd " + w.Dir + "; mkdir layer; cp /bin/true layer/suid; chmod 6755 layer/suid; cp -a layer copy")
			if bad := meaning(w, filepath.Join(w.Dir, "copy")); len(bad) == 0 {
				w.Fatal("cp -a brings no set-id bit, or it is not seen")
			}
		},
		Run: func(w *world) {
			w.sandbox()
			w.InsideShell(box, strings.ReplaceAll(planted, "%s", w.Canary))
			w.Must("snapshot", box, "running")
			w.Must("fork", box, "one")
			if bad := meaning(w, filepath.Join(w.State, "litterbox", "frozen")); len(bad) > 0 {
				w.Errorf("layers that were copied hold %q", bad)
			}
			w.Must("stop", box)
			w.Must("snapshot", box, "stopped")
			w.Must("fork", box, "two")
			w.Must("restore", box, "running")
			for _, name := range []string{box, "one", "two"} {
				got := w.Inside(name, "/bin/sh", "-c", "ls src; test -c device || test -b block || echo no device; echo x >out/away/new; echo x >out/up/new; ./suid && grep -c NoNewPrivs:.1 /proc/self/status")
				if !strings.Contains(got.Stdout, "main.txt\n") || !strings.Contains(got.Stdout, "no device\n") || !strings.HasSuffix(got.Stdout, "1\n") {
					w.Errorf("%s: %s%s", name, got.Stdout, got.Stderr)
				}
			}
			w.wantUntouched("a snapshot")
		},
	}, goldenAttack()}
}

// goldenAttack makes a build plant the same, in an ignored directory and in HOME.
func goldenAttack() attack {
	return attack{
		Name: "plant what a golden would mean",
		Control: func(w *world) {
			w.Shell("mkdir " + w.Dir + "/planted; cd " + w.Dir + "/planted; mkdir src; " + strings.ReplaceAll(planted, "%s", w.Canary))
			if bad := meaning(w, filepath.Join(w.Dir, "planted")); len(bad) == 0 {
				w.Fatal("the script plants nothing, or it is not seen")
			}
		},
		Run: func(w *world) {
			plant := "for dir in ignored ~/ignored; do (mkdir -p $dir/src; cd $dir; echo hello >src/main.txt; " + strings.ReplaceAll(planted, "%s", w.Canary) + "); done\nmknod README c 0 0; true\n"
			w.Put(filepath.Join(w.Repo, "plant.sh"), plant)
			w.Put(filepath.Join(w.Repo, ".gitignore"), "/ignored/\n")
			w.Put(filepath.Join(w.Repo, ".litterbox.toml"), "[hooks]\npost_sync = [\"sh\", \"plant.sh\"]\n")
			w.Git("add", "-A")
			w.Git("commit", "--quiet", "-m", "plant")
			w.Must("trust")
			w.Must("build")
			store := filepath.Join(w.State, "litterbox", "frozen")
			devices := w.walk(store, func(_ string, info fs.FileInfo) bool {
				return info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0
			})
			if bad := slices.Concat(devices, meaning(w, store)); len(bad) > 0 {
				w.Errorf("the golden holds %q", bad)
			}
			if found := w.walk(store, func(path string, _ fs.FileInfo) bool { return strings.HasSuffix(path, "ignored/src/main.txt") }); len(found) != 2 {
				w.Fatalf("what the build wrote is not in the golden: %q", found)
			}
			w.sandbox()
			got := w.Inside(box, "/bin/sh", "-c", "cat README ignored/src/main.txt ~/ignored/src/main.txt; for dir in ignored ~/ignored; do test -e $dir/device && echo a device; echo x >$dir/out/away/new; echo x >$dir/out/up/new; $dir/suid && grep -c NoNewPrivs:.1 /proc/self/status; done")
			if got.Stdout != "hello\nhello\nhello\n1\n1\n" {
				w.Errorf("%s%s", got.Stdout, got.Stderr)
			}
			w.wantUntouched("a golden")
		},
	}
}

// meaning lists the files of a tree that would be more than files: devices but
// the kernel's own whiteouts, set-id bits, and attributes that change a view.
func meaning(w *world, top string) []string {
	devices := w.walk(top, func(_ string, info fs.FileInfo) bool {
		st, ok := info.Sys().(*syscall.Stat_t)
		return ok && info.Mode()&fs.ModeDevice != 0 && (info.Mode()&fs.ModeCharDevice == 0 || st.Rdev != 0)
	})
	return slices.Concat(devices, w.privileged(top), w.attributed(top))
}
