package redteam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func secretAttacks() []Attack {
	return []Attack{
		{
			name: "read the host's environment",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				const script = "env; cat /proc/self/environ /proc/1/environ /proc/$PPID/environ 2>/dev/null; true"
				got := w.runWith(ctx, p.dir, []string{"REDTEAM_TOKEN=" + w.secret}, nil, "/bin/sh", "-c", script)
				if p.inside() {
					got = w.runWith(ctx, w.repo, []string{"REDTEAM_TOKEN=" + w.secret}, nil, w.program, "exec", p.box, "--no-commit", "--", "/bin/sh", "-c", script)
				}
				return w.leaked("of a variable", got), wantServed(got)
			},
		},
		{
			name: "use an inherited descriptor",
			try: func(ctx context.Context, w *world, p place) (outcome, error) {
				file := filepath.Join(w.base, "inherited")
				if err := put(file, w.secret+"\n"); err != nil {
					return outcome{}, err
				}
				open, err := os.Open(file)
				if err != nil {
					return outcome{}, err
				}
				const script = "cat <&3; for d in /proc/self/fd/*; do test -f $d && cat $d; done; true"
				argv := []string{"/bin/sh", "-c", script}
				dir := p.dir
				if p.inside() {
					dir, argv = w.repo, append([]string{w.program, "exec", p.box, "--no-commit", "--"}, argv...)
				}
				got := w.runWith(ctx, dir, nil, []*os.File{open}, argv...)
				// A shell that cannot open 3 may end there, which is as well.
				return w.leaked("of an open file", got), errors.Join(open.Close(), wantServed(got))
			},
		},
		{
			name:    "secrets of commands in records",
			control: wide, try: func(ctx context.Context, w *world, p place) (outcome, error) {
				word, argument := w.secret[len("secret-"):], "ghp_" // with the prefix of a well-known service's tokens
				if !p.inside() {
					argument = "word-"
				}
				argument += word
				if got := w.litterbox(ctx, "exec", p.box, "-m", "use "+argument, "--", "/bin/sh", "-c", "date +%N > made; : "+argument); got.code != 0 {
					return outcome{}, errors.New(got.said())
				}
				log := w.run(ctx, w.repo, "git", "log", "--format=%B", p.box)
				shown := w.litterbox(ctx, "log", p.box)
				log.stdout += shown.stdout
				n := strings.Count(log.stdout, word)
				return outcome{escaped: n > 0, seen: fmt.Sprintf("it is shown %d times", n)}, errors.Join(wantServed(log), wantServed(shown))
			},
		},
	}
}

// wantServed recognizes litterbox's own failure, which would show nothing.
func wantServed(got result) error {
	const ownFailure = 125
	if got.code == ownFailure || got.code < 0 {
		return fmt.Errorf("the command did not run: %s", got.said())
	}
	return nil
}
