package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// bring makes sure that the machine has layers, and returns their keys there.
// It only sends what is missing, without files that another layer there has.
func (c *client) bring(ctx context.Context, dirs []string, say progress) ([]string, error) {
	keys, dirOf := make([]string, len(dirs)), map[string]string{}
	for i, dir := range dirs {
		key, err := layerKey(dir)
		if err != nil {
			return nil, err
		}
		keys[i], dirOf[key] = key, dir
	}
	return keys, c.send(ctx, keys, func(key string) part { return c.near(ctx, dirOf[key]) }, say)
}

// progress is told how many bytes of how many have been sent.
type progress func(done, total int64)

// showing turns a function that shows progress into a progress, in KiB: bytes may not
// fit.
func showing(show func(what string, done, total int), machine string) progress {
	if show == nil {
		return func(int64, int64) {}
	}
	return func(done, total int64) {
		// Names and headers are not counted beforehand.
		show("sending files to "+machine, int(min(done, total)>>10), int(total>>10))
	}
}

// layerKey names a layer of this machine. A layer never changes once it is there,
// and one that is made again is another directory with another time. So layers
// with the same key are the same, and no content is read to find out.
func layerKey(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", driver.Seal(err, "cannot read a layer of the workspace")
	}
	return keyOf("layer", dir, identityOf(info)), nil
}

func keyOf(words ...string) string {
	sum := sha256.New()
	for _, word := range words {
		fmt.Fprintf(sum, "%d %s\n", len(word), word)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// bringProgram makes sure that the machine has the guest's program, and returns
// its key. Without one the outpost itself is that program.
func (c *client) bringProgram(ctx context.Context, program string) (string, error) {
	if program == "" {
		return "", nil
	}
	c.mu.Lock()
	key := c.keys[program]
	c.mu.Unlock()
	if key == "" {
		sum, err := hashFile(program)
		if err != nil {
			return "", err
		}
		key = keyOf("program", sum)
	}
	err := c.send(ctx, []string{key}, func(string) part {
		return part{Part: outpost.Part{Name: outpost.ProgramName, Dir: program}}
	}, func(int64, int64) {})
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.keys[program] = key
	c.mu.Unlock()
	return key, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", driver.Seal(err, "cannot read the guest's program")
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", driver.Seal(err, "cannot read the guest's program")
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// attempts is how often in a row a transfer may be cut off before any data came
// over. One that makes progress resumes where it was.
const attempts = 5

// again repeats a repeatable operation once more when the link breaks under it.
func again(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if attempt == attempts || ctx.Err() != nil || !errors.Is(err, driver.ErrUnreachable) {
			return err
		}
		rest(ctx, attempt)
	}
}

// rest gives a link that has broken failed times in a row some time.
func rest(ctx context.Context, failed int) {
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond << failed):
	}
}

// send sends what the machine lacks.
func (c *client) send(ctx context.Context, keys []string, partOf func(key string) part, say progress) error {
	if len(keys) == 0 {
		return nil
	}
	var answer outpost.Answer
	err := again(ctx, func() (err error) {
		answer, err = c.ask(ctx, outpost.Request{Op: outpost.OpHave, Keys: keys})
		return err
	})
	if err != nil {
		return err
	}
	parts, total, done := map[string]part{}, int64(0), int64(0)
	for _, key := range keys {
		if _, has := parts[key]; !has && slices.Contains(answer.Missing, key) {
			parts[key] = partOf(key)
			total += parts[key].bytes
		}
	}
	for _, key := range keys {
		one, missing := parts[key]
		if !missing {
			continue
		}
		before := int64(-1)
		for failed := 0; ; {
			offset, err := c.sendOne(ctx, key, one, func(sent int64) { say(done+min(sent, one.bytes), total) })
			if err == nil {
				done += one.bytes
				delete(parts, key) // the same one may be there twice
				break
			}
			if failed++; offset > before {
				before, failed = offset, 0
			}
			if failed == attempts || ctx.Err() != nil || !errors.Is(err, driver.ErrUnreachable) && !errors.Is(err, outpost.ErrDamaged) {
				return fault.Wrap("", err, "cannot bring the files of the sandbox to the machine")
			}
			rest(ctx, failed)
		}
	}
	return nil
}

// sendOne sends a layer from where an earlier attempt was cut off, and returns
// where that was.
func (c *client) sendOne(ctx context.Context, key string, one part, sent func(int64)) (int64, error) {
	stream, answer, err := c.open(ctx, outpost.Request{Op: outpost.OpSend, Keys: []string{key}, On: one.on})
	if err != nil {
		return -1, err
	}
	defer stream.Close()
	if answer.Offset < 0 {
		return 0, nil // another process was faster
	}
	if answer.On != one.on { // it is gone, or the outpost is an older one
		one.Same = nil
	}
	return answer.Offset, c.upload(ctx, stream, []outpost.Part{one.Part}, answer.Offset, sent)
}

// upload streams a tree and waits for confirmation that it is there.
func (c *client) upload(ctx context.Context, stream *outpost.Stream, parts []outpost.Part, offset int64, sent func(int64)) error {
	stop := context.AfterFunc(ctx, stream.Abort)
	defer stop()
	source := &sourced{w: stream, sent: offset, say: sent}
	err := outpost.WriteTree(ctx, source, parts, offset)
	if err == nil {
		// An outpost that has read the tree to its end may have answered already,
		// and be done with the stream. The answer reports whether it has everything.
		_ = stream.CloseWrite()
	}
	if err != nil && !source.failed && ctx.Err() == nil {
		return err // of this disk
	}
	// An outpost that gives up says why.
	var answer outpost.Answer
	said := outpost.ReadMessage(stream, &answer)
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(fault.Canceled, ctx.Err(), "cannot send files to the machine %q", c.machine.Name())
	case said == nil && answer.Failure != nil:
		return answer.Failure.Err()
	case said != nil || err != nil:
		return c.unreachable(errors.Join(err, said))
	}
	return nil
}

// sourced distinguishes an error of the stream from one of its source.
type sourced struct {
	w      io.Writer
	failed bool
	sent   int64
	say    func(sent int64)
}

func (s *sourced) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.failed = s.failed || err != nil
	s.sent += int64(n)
	s.say(s.sent)
	return n, err
}

// beginning is the initial content of a new place.
func beginning(spec driver.Spec) []outpost.Part {
	var parts []outpost.Part
	if spec.Workspace.Live == nil {
		parts = append(parts, outpost.Part{Name: "upper", Dir: spec.Workspace.Upper})
	}
	home := filepath.Join(spec.StateDir, "home")
	if _, err := os.Stat(home); err == nil {
		parts = append(parts, outpost.Part{Name: "home", Dir: home})
	}
	return parts
}
