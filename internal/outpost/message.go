package outpost

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Op is what a stream is for.
type Op string

// The operations. The arrow precedes what follows a request or an answer on its
// stream. An unknown one is answered with driver.ErrUnsupported.
const (
	OpStatus Op = "status" // → Answer.Status
	OpMeet   Op = "meet"   // Meet → Answer.Met, Boot: whether both have one kernel

	// Layers and programs, by their keys. Data sent before a cut stays, and Offset
	// says how much that is.
	OpHave Op = "have" // Keys → Answer.Missing
	// A tree may name files of the layer On, if the answer says that it is there.
	OpSend Op = "send" // Keys[0], On → Answer.Offset, On; then the tree from there on → Answer
	OpDrop Op = "drop" // Keys; those that a place uses stay → Answer.Missing: those gone

	// OpBegin takes the initial files of a new place: a tree with upper and home
	// in it. For a place that has begun with the same identity it does nothing.
	OpBegin   Op = "begin" // Place, then the tree → Answer
	OpAcquire Op = "acquire"
	OpAttach  Op = "attach"
	// The guest's wire comes to the socket Meet, or else its bytes follow the answer.
	OpDial    Op = "dial" // Place, Meet → Answer.Met
	OpPause   Op = "pause"
	OpResume  Op = "resume"
	OpLimit   Op = "limit"
	OpRecover Op = "recover"
	OpDestroy Op = "destroy"
	OpMetrics Op = "metrics"
	OpLend    Op = "lend" // Path, Content: of a file of Spec.Lent
	OpJoin    Op = "join" // → Answer.Namespaces

	// The changes of a place: streams of package workspace/feed follow. Rules
	// leaves out the content of ignored directories; OpBelow lists one of those.
	// Since asks OpList for the difference from the listing before → Answer.Since.
	OpList    Op = "list"
	OpBelow   Op = "below"
	OpContent Op = "content"
	OpRefs    Op = "refs"
	OpSize    Op = "size"

	// The writes of a place are kept in its machine (driver.Snapshotter).
	OpSnapshot  Op = "snapshot"  // Reason: its label → Answer.Snapshots, the one
	OpSnapshots Op = "snapshots" // → Answer.Snapshots
	OpRevert    Op = "revert"    // Snapshot
	OpRelease   Op = "release"   // Snapshot: it is deleted
	OpFork      Op = "fork"      // Snapshot, To: a place with its files; one of the same identity is done
	OpRebranch  Op = "rebranch"  // Keys: the former branch of the git inside, and its new one

	// Goldens: files that new places begin with. To is the golden, whose sandbox and
	// identity are one name.
	OpKeepGolden  Op = "golden-keep"  // Place, To, then paths, each with a NUL → Answer.Snapshots, the golden
	OpReadGolden  Op = "golden-read"  // To, Snapshot → a tar archive
	OpWriteGolden Op = "golden-write" // To, then a tar archive → Answer.Snapshots, the golden
	OpDropGolden  Op = "golden-drop"  // To
	OpBeginWith   Op = "golden-begin" // OpBegin on the golden To, Snapshot, with Edits in it

	OpForget Op = "forget" // removes the place's files, even if it runs
	OpPlaces Op = "places" // → Answer.Places
	OpStrays Op = "strays" // Keys are the known sandboxes → Answer.Places
	OpEnd    Op = "end"    // Place: ends the processes of a stray
	OpUsage  Op = "usage"  // → Answer.Usage
)

// Request begins a stream.
type Request struct {
	Op       Op             `json:"op"`
	Place    Place          `json:"place,omitzero"`
	To       Place          `json:"to,omitzero"`
	Snapshot string         `json:"snapshot,omitempty"` // its id
	Keys     []string       `json:"keys,omitempty"`
	On       string         `json:"on,omitempty"`   // the key of a layer
	Spec     *driver.Spec   `json:"spec,omitempty"` // its layers are keys
	Program  string         `json:"program,omitempty"`
	Limits   sandbox.Limits `json:"limits,omitzero"`
	Reason   string         `json:"reason,omitempty"`
	Force    bool           `json:"force,omitempty"`
	Path     string         `json:"path,omitempty"`
	At       []byte         `json:"at,omitempty"` // Path, if it is not UTF-8
	Rules    *Rules         `json:"rules,omitempty"`
	Since    string         `json:"since,omitempty"`    // TokenOf the listing that the host has
	Patience time.Duration  `json:"patience,omitempty"` // how long the host waits
	Meet     string         `json:"meet,omitempty"`     // the path of a host's socket in the machine
	Edits    []driver.Edit  `json:"edits,omitempty"`
	Content  []byte         `json:"content,omitempty"`
}

// Rules are what git ignores, as package workspace/feed takes it.
type Rules struct {
	Fold  bool     `json:"fold,omitempty"`
	Texts [][]byte `json:"texts"`
}

// About returns the request with a path, which may be any bytes.
func (q Request) About(path string) Request {
	if q.Path = path; !utf8.ValidString(path) {
		q.Path, q.At = "", []byte(path)
	}
	return q
}

// Named returns the path that About has set.
func (q Request) Named() string {
	if len(q.At) > 0 {
		return string(q.At)
	}
	return q.Path
}

// Place names the files of a sandbox in a machine, and a run of it.
type Place struct {
	Sandbox string `json:"sandbox,omitempty"`
	// Identity was made by the host when the files began. Files of another
	// identity are different ones, no matter what they hold.
	Identity string `json:"identity,omitempty"`
	Handle   []byte `json:"handle,omitempty"` // of the lease, as the machine's driver wrote it
}

// Answer is the response to a request. Only the fields of its operation are set.
type Answer struct {
	Failure *Failure          `json:"failure,omitempty"`
	Status  *Status           `json:"status,omitempty"`
	Missing []string          `json:"missing,omitempty"`
	Offset  int64             `json:"offset,omitempty"`
	On      string            `json:"on,omitempty"`
	Handle  []byte            `json:"handle,omitempty"`
	InForce driver.InForce    `json:"in_force,omitempty"`
	Traits  *sandbox.Traits   `json:"traits,omitempty"`
	Said    []string          `json:"said,omitempty"`
	Metrics *driver.Metrics   `json:"metrics,omitempty"`
	Refs    map[string]string `json:"refs,omitempty"`
	Changes int64             `json:"changes,omitempty"` // bytes
	Home    int64             `json:"home,omitempty"`    // bytes
	Places  []Found           `json:"places,omitempty"`
	Usage   *Usage            `json:"usage,omitempty"`
	// Since says that a difference follows: from the listing with this token.
	Since string `json:"since,omitempty"`
	Met   bool   `json:"met,omitempty"`  // a connection was made to Request.Meet
	Boot  string `json:"boot,omitempty"` // of the machine's kernel
	// Namespaces is the directory of a running place's namespace files, in the machine.
	Namespaces string `json:"namespaces,omitempty"`
	// Snapshots have no layers: those are the machine's.
	Snapshots []driver.Snapshot `json:"snapshots,omitempty"`
}

// Status is the present state of a machine.
type Status struct {
	Version      int                 `json:"version"`
	Now          time.Time           `json:"now"` // by its clock
	Boot         string              `json:"boot"`
	Capabilities driver.Capabilities `json:"capabilities"`
	Free         int64               `json:"free"`            // bytes of the disk with its state
	Total        int64               `json:"total,omitempty"` // bytes of that disk
	FreeInodes   uint64              `json:"free_inodes,omitempty"`
	Inodes       uint64              `json:"inodes,omitempty"` // of that disk
	// Memory is how much programs can have without swapping, in bytes.
	Memory     int64   `json:"memory,omitempty"`
	Processors int     `json:"processors,omitempty"`
	Load       float64 `json:"load,omitempty"` // of the last minute
}

// Found is a place, or the remains of one.
type Found struct {
	Sandbox string `json:"sandbox"`
	Runs    bool   `json:"runs,omitempty"`
	What    string `json:"what,omitempty"` // of a stray
}

// Usage is how much an outpost keeps, in bytes.
type Usage struct {
	Layers   int64 `json:"layers"`
	Places   int64 `json:"places"`
	Incoming int64 `json:"incoming"` // of transfers cut off
}

// Failure is an error on its way.
type Failure struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
	// Named is one of the errors of package driver.
	Named string `json:"named,omitempty"`
}

// named are the errors that keep their meaning.
func named() map[string]*fault.Error {
	return map[string]*fault.Error{
		"unsupported": driver.ErrUnsupported, "unavailable": driver.ErrLeaseUnavailable, "lost": driver.ErrMachineLost,
		"pause": driver.ErrPauseTimeout, "full": driver.ErrDiskFull, "mount": driver.ErrMountFailed,
		"unreachable": driver.ErrUnreachable, "held": driver.ErrHeld, "snapshot": driver.ErrNoSnapshot,
		"other": ErrOtherFiles, "damaged": ErrDamaged,
	}
}

// ErrOtherFiles says that a machine does not have the files that a sandbox began
// with: they are gone, or others are in their place. Nothing may be taken from
// them.
var ErrOtherFiles = fault.New(fault.Conflict, "its machine no longer has the files that it worked on")

// FailureOf is err on its way.
func FailureOf(err error) *Failure {
	f := &Failure{Kind: string(fault.KindOf(err)), Text: cut(err.Error()), Hint: cut(fault.HintOf(err))}
	for name, one := range named() {
		if errors.Is(err, one) {
			f.Named = name
		}
	}
	return f
}

// Err returns the other end's message, as an error that can be shown.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	if one := named()[f.Named]; one != nil {
		text := strings.TrimSuffix(strings.TrimSuffix(printable(f.Text), one.Error()), ": ")
		if text == "" {
			return one
		}
		err := fault.Wrap("", one, "%s", text)
		err.Hint = printable(f.Hint)
		return err
	}
	kind := fault.Kind(f.Kind)
	if !slices.Contains(fault.Kinds(), kind) {
		kind = fault.Internal
	}
	return &fault.Error{Kind: kind, Text: printable(f.Text), Hint: printable(f.Hint)}
}

// maxText bounds a text that may be shown.
const maxText = 8 << 10

func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// printable removes what a terminal would obey: a machine may be hostile.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, cut(text))
}

// maxMessage bounds a request or an answer.
const maxMessage = 4 << 20

// WriteMessage writes a request or an answer.
func WriteMessage(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot write a message to the outpost")
	}
	if len(data) > maxMessage {
		return fault.New(fault.Invalid, "cannot send the outpost %d bytes in one message: the limit is %d", len(data), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

// ReadMessage reads one, and nothing beyond it.
func ReadMessage(r io.Reader, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxMessage {
		return errProtocol
	}
	// As it comes: a mere length takes no memory.
	var data strings.Builder
	if _, err := io.CopyN(&data, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := json.Unmarshal([]byte(data.String()), v); err != nil {
		return errProtocol
	}
	return nil
}

// IsKey reports whether text is the key of a layer or a program: a SHA-256 in
// hexadecimal.
func IsKey(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// IsName reports whether text can name the directory of a place.
func IsName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && len(text) <= 128 && strings.Trim(text, letters+"-_.") == "" && strings.Contains(letters, text[:1])
}

// ProgramName is the one file of a layer that is a program.
const ProgramName = "program"

// Verb is the argument that tells a program that it is an outpost. HoldVerb is the
// one of the first process in a machine that has none of its own.
const (
	Verb     = "outpost"
	HoldVerb = "outpost-first"
)
