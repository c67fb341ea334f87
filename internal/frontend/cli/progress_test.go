package cli_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
)

func TestProgress(t *testing.T) {
	const erase = "\r\x1b[K"
	for _, c := range []struct {
		name string
		bar  bool
		work func(p cli.Progress)
		want string
	}{
		{"fast work shows nothing", true, func(p cli.Progress) {
			p.Update("checking out", 0, 10)
			time.Sleep(400 * time.Millisecond)
			p.Update("checking out", 10, 10)
			time.Sleep(10 * time.Second)
		}, ""},
		{"a bar after half a second, gone at the end", true, func(p cli.Progress) {
			p.Update("tree", 0, 10)
			time.Sleep(600 * time.Millisecond)
			p.Update("tree", 5, 10) // 100 ms after the first drawing
			p.Update("tree", 6, 10) // too soon
			p.Update("tree", 10, 10)
		}, erase + "tree [........................] 0% (0 o" + erase + "tree [############............] 50% (5 " + erase},
		{"silent work shows that it lives", true, func(p cli.Progress) {
			p.Update("running the set-up command", 0, 0)
			time.Sleep(time.Second)
			p.Clear()
			p.Clear()
		}, erase + "running the set-up command ..." + erase},
		{"other output starts the delay again", true, func(p cli.Progress) {
			p.Update("tree", 1, 0)
			p.Clear()
			p.Update("tree", 2, 0)
			time.Sleep(400 * time.Millisecond)
			p.Clear()
			time.Sleep(time.Second)
		}, ""},
		{"plain lines are rare", false, func(p cli.Progress) {
			p.Update("tree", 0, 100)
			time.Sleep(50 * time.Millisecond) // no update at the moment of a line
			for i := range 100 {
				p.Update("tree", i, 100)
				time.Sleep(100 * time.Millisecond)
			}
			p.Update("tree", 100, 100)
		}, "tree: 29 of 100\ntree: 59 of 100\ntree: 89 of 100\n"},
		{"what cannot be counted shows for how long, around other work", true, func(p cli.Progress) {
			p.Update("stopping box", 0, engine.Uncounted)
			time.Sleep(700 * time.Millisecond)
			p.Update("deleting box", 0, engine.Uncounted)
			p.Update("deleting box", 1, engine.Uncounted)
			time.Sleep(1800 * time.Millisecond)
			p.Update("stopping box", 1, engine.Uncounted)
			time.Sleep(10 * time.Second)
		}, erase + "stopping box ..." + erase + erase + "stopping box ..." + erase + "stopping box (2s) ..." + erase},
		{"nobody reads that elsewhere", false, func(p cli.Progress) {
			p.Update("stopping box", 0, engine.Uncounted)
			time.Sleep(10 * time.Second)
			p.Update("stopping box", 1, engine.Uncounted)
		}, ""},
		{"labels are not trusted", false, func(p cli.Progress) {
			p.Update("tree\x1b]0;owned\x07", 0, 0)
			time.Sleep(4 * time.Second)
			p.Clear()
		}, "tree ...\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w bytes.Buffer
				p := cli.NewProgress(&w, c.bar)
				c.work(p)
				p.Clear()
				synctest.Wait()
				if got := w.String(); got != c.want {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
			})
		})
	}
}
