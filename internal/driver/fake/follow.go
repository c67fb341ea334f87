package fake

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// follow takes over files that changed outside, where the workspace still has
// what is expected. Links are not for this guest.
func (p *place) follow(in *wire.Reader) (wire.Followed, error) {
	done := wire.Followed{Stayed: [][]byte{}}
	from := &input{in: in}
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, from)
			return done, err
		}
		if err != nil {
			return done, fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			return done, fault.New(fault.Unsupported, "the fake guest does not replace %q", header.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return done, fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		path := p.absolute([]byte(header.Name))
		is, will := p.holds(path), fileHolds(content)
		gone := header.PAXRecords[wire.FollowGone] != ""
		if gone {
			will = wire.FollowNone
		}
		switch {
		case is == will:
			continue
		case is != header.PAXRecords[wire.FollowWas]:
			done.Stayed = append(done.Stayed, []byte(header.Name))
			continue
		case gone:
			err = p.remove(path)
		default:
			err = p.writeFile(path, content)
		}
		if err != nil {
			return done, err
		}
	}
}

// holds says what is at a path, in the words of [wire.FollowWas].
func (p *place) holds(path string) string {
	content, err := p.readFile(path)
	if err != nil {
		return wire.FollowNone
	}
	return fileHolds(content)
}

func fileHolds(content []byte) string {
	sum := sha256.Sum256(content)
	return "file " + hex.EncodeToString(sum[:])
}
