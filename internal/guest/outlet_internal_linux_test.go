package guest

import (
	"os"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
)

// A service's output from before its end comes before the note of its end,
// however late it is read, and even if another process holds the pipe.
func TestOutletWaitsForWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	j := journal.New(dir, "web")
	o, theirs, err := newOutlet(j)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close() // like a process that the service has detached
	if _, err := theirs.WriteString("last words\n"); err != nil {
		t.Fatal(err)
	}
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		o.wait(0)
		j.Note(time.Now(), "ended")
	}()
	go o.pump()
	<-noted
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var lines []string
	if _, err := journal.Scan(root, "web", 0, func(line journal.Line) bool { lines = append(lines, line.Text); return true }); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[0] != "last words" || lines[1] != "ended" {
		t.Errorf("the journal has %q", lines)
	}
	o.file.Close()
	<-o.done
}
