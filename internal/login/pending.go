package login

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Pending is a renewal under way. A host may take the old refresh token for spent
// as soon as it has answered, so its answer is on the disk, beside the client's
// file, before anything else is done with it. The next renewal finds it there if
// this process was killed ([Login.Recover]).
type Pending struct {
	file *os.File
}

const (
	pendingSuffix = ".litterbox-renewal"
	// pendingRoom is kept for an answer, and for the document that it goes into.
	pendingRoom = 64 << 10
)

// pendingHead is the first line of such a file.
type pendingHead struct {
	Sent string `json:"sent"` // the hash of the refresh token that the host was sent
}

func pendingPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+pendingSuffix), err
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Begin makes room for the answer to a renewal of the login in the file at path.
// It fails where neither that nor [WriteFile] is possible: then the renewal must
// not begin. The lock of the login is held, and [Login.Recover] was called.
func Begin(path, sent string) (_ *Pending, err error) {
	defer func() {
		if err != nil {
			err = fault.Wrap(fault.Unavailable, err, "cannot write the login in %s", path)
		}
	}()
	aside, err := pendingPath(path)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(pendingHead{Sent: hashOf(sent)})
	if err != nil {
		return nil, err
	}
	head = append(head, '\n')
	file, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// One more for the document, which is written while this one is there.
	_, err = file.Write(append(head, make([]byte, 2*pendingRoom)...))
	if err == nil {
		_, err = file.Seek(int64(len(head)), io.SeekStart)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(aside))
	}
	return &Pending{file}, nil
}

// Write takes a piece of the answer.
func (p *Pending) Write(piece []byte) (int, error) { return p.file.Write(piece) }

// Room gives half of the kept room back, for the document.
func (p *Pending) Room() error {
	at, err := p.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return errors.Join(p.file.Sync(), p.file.Truncate(max(at, pendingRoom)))
}

// End forgets the answer: it is in the client's file, or worth nothing.
func (p *Pending) End() error {
	return errors.Join(p.file.Close(), os.Remove(p.file.Name()))
}

// Recover puts the answer to an interrupted renewal into the client's file, where
// the file still has the token that was sent. The lock of the login is held.
// Without such an answer it does nothing.
func (l Login) Recover(path string) (recovered bool, err error) {
	aside, err := pendingPath(path)
	if err != nil {
		return false, nil // there is no login
	}
	info, err := os.Lstat(aside)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	content, err := os.ReadFile(aside)
	defer clear(content)
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "cannot read a renewal that was cut off")
	}
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	answer, parsed := Parse(bytes.Trim(rest, "\x00"))
	var head pendingHead
	document, err := ReadFile(path)
	if fault.KindOf(err) == fault.Unavailable {
		return false, err
	}
	if err == nil && parsed == nil && json.Unmarshal(line, &head) == nil {
		values, err := l.Values(document)
		for n, token := range l.Tokens {
			if err == nil && token.Role == Refresh && hashOf(values[n]) == head.Sent && l.Renew(document, answer, info.ModTime()) {
				if err := WriteFile(path, document); err != nil {
					return false, err
				}
				recovered = true
			}
		}
	}
	if err := os.Remove(aside); err != nil {
		return recovered, fault.Wrap(fault.Unavailable, err, "cannot remove a renewal that was cut off")
	}
	return recovered, nil
}

// recoverPatience is how long RecoverNow waits for other renewals.
const recoverPatience = 5 * time.Second

// RecoverNow is Recover with the lock of the login; where others hold it for
// long, they recover any answer.
func (l Login) RecoverNow(ctx context.Context, path, own string, clients []string) error {
	aside, err := pendingPath(path)
	if err != nil {
		return nil // there is no login
	}
	if _, err := os.Lstat(aside); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recoverPatience)
	defer cancel()
	release, err := Lock(ctx, own, clients)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = l.Recover(path)
	return errors.Join(err, release())
}
