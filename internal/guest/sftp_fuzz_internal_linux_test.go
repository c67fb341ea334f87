package guest

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/pkg/sftp"
)

// inert reads requests as the file server does, and touches no file.
type inert struct{}

func (inert) Fileread(r *sftp.Request) (io.ReaderAt, error)  { return bytes.NewReader(nil), nil }
func (inert) Filewrite(r *sftp.Request) (io.WriterAt, error) { return nowhere{}, mode(r) }
func (inert) Filecmd(r *sftp.Request) error {
	_, _ = r.AttrFlags(), r.Attributes()
	return nil
}
func (inert) Filelist(*sftp.Request) (sftp.ListerAt, error) { return listing{}, nil }

func mode(r *sftp.Request) error {
	if newMode(r)&^0o777 != 0 {
		return os.ErrInvalid
	}
	return nil
}

type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// client is the data that a client has sent, and the end.
type client struct {
	io.Reader
	io.Writer
}

func (client) Close() error { return nil }

// FuzzFiles feeds the server of files: a panic there would end everything
// inside a sandbox.
func FuzzFiles(f *testing.F) {
	packet := func(kind byte, parts ...any) []byte {
		body := []byte{kind}
		for _, part := range parts {
			switch part := part.(type) {
			case uint32:
				body = binary.BigEndian.AppendUint32(body, part)
			case string:
				body = append(binary.BigEndian.AppendUint32(body, uint32(len(part))), part...)
			}
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	begin := packet(1, uint32(3))
	for _, rest := range [][]byte{
		nil,
		packet(3, uint32(1), "file", uint32(26), uint32(4), uint32(0o100755)),
		packet(3, uint32(1), "file", uint32(26), uint32(12), uint32(0o644), uint32(1), uint32(2)),
		packet(6, uint32(2), "0", uint32(0), uint32(0), "content"),
		packet(9, uint32(3), "file", uint32(0xffffffff), uint32(1)),
		packet(16, uint32(4), "."),
		packet(18, uint32(5), "a", "b"),
		packet(20, uint32(6), "to", "link"),
		packet(200, uint32(7), "posix-rename@openssh.com", "a", "b"),
		packet(200, uint32(8), "statvfs@openssh.com", "/"),
		packet(5, uint32(9), "0", uint32(0), uint32(0), uint32(0xffffffff)),
		{0xff, 0xff, 0xff, 0xff, 3},
	} {
		f.Add(append(bytes.Clone(begin), rest...))
	}
	f.Fuzz(func(_ *testing.T, sent []byte) {
		handlers := sftp.Handlers{FileGet: inert{}, FilePut: inert{}, FileCmd: inert{}, FileList: inert{}}
		server := sftp.NewRequestServer(client{bytes.NewReader(sent), io.Discard}, handlers, sftp.WithStartDirectory("/workspace"))
		_ = server.Serve()
	})
}
