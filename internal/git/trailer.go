package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// TrailerOf reads one trailer of many commits with one process: the last value
// of key in the last paragraph of each message. A commit without it has an
// empty value; one missing from the repository is left out.
func (r *Repository) TrailerOf(ctx context.Context, key string, commits []string) (map[string]string, error) {
	if err := CheckOids(commits...); err != nil {
		return nil, err
	}
	values := make(map[string]string, len(commits))
	if len(commits) == 0 {
		return values, nil
	}
	answers, writer := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := readTrailers(bufio.NewReader(answers), key, values)
		answers.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // git ends too
		read <- err
	}()
	c := r.Command("cat-file", "--batch", "--buffer")
	c.Stdin, c.Stdout = strings.NewReader(strings.Join(commits, "\n")+"\n"), writer
	_, err := c.Output(ctx)
	writer.Close()
	if err := errors.Join(<-read, err); err != nil {
		return nil, fault.Wrap("", err, "cannot read the commits of the sandboxes")
	}
	return values, nil
}

// MaxCommit bounds the size of a commit object that is read: an agent writes
// the messages.
const MaxCommit = 16 << 20

// readTrailers reads what git cat-file --batch prints.
func readTrailers(r *bufio.Reader, key string, values map[string]string) error {
	for {
		header, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && header == "" {
			return nil
		}
		if err != nil {
			return err
		}
		var oid, kind string
		var size int64
		if n, _ := fmt.Sscanf(header, "%s %s %d\n", &oid, &kind, &size); n != 3 {
			continue // "<oid> missing"
		}
		if size > MaxCommit || size < 0 {
			return fault.New(fault.Invalid, "the object %s is too large for a commit", oid)
		}
		content := make([]byte, size+1) // and the line end after it
		if _, err := io.ReadFull(r, content); err != nil {
			return err
		}
		if kind == "commit" {
			values[oid] = lastTrailer(string(content), key)
		}
	}
}

// lastTrailer looks only into the last paragraph: the text before it may be a
// chosen message.
func lastTrailer(commit, key string) string {
	commit = strings.TrimRight(commit, "\n")
	last := commit[strings.LastIndex(commit, "\n\n")+1:]
	value := ""
	for line := range strings.Lines(last) {
		if v, ok := strings.CutPrefix(line, key+": "); ok {
			value = strings.TrimSpace(v)
		}
	}
	return value
}
