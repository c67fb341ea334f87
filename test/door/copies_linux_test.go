package door_test

import (
	"os"
	"strings"
	"testing"
)

// tree makes files that copiers get wrong.
const tree = `set -e
mkdir -p t/empty "t/odd name"
printf '1\n' > 't/odd name/-r --delete'
printf '2\n' > "t/odd name/nl
x"
printf '3\n' > 't/odd name/*?[a]\$(id);\"'
printf '4\n' > "$(printf 't/\303\244')"
ln -s 'odd name' t/dir-link
ln -s /nowhere/at/all t/dangling
printf 'run\n' > t/script; chmod 750 t/script
printf 'r\n' > t/readonly; chmod 440 t/readonly
head -c 3000000 /dev/zero > t/large
truncate -s 5M t/hole
touch -d '2001-02-03 04:05:06.789 UTC' t/script
touch -h -d '2002-02-03 04:05:06 UTC' t/dangling t/dir-link # else they have the time at which they are made
chmod 700 t/empty
`

// state describes a tree, with times and modes.
const state = `cd "$1" && find . -printf '%P|%y|%m|%T@|%l|%s\n' | sed 's/|d|\([0-7]*\)|[^|]*|\(.*\)|[0-9]*$/|d|\1|\2/' | LC_ALL=C sort; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum`

// TestCopies copies a tree in and out again, and compares it with rsync's copy
// on this machine alone.
func TestCopies(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	d.works(d.Command(d.Dir, "sh", "-c", tree))
	remote := "ssh -F " + d.config
	d.works(d.Command(d.Dir, "rsync", "-a", "t/", "native/"))
	d.works(d.Command(d.Dir, "rsync", "-a", "--checksum", "-e", remote, "t/", "fix.litterbox:in/"))
	d.works(d.Command(d.Dir, "rsync", "-a", "--checksum", "-e", remote, "fix.litterbox:in/", "back/"))
	want := d.works(d.Command(d.Dir, "sh", "-c", state, "sh", "native"))
	if got := d.works(d.Command(d.Dir, "sh", "-c", state, "sh", "back")); got != want {
		t.Errorf("rsync there and back differs\ngot:\n%s\nwant:\n%s", got, want)
	}
	if again := d.works(d.Command(d.Dir, "rsync", "-ain", "--checksum", "-e", remote, "t/", "fix.litterbox:in/")); again != "" {
		t.Errorf("a second rsync still finds differences:\n%s", again)
	}
	// scp follows links to files, and refuses others.
	d.works(d.Command(d.Dir, "sh", "-c", "rm t/dangling t/dir-link; chmod 640 t/readonly"))
	d.works(d.client("scp", "-rpq", "t", "fix.litterbox:scp"))
	d.works(d.client("scp", "-rpq", "fix.litterbox:scp", "scp-back"))
	if got := d.works(d.Command(d.Dir, "sh", "-c", "diff -r t scp-back && stat -c %a%Y scp-back/script")); got != "750"+"981173106\n" {
		t.Errorf("scp there and back: %s", got)
	}
	d.works(d.client("scp", "-q", "t/script", "fix.litterbox:script"))
	if got := d.works(d.client("ssh", "fix.litterbox", "stat -c %a script")); got != "750\n" {
		t.Errorf("a program that scp copied has mode %s", got)
	}
	batch := d.File("mkdir made\nput t/script made/a\nrename made/a made/b\nln -s b made/l\nchmod 600 made/b\nls -l made\nrename src source\nput t/script old\nrm old\nmkdir gone\nrmdir gone\n")
	defer batch.Close()
	d.Files = []*os.File{batch}
	listed := d.works(d.client("sftp", "-b", "/dev/fd/3", "fix.litterbox"))
	d.Files = nil
	if !strings.Contains(listed, "-rw-------") || !strings.Contains(listed, "lrwxrwxrwx") {
		t.Errorf("sftp lists\n%s", listed)
	}
	if got := d.works(d.client("ssh", "fix.litterbox", "cat source/main.txt; readlink made/l")); got != "the program\nb\n" {
		t.Errorf("after sftp: %q", got)
	}
	if kinds := strings.Join(d.kinds("fix"), " "); strings.Count(kinds, "sftp") != 3 {
		t.Errorf("three sessions wrote, and the steps are %s", kinds)
	}
	if got := d.Must("diff", "fix", "--name-only", "--", "made", "source"); got != "made/b\nmade/l\nsource/main.txt" {
		t.Errorf("what sftp wrote is not committed: %q", got)
	}
}
