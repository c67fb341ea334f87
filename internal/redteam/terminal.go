package redteam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func terminalAttacks() []Attack {
	return []Attack{{
		name:  "steer the terminal from a listing",
		fresh: true, try: func(ctx context.Context, w *world, p place) (outcome, error) {
			const script = "echo x > f; git add f; git -c user.name='" + steering + "' -c user.email=a@example.invalid commit -q -m '" + steering + "'"
			if _, err := p.work(ctx, script); err != nil {
				return outcome{}, err
			}
			if !p.inside() {
				got := w.run(ctx, p.dir, "git", "log", "--format=%an %s", "-1")
				return steered(0, got), nil
			}
			got, err := p.work(ctx, "mkfifo 'pipe"+strings.ReplaceAll(steering, "/", "")+"'; echo x > 'g"+strings.ReplaceAll(steering, "/", "")+"'")
			got.stdout = strings.TrimPrefix(got.stdout, begun+"\n")
			n := steered(0, got)
			for _, args := range [][]string{{"log", p.box}, {"list"}, {"status", p.box}, {"diff", p.box, "--stat"}} {
				listing := w.litterbox(ctx, args...)
				err = errors.Join(err, wantServed(listing))
				if one := steered(0, listing); one.escaped {
					n = one
				}
			}
			return n, err
		},
	}}
}

// steering sets a window's title, clears the screen, asks for an answer, opens
// an 8-bit sequence, and turns the reading order around.
const steering = "evil\x1b]0;owned\x07\x1b[2J\x1b[6n\u009b31m\u202e"

// steered counts the sequences that a terminal would obey.
func steered(n int, got result) outcome {
	text := got.stdout + got.stderr
	if !utf8.ValidString(text) {
		n++
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			n++
		}
	}
	return outcome{escaped: n > 0, seen: fmt.Sprintf("%d characters that a terminal obeys", n)}
}
