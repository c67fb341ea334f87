package wire

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// chunk is how much of a file or of a command's input goes into one frame. With
// its header it fits one SSH packet of 32 KiB.
const chunk = 32<<10 - 64

// Every function below carries out one operation on a fresh stream; the
// caller closes the stream afterwards. A canceled ctx closes it at once.

// Greet asks the guest who it is (OpHello).
func Greet(ctx context.Context, s Stream) (Hello, error) {
	var hello Hello
	err := call(ctx, s, Request{Op: OpHello}, nil, nil, &hello)
	return hello, err
}

// Read copies a file of the sandbox to w: limit bytes from offset on, or all
// with a limit of 0.
func Read(ctx context.Context, s Stream, path []byte, offset, limit int64, w io.Writer) (FileInfo, error) {
	var info FileInfo
	err := call(ctx, s, Request{Op: OpRead, Path: path, Offset: offset, Limit: limit}, nil, w, &info)
	return info, err
}

// Write replaces a file of the sandbox with the contents of r, in one step. A
// failure, also of r, leaves the file as it was. mode 0 keeps the mode of an
// existing file.
func Write(ctx context.Context, s Stream, path []byte, mode uint32, r io.Reader) (FileInfo, error) {
	var info FileInfo
	err := call(ctx, s, Request{Op: OpWrite, Path: path, Mode: mode}, r, nil, &info)
	return info, err
}

// Append adds r to the end of a file of the sandbox, and creates the file when it is
// missing.
func Append(ctx context.Context, s Stream, path []byte, r io.Reader) (FileInfo, error) {
	var info FileInfo
	err := call(ctx, s, Request{Op: OpAppend, Path: path}, r, nil, &info)
	return info, err
}

// Pack writes a file or a directory of the sandbox to w as a tar stream. A
// file is one entry with its base name; a directory is an entry "./" and
// everything below it by relative names. Sockets, devices and pipes stay out.
// The names in the stream are foreign and unchecked.
func Pack(ctx context.Context, s Stream, path []byte, w io.Writer) error {
	return call(ctx, s, Request{Op: OpPack, Path: path}, nil, w, &Empty{})
}

// Unpack extracts the tar stream r below the directory path, and creates it
// when it is missing.
func Unpack(ctx context.Context, s Stream, path []byte, r io.Reader) error {
	return call(ctx, s, Request{Op: OpUnpack, Path: path}, r, nil, &Empty{})
}

// Remove deletes files of the workspace, given as paths relative to it, and the
// directories that this leaves empty. A path that is missing is not an error.
func Remove(ctx context.Context, s Stream, paths [][]byte) error {
	return call(ctx, s, Request{Op: OpRemove, Paths: paths}, nil, nil, &Empty{})
}

// Processes lists the processes that run outside any exec.
func Processes(ctx context.Context, s Stream) ([]Process, error) {
	var list ProcessList
	err := call(ctx, s, Request{Op: OpProcesses}, nil, nil, &list)
	return cleanProcesses(list.Processes), err
}

// RunningInside lists the commands that run for clients and the processes
// outside them.
func RunningInside(ctx context.Context, s Stream) (ProcessList, error) {
	var list ProcessList
	err := call(ctx, s, Request{Op: OpProcesses}, nil, nil, &list)
	list.Processes = cleanProcesses(list.Processes)
	return list, err
}

// Quiesce ends everything inside except the guest (OpQuiesce).
func Quiesce(ctx context.Context, s Stream, grace time.Duration) error {
	return call(ctx, s, Request{Op: OpQuiesce, Grace: grace}, nil, nil, &Empty{})
}

// FindHead reports where the agent's own git history stands (OpHead). The
// commit is well-formed or empty; Export shows whether it exists.
func FindHead(ctx context.Context, s Stream) (Head, error) {
	var head Head
	if err := call(ctx, s, Request{Op: OpHead}, nil, nil, &head); err != nil {
		return Head{}, err
	}
	return head.checked()
}

// FindModule is FindHead for the submodule at path (OpModule).
func FindModule(ctx context.Context, s Stream, path string) (Module, error) {
	var found Module
	if err := call(ctx, s, Request{Op: OpModule, Path: []byte(path)}, nil, nil, &found); err != nil {
		return Module{}, err
	}
	var err error
	found.Head, err = found.Head.checked()
	return found, err
}

// checked refuses a head that no git would report.
func (head Head) checked() (Head, error) {
	if head.Commit != "" && !IsObjectID(head.Commit) ||
		head.Branch != "" && (!strings.HasPrefix(head.Branch, "refs/") || printable(head.Branch) != head.Branch) {
		return Head{}, fault.New(fault.Unavailable, "cannot use the HEAD that the sandbox names")
	}
	return head, nil
}

// Export writes a thin pack of want to w, without the objects that have
// reaches. have may be empty.
func Export(ctx context.Context, s Stream, have, want string, w io.Writer) error {
	return call(ctx, s, Request{Op: OpExport, Have: have, Want: want}, nil, w, &Empty{})
}

// TakeModule is Export for the submodule at path.
func TakeModule(ctx context.Context, s Stream, path, have, want string, w io.Writer) error {
	return call(ctx, s, Request{Op: OpTake, Path: []byte(path), Have: have, Want: want}, nil, w, &Empty{})
}

// Kill ends the largest processes inside at once, up to most of them, or all
// with 0, and returns those that it can name. The guest itself goes on.
func Kill(ctx context.Context, s Stream, most int) ([]Process, error) {
	var list ProcessList
	err := call(ctx, s, Request{Op: OpKill, Limit: int64(most)}, nil, nil, &list)
	return cleanProcesses(list.Processes), err
}

// SocketMemory is how many bytes the sockets inside hold in the kernel.
func SocketMemory(ctx context.Context, s Stream) (int64, error) {
	var held Buffers
	err := call(ctx, s, Request{Op: OpBuffers}, nil, nil, &held)
	return max(0, held.Bytes), err
}

// Shutdown ends every process inside: TERM, after grace KILL, then the guest.
func Shutdown(ctx context.Context, s Stream, grace time.Duration) error {
	return call(ctx, s, Request{Op: OpShutdown, Grace: grace}, nil, nil, &Empty{})
}

// IsObjectID reports whether id is a full object name of git: 40 (SHA-1) or 64
// (SHA-256) lower-case hexadecimal digits.
func IsObjectID(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && (len(id) == 40 || len(id) == 64) && strings.ToLower(id) == id
}

// call sends one request, feeds it the contents of in, hands output to out and
// decodes the result.
func call(ctx context.Context, s Stream, request Request, in io.Reader, out io.Writer, result any) error {
	defer context.AfterFunc(ctx, func() { s.Close() })()
	request.Version = Version
	err := exchange(s, request, in, out, result)
	if err != nil && ctx.Err() != nil {
		return canceled(ctx, "cannot finish the request to the sandbox")
	}
	return err
}

func exchange(s Stream, request Request, in io.Reader, out io.Writer, result any) error {
	w := NewWriter(s)
	if err := WriteJSON(w, KindRequest, request); err != nil {
		return lost(err)
	}
	feeding := make(chan error, 1)
	if in != nil {
		go func() {
			// Without the end frame the guest drops what it has so far.
			err := feed(w, in)
			feeding <- err
			if err != nil {
				s.Close()
			}
		}()
	}
	r := NewReader(s)
	for {
		kind, payload, err := r.Next()
		if err != nil {
			select {
			case cause := <-feeding:
				if cause != nil {
					return cause
				}
			default:
			}
			return lost(err)
		}
		switch kind {
		case KindStdout:
			if out == nil {
				return fault.New(fault.Unavailable, "cannot understand the sandbox: output where none belongs")
			}
			if _, err := out.Write(payload); err != nil {
				return err
			}
		case KindResult:
			return decode(payload, result)
		case KindError:
			return failure(payload)
		}
	}
}

// feed sends r as input frames. It returns only a failure of r: when the stream
// fails, its reading side knows more.
func feed(w *Writer, r io.Reader) error {
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		if n > 0 && w.Frame(KindStdin, buf[:n]) != nil {
			return nil
		}
		if errors.Is(err, io.EOF) {
			_ = w.Frame(KindStdinEnd, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func decode(payload []byte, result any) error {
	if err := json.Unmarshal(payload, result); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot understand the sandbox's answer")
	}
	return nil
}

// lost phrases the end of a stream that still owed an answer.
func lost(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, io.EOF) {
		return fault.New(fault.Unavailable, "cannot finish the request: the sandbox closed the connection")
	}
	return fault.Wrap(fault.Unavailable, err, "cannot finish the request to the sandbox")
}

func canceled(ctx context.Context, text string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.Timeout, context.Cause(ctx), "%s", text)
	}
	return fault.Wrap(fault.Canceled, context.Cause(ctx), "%s", text)
}

func cleanProcesses(list []Process) []Process {
	for i := range list {
		list[i].Command = printable(list[i].Command)
	}
	return list
}

// Ask carries out an operation that takes and gives nothing.
func Ask(ctx context.Context, s Stream, request Request) error {
	return call(ctx, s, request, nil, nil, &Empty{})
}

// AskFor carries out an operation that takes nothing and gives a result.
func AskFor(ctx context.Context, s Stream, request Request, result any) error {
	return call(ctx, s, request, nil, nil, result)
}
