package landing

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
)

// conversions are those that git makes between files of the checkout and their
// objects, by attributes and settings: line endings, ident, encodings. Filters are
// off, because attributes may be those of the branch.
type conversions struct {
	r        *git.Repository
	off      []string // the settings that turn filters off
	settings attribute.Settings
}

func readConversions(ctx context.Context, r *git.Repository) (*conversions, error) {
	s, err := r.AllSettings(ctx)
	if err != nil {
		return nil, err
	}
	return &conversions{r, withoutFilters(s), attribute.Settings{AutoCRLF: s.AutoCRLF(), EOL: s.Eol()}}, nil
}

// hashes are the object ids of many files of the checkout as git would add them, by
// their paths.
func (c *conversions) hashes(ctx context.Context, names []string) (map[string]string, error) {
	found := make(map[string]string, len(names))
	if len(names) == 0 {
		return found, nil
	}
	var questions strings.Builder
	for _, name := range names {
		questions.WriteString(git.QuotePath(name) + "\n")
	}
	hash := c.r.InCheckout("hash-object", "--stdin-paths")
	hash.Config, hash.Stdin = c.off, strings.NewReader(questions.String())
	out, err := hash.Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot compare %q and others with what comes", names[0])
	}
	oids := strings.Fields(string(out))
	if len(oids) != len(names) {
		return nil, fault.New(fault.Internal, "cannot read what git hash-object printed")
	}
	for i, name := range names {
		found[name] = oids[i]
	}
	return found, nil
}

// converted are those of some paths at which git may write something else than the
// object's bytes, by the attributes that hold now.
func (c *conversions) converted(ctx context.Context, names []string) (map[string]bool, error) {
	found := map[string]bool{}
	if len(names) == 0 {
		return found, nil
	}
	check := c.r.InCheckout("check-attr", "-z", "-a", "--stdin")
	check.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := check.Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot read the attributes of %q and others", names[0])
	}
	given := map[string]attribute.Attributes{}
	fields := bytes.Split(out, []byte{0})
	for i := 0; i+2 < len(fields); i += 3 {
		name := string(fields[i])
		given[name] = with(given[name], string(fields[i+1]), string(fields[i+2]))
	}
	for _, name := range names {
		if attribute.ConvertOut(given[name], c.settings) {
			found[name] = true
		}
	}
	return found, nil
}

// with adds an attribute as git check-attr prints it. What is unset cannot be told
// from the word; it counts as unspecified, with which git converts no less.
func with(a attribute.Attributes, name, value string) attribute.Attributes {
	text := attribute.TextUnspecified
	switch value {
	case "set":
		text = attribute.TextSet
	case "auto", "input":
		text = attribute.Text(value)
	}
	switch name {
	case "text":
		a.Text = text
	case "crlf":
		a.CRLF = text
	case "eol":
		if value == "lf" || value == "crlf" {
			a.EOL = value
		}
	case "ident":
		a.Ident = value == "set"
	case "working-tree-encoding":
		if value != "unset" {
			a.WorkingTreeEncoding = value
		}
	}
	return a
}

// content is what git would write at a path of the checkout.
func (c *conversions) content(ctx context.Context, name, oid string) ([]byte, error) {
	command := c.r.InCheckout("cat-file", "--filters", "--path="+name, oid)
	command.Config = c.off
	return command.Output(ctx)
}

// largestConverted bounds a file that git converts, which is held as a whole.
const largestConverted = 512 << 20

// convertedStream reads what git would write at many paths of the checkout, in
// their order, with one git process. git says only how long the objects are, not
// what they become, so a line that no content has stands between them.
type convertedStream struct {
	c       *conversions
	oids    []string // still to come
	mark    string
	begun   bool
	answers *bufio.Reader
	pipe    *io.PipeReader
	ended   chan struct{}
}

// inOneLine reports whether git cat-file reads a path behind an object's name.
func inOneLine(name string) bool {
	return !strings.Contains(name, "\n") && !strings.HasPrefix(name, " ") && !strings.HasPrefix(name, "\t")
}

// stream starts to read converted changes. The caller closes it.
func (c *conversions) stream(ctx context.Context, changes []Change) *convertedStream {
	s := &convertedStream{c: c, mark: rand.Text(), ended: make(chan struct{})}
	var questions strings.Builder
	for _, one := range changes {
		if inOneLine(one.Path) {
			s.oids = append(s.oids, one.NewOid)
			questions.WriteString(one.NewOid + " " + one.Path + "\n")
		}
	}
	if len(s.oids) == 0 {
		close(s.ended)
		return s
	}
	command := c.r.InCheckout("cat-file", "--filters", "--buffer", "--batch="+s.mark)
	answers, stdout := io.Pipe()
	command.Config, command.Stdin, command.Stdout = c.off, strings.NewReader(questions.String()), stdout
	s.pipe, s.answers = answers, bufio.NewReaderSize(answers, 1<<16)
	go func() {
		defer close(s.ended)
		_, err := command.Output(ctx)
		stdout.CloseWithError(err) // io.EOF without one
	}()
	return s
}

// next is the content of the next change.
func (s *convertedStream) next(ctx context.Context, change Change) ([]byte, error) {
	if !inOneLine(change.Path) {
		return s.c.content(ctx, change.Path, change.NewOid)
	}
	if !s.begun {
		line, err := s.answers.ReadString('\n')
		if err != nil {
			return nil, fault.Wrap("", err, "cannot read the object %s", change.NewOid)
		}
		if line != s.mark+"\n" {
			return nil, fault.New(fault.NotFound, "cannot find the object %q", change.NewOid)
		}
		s.begun = true
	}
	mark, missing := s.mark+"\n", ""
	if s.oids = s.oids[1:]; len(s.oids) > 0 {
		missing = s.oids[0] + " missing\n"
	}
	var data []byte
	for begun := 0; ; { // where the last line begins
		piece, err := s.answers.ReadSlice('\n')
		data = append(data, piece...)
		if len(data) > largestConverted {
			return nil, fault.New(fault.Unsupported, "a file that git converts is larger than %d MiB", largestConverted>>20)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line := data[begun:]
		if string(line) == mark {
			data = data[:begun]
			break
		}
		// What is missing is said in its place.
		if missing != "" && string(line) == missing {
			return nil, fault.New(fault.NotFound, "cannot find the object %q", s.oids[0])
		}
		if errors.Is(err, io.EOF) && len(s.oids) == 0 {
			break
		}
		if err != nil {
			return nil, fault.Wrap("", err, "cannot read the object %s", change.NewOid)
		}
		begun = len(data)
	}
	// A line break ends each content.
	return bytes.TrimSuffix(data, []byte("\n")), nil
}

// Close ends the process.
func (s *convertedStream) Close() error {
	if s.pipe != nil {
		_ = s.pipe.Close() // never fails; git ends when nothing reads
	}
	<-s.ended
	return nil
}
