package redteam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func wayOutAttacks() []Attack {
	return []Attack{
		{
			name: "lead the host through links",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				key, err := w.privateKey()
				if err != nil {
					return outcome{}, err
				}
				if _, err := p.work(ctx, "ln -sfn "+key+" link; ln -sfn "+filepath.Dir(key)+" linked"); err != nil {
					return outcome{}, err
				}
				if !p.inside() {
					got, err := p.shell(ctx, "cat link linked/key")
					return w.leaked("behind links", got), err
				}
				out := filepath.Join(w.base, "copied")
				err = os.MkdirAll(out, 0o755)
				got := w.litterbox(ctx, "read", p.box, "link")
				for _, args := range [][]string{{"read", p.box, "linked/key"}, {"cp", p.box + ":linked/key", out + "/1"}, {"cp", p.box + ":link", out + "/2"}, {"diff", p.box}} {
					got.stdout += w.litterbox(ctx, args...).stdout
				}
				for _, name := range []string{"1", "2"} {
					// A copied link is a link: its text is shown, not its target.
					if info, statErr := os.Lstat(filepath.Join(out, name)); statErr == nil && info.Mode().IsRegular() {
						content, readErr := os.ReadFile(filepath.Join(out, name))
						got.stdout += string(content)
						err = errors.Join(err, readErr)
					}
				}
				return w.leaked("behind links", got), err
			},
		},
		{
			name: "name paths with dots",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				key, err := w.privateKey()
				if err != nil {
					return outcome{}, err
				}
				dotted := strings.Repeat("../", 40) + strings.TrimPrefix(key, "/")
				if !p.inside() {
					got, err := p.shell(ctx, "cat "+dotted+"; echo x > "+strings.Replace(dotted, key[1:], w.canary[1:]+"/written", 1))
					names, touchedErr := w.touched()
					shown := w.leaked("by dots", got)
					shown.escaped = shown.escaped && len(names) > 0
					return shown, errors.Join(err, touchedErr)
				}
				var got result
				for _, path := range []string{dotted, key, "/proc/1/root" + key} {
					got.stdout += w.litterbox(ctx, "read", p.box, path).stdout
				}
				for _, path := range []string{strings.Replace(dotted, key[1:], w.canary[1:]+"/written", 1), w.canary + "/written"} {
					w.litterbox(ctx, "write", p.box, path)
				}
				names, err := w.touched()
				shown := w.leaked("by dots", got)
				shown.escaped = shown.escaped || len(names) > 0
				shown.seen += fmt.Sprintf("; %d files are written", len(names))
				return shown, err
			},
		},
		{
			name:  "hold up the host with a FIFO",
			fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				// Nothing ever writes to it: a reader waits, however long one looks.
				if !p.inside() {
					got, err := p.shell(ctx, "mkfifo fifo; timeout 1 cat fifo; echo $?")
					return outcome{escaped: strings.TrimSpace(got.stdout) == "124", seen: "a reader waits until it is ended"}, err
				}
				if _, err := p.work(ctx, "rm -f README; mkfifo fifo README; echo x > beside"); err != nil {
					return outcome{}, err
				}
				for _, args := range [][]string{{"status", p.box}, {"diff", p.box}, {"read", p.box, "beside"}, {"exec", p.box, "--", "true"}, {"stop", p.box}} {
					if got := w.litterbox(ctx, args...); got.code != 0 {
						return outcome{}, fmt.Errorf("litterbox %s: %s", args[0], got.said())
					}
				}
				got := w.run(ctx, w.repo, "git", "show", p.box+":beside")
				if got.stdout != "x\n" {
					return outcome{escaped: true, seen: "the file beside it is not committed"}, nil
				}
				return outcome{seen: "every command ends, and the file beside it is committed"}, nil
			},
		},
		{
			name:  "commit files in a .git of another spelling",
			fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				const script = `for d in .GIT .Git git~1 "$(printf '.g\342\200\214it')" sub/.GIT; do mkdir -p "$d/hooks"; echo x > "$d/hooks/post-checkout"; done; echo x > beside`
				if !p.inside() {
					got, err := p.shell(ctx, script+"; git -c core.protectHFS=false -c core.protectNTFS=false -c core.ignoreCase=false add -A 2>/dev/null;"+
						` blob=$(echo x | git hash-object -w --stdin); git -c core.protectHFS=false -c core.protectNTFS=false update-index --add --cacheinfo 100755,$blob,git~1/hooks/post-merge; git ls-files -z | tr '\0' '\n'`)
					return spelled(got), err
				}
				if _, err := p.work(ctx, script); err != nil {
					return outcome{}, err
				}
				got := w.run(ctx, w.repo, "git", "ls-tree", "-rz", "--name-only", p.box)
				got.stdout = strings.ReplaceAll(got.stdout, "\x00", "\n")
				if !strings.Contains(got.stdout, "beside\n") {
					return outcome{}, fmt.Errorf("the files beside them are not committed: %s", got.said())
				}
				return spelled(got), nil
			},
		},
	}
}

// privateKey returns a file of the host, not of the repository.
func (w *world) privateKey() (string, error) {
	key := filepath.Join(w.home, "private/key")
	return key, put(key, w.secret+"\n")
}

// spelled counts the paths that some file system takes for .git.
func spelled(got result) outcome {
	n := 0
	for path := range strings.Lines(got.stdout) {
		for part := range strings.SplitSeq(strings.TrimSpace(path), "/") {
			part = strings.ReplaceAll(part, "\u200c", "") // HFS+ ignores it
			if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
				n++
			}
		}
	}
	return outcome{escaped: n > 0, seen: fmt.Sprintf("%d such paths are committed", n)}
}
