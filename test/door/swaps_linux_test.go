package door_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// swapping makes the name "way" a directory and a link out of the sandbox in turns,
// until the file "end" is there.
const swapping = `mkdir dir; echo inside >dir/secret; ln -s "$1" out
setsid sh -c 'touch swaps; until test -e end; do
	mv -T dir way; mv -T way dir; mv -T out way; mv -T way out; done; touch ended' >/dev/null 2>&1 </dev/null &
until test -e swaps; do sleep 0.01; done`

// TestSwappedLinks exchanges a directory for a link while the server opens paths in
// it. What comes is of the sandbox or nothing, and nothing is written outside.
func TestSwappedLinks(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	const host, rounds = "fix.litterbox", 300
	d.Put(filepath.Join(d.Home, "secret"), "only for the host\n")
	d.Put(filepath.Join(d.Dir, "mine"), "mine\n")
	d.works(d.Inside("fix", "sh", "-c", swapping, "sh", d.Home))
	var batch strings.Builder
	for i := range rounds {
		fmt.Fprintf(&batch, "-get way/secret got/%d\n-put mine way/planted\n-rename way/secret way/moved\n-rename way/moved way/secret\n-ls way\n", i)
	}
	d.Put(filepath.Join(d.Dir, "got", "keep"), "")
	d.Put(filepath.Join(d.Dir, "batch"), batch.String())
	listed := d.works(d.client("sftp", "-q", "-b", "batch", host))
	d.works(d.Inside("fix", "sh", "-c", "touch end; until test -e ended; do sleep 0.01; done"))

	got, err := filepath.Glob(filepath.Join(d.Dir, "got", "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, name := range got {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(content) == "inside\n" {
			whole++
		} else if len(content) > 0 {
			t.Errorf("%s holds %q", name, content)
		}
	}
	// The control: the name was the directory at times, and at others not.
	if whole == 0 || whole == rounds {
		t.Errorf("%d of %d files came: nothing was swapped while the server looked", whole, rounds)
	}
	if !strings.Contains(listed, "way/secret") && !strings.Contains(listed, "way/planted") {
		t.Errorf("no listing of the directory inside:\n%s", listed)
	}
	entries, err := os.ReadDir(d.Home)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "planted" || entry.Name() == "moved" {
			t.Errorf("%s was written outside", entry.Name())
		}
	}
	if content, err := os.ReadFile(filepath.Join(d.Home, "secret")); err != nil || string(content) != "only for the host\n" {
		t.Errorf("the host's secret is now %q, %v", content, err)
	}
}
