package door_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLarge changes keys again and again below data that flows in both
// directions, and moves data beyond the fourth gigabyte of a file.
func TestLarge(t *testing.T) {
	d := open(t)
	d.Must("create", "fix")
	const host = "fix.litterbox"
	data := make([]byte, 24<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // it always succeeds
	source := filepath.Join(d.Dir, "data")
	d.Put(source, string(data))

	var back, said bytes.Buffer
	cat := exec.Command("ssh", "-F", d.config, "-o", "ControlPath=none", "-o", "RekeyLimit=1M", "-v", host, "cat")
	cat.Env, cat.Stdin, cat.Stdout, cat.Stderr = d.Env, bytes.NewReader(data), &back, &said
	if err := cat.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	if !bytes.Equal(back.Bytes(), data) {
		t.Errorf("%d bytes came back of %d, or others", back.Len(), len(data))
	}
	if n := strings.Count(said.String(), "NEWKEYS received"); n < 10 {
		t.Errorf("keys were changed %d times:\n%s", n, said.Bytes())
	}

	// SFTP asks for many pieces at once, which keys change between.
	batch := d.File("put " + source + " /tmp/there\nget /tmp/there back\n")
	defer batch.Close()
	d.Files = []*os.File{batch}
	d.works(d.client("sftp", "-o", "RekeyLimit=1M", "-b", "/dev/fd/3", host))
	d.Files = nil
	d.works(d.Command(d.Dir, "cmp", "data", "back"))

	// A transfer that goes on beyond four gigabytes: offsets of 64 bits, in both
	// directions.
	d.works(d.client("ssh", host, "truncate -s 5G /tmp/far /tmp/shorter && printf 'the end' >> /tmp/far"))
	d.works(d.Command(d.Dir, "sh", "-c", "truncate -s 5G far longer && printf 'the other' >> longer"))
	batch = d.File("reget /tmp/far far\nreput longer /tmp/shorter\n")
	defer batch.Close()
	d.Files = []*os.File{batch}
	d.works(d.client("sftp", "-b", "/dev/fd/3", host))
	d.Files = nil
	if got := d.works(d.Command(d.Dir, "sh", "-c", "stat -c %s far; tail -c 9 far | tr '\\0' .")); got != "5368709127\n..the end" {
		t.Errorf("what came from behind four gigabytes: %q", got)
	}
	if got := d.works(d.client("ssh", host, "stat -c %s /tmp/shorter; tail -c 11 /tmp/shorter | tr '\\0' .")); got != "5368709129\n..the other" {
		t.Errorf("what went behind four gigabytes: %q", got)
	}
}
