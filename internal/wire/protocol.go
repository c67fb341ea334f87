package wire

import "time"

// ChannelType is the SSH channel type that carries one stream of frames.
const ChannelType = "stream@litterbox"

// MaxFrame is the largest payload of one frame, in bytes. A longer announced
// length ends the stream: the other side is not trusted.
const MaxFrame = 256 << 10

// StdinWindow is how many bytes of a command's input may be under way to a
// command that does not read them. The client counts down from it and
// KindCredit counts up again; so a full pipe never holds back the signals that
// come after it in the stream, and the guest's memory stays bounded.
const StdinWindow = 256 << 10

// Kind says what a frame carries.
type Kind byte

// The kinds of frames. A stream begins with one KindRequest from the host and
// ends with one KindResult or KindError from the guest.
const (
	KindRequest  Kind = 'q' // host → guest: JSON of Request
	KindStdin    Kind = 'i' // host → guest: input of a command, bytes of a file
	KindStdinEnd Kind = 'e' // host → guest: no more input
	KindResize   Kind = 'r' // host → guest: JSON of Terminal
	KindSignal   Kind = 's' // host → guest: signal name without SIG, for the whole process group
	KindStdout   Kind = 'o' // guest → host: output, bytes of a file or a pack
	KindStderr   Kind = 'x' // guest → host
	KindStarted  Kind = 'p' // guest → host: the command runs; JSON of Started
	KindCredit   Kind = 'c' // guest → host, OpExec only: how many more bytes of stdin are welcome; 4 bytes, big-endian
	KindResult   Kind = 'd' // guest → host: JSON of the operation's result
	KindError    Kind = 'f' // guest → host: JSON of Failure
)

// Op names an operation of the guest.
type Op string

// The operations. Each says which fields of Request it reads and what
// KindResult holds.
const (
	OpHello     Op = "hello"     // → Hello
	OpExec      Op = "exec"      // Exec → Exit; stdin, stdout and stderr flow as frames
	OpRead      Op = "read"      // Path, Offset, Limit → FileInfo; KindStdout frames before it
	OpAppend    Op = "append"    // likewise, after what the file holds
	OpWrite     Op = "write"     // Path, Mode; KindStdin frames, KindStdinEnd → FileInfo
	OpPack      Op = "pack"      // Path → Empty; a tar stream as KindStdout frames
	OpUnpack    Op = "unpack"    // Path; a tar stream as KindStdin frames → Empty
	OpRemove    Op = "remove"    // Paths → Empty; missing ones are no error, directories left empty go too
	OpFollow    Op = "follow"    // a tar stream as KindStdin frames, see Follow → Followed; older guests do not know it
	OpProcesses Op = "processes" // → ProcessList: the commands of clients, and the processes outside of them
	OpHead      Op = "head"      // → Head: where the agent's own git history stands
	OpExport    Op = "export"    // Have, Want → Empty; a thin pack of Want ^Have as KindStdout frames
	OpModule    Op = "module"    // Path → Module: the same for a submodule, given by its path in the workspace
	OpTake      Op = "take"      // Path, Have, Want → Empty; OpExport of that submodule
	OpConfigure Op = "configure" // Configure → Empty; what only the keeper knows
	OpService   Op = "service"   // Service → ServiceList
	OpWatch     Op = "watch"     // → Empty; from now on each change of a service as a KindStdout frame, JSON of service.Status
	OpLogs      Op = "logs"      // Logs → LogEnd; LogLines as KindStdout frames before it
	OpForward   Op = "forward"   // Port → Empty, and from then on bare bytes of a connection to that port inside
	OpFiles     Op = "files"     // → Empty, and from then on SFTP both ways; older guests do not know it
	OpNetwork   Op = "network"   // → Empty, and from then on frames of an Egress (ServeNetwork)
	OpSSHAgent  Op = "ssh-agent" // Path → Empty; KindStarted when a program has connected to the socket there, its bytes as KindStdout frames, answers as KindStdin frames; older guests do not know it
	OpKill      Op = "kill"      // Limit → ProcessList: KILL to the largest process, or with Limit 0 to all; lists them
	OpBuffers   Op = "buffers"   // → Buffers: what sockets hold; older guests do not know it
	OpView      Op = "view"      // Path, Line or Offset, Limit, Hidden → View; KindStdout frames before it; no hidden file unless Hidden, nothing in a .git
	OpPut       Op = "put"       // Path, Mode, Expect, Visible; KindStdin frames, KindStdinEnd → FileInfo; nothing in a .git
	OpFind      Op = "find"      // Path, Glob, Limit → Found; before it lines of JSON of Entry as KindStdout frames
	OpSearch    Op = "search"    // Path, Glob, Pattern, Fold, Context, Limit → Found; likewise, of Match
	OpQuiesce   Op = "quiesce"   // Grace → Empty; ends services, TERM to all, KILL after Grace; the guest stays and runs no more commands
	OpShutdown  Op = "shutdown"  // Grace → Empty; TERM to all, KILL after Grace, then the guest ends
)

// Request is the first frame of a stream. Paths and arguments are bytes:
// Unix names need not be UTF-8, and JSON strings must.
type Request struct {
	Version int           `json:"version"`
	Op      Op            `json:"op"`
	Exec    *Exec         `json:"exec,omitempty"`
	Path    []byte        `json:"path,omitempty"`    // absolute, or relative to the workspace
	Paths   [][]byte      `json:"paths,omitempty"`   // relative to the workspace
	Mode    uint32        `json:"mode,omitempty"`    // permission bits for a new file; 0 means 0644
	Offset  int64         `json:"offset,omitempty"`  // bytes
	Line    int64         `json:"line,omitempty"`    // first line wanted, counted from 1
	Visible bool          `json:"visible,omitempty"` // refuse hidden files
	Hidden  bool          `json:"hidden,omitempty"`  // show hidden files too
	Expect  string        `json:"expect,omitempty"`  // SHA-256 of the content to replace, hexadecimal; empty: any
	Glob    []byte        `json:"glob,omitempty"`
	Pattern []byte        `json:"pattern,omitempty"` // regular expression (RE2)
	Fold    bool          `json:"fold,omitempty"`    // upper and lower case are the same
	Context int64         `json:"context,omitempty"` // lines to show before and after a match
	Limit   int64         `json:"limit,omitempty"`   // bytes, of OpKill processes; 0 means all
	Have    string        `json:"have,omitempty"`    // commit the host already has
	Want    string        `json:"want,omitempty"`
	Grace   time.Duration `json:"grace_ns,omitempty"`

	Configure *Configure    `json:"configure,omitempty"`
	Service   *ServiceOrder `json:"service,omitempty"`
	Logs      *LogQuery     `json:"logs,omitempty"`
	Port      uint16        `json:"port,omitempty"`
	Reason    string        `json:"reason,omitempty"`   // of a pause; for the keeper
	Since     int64         `json:"since_ns,omitempty"` // Unix time; for the keeper
}

// Exec describes one command.
type Exec struct {
	Argv      [][]byte      `json:"argv"`
	Dir       []byte        `json:"dir,omitempty"` // absolute, or relative to the workspace
	Env       []string      `json:"env,omitempty"` // K=V, added to and overriding the sandbox's own
	Terminal  *Terminal     `json:"terminal,omitempty"`
	Timeout   time.Duration `json:"timeout_ns,omitempty"` // 0: none
	Grace     time.Duration `json:"grace_ns,omitempty"`   // TERM to KILL; 0 means 2 s
	Iteration int           `json:"iteration,omitempty"`  // names the file that late output goes to
	Keep      int64         `json:"keep,omitempty"`       // longer output, in bytes, is kept in a file as well; 0: never
}

// Terminal is the size of a pseudo-terminal, in characters.
type Terminal struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
	Term string `json:"term,omitempty"` // value of TERM
}

// Started tells that the command was executed.
type Started struct {
	PID int `json:"pid"` // inside
}

// Exit is the result of OpExec.
type Exit struct {
	Code       int           `json:"code"`             // 128+n when a signal ended it
	Signal     string        `json:"signal,omitempty"` // name without SIG
	TimedOut   bool          `json:"timed_out,omitempty"`
	Duration   time.Duration `json:"duration_ns"`
	Background []Process     `json:"background,omitempty"` // processes it left running
	Output     string        `json:"output,omitempty"`     // file inside that takes their further output
	Kept       string        `json:"kept,omitempty"`       // file inside that has the whole output
	KeptBytes  int64         `json:"kept_bytes,omitempty"` // how much of the output that file has
}

// Process is a process inside.
type Process struct {
	PID     int    `json:"pid"`
	Parent  int    `json:"parent"`
	Group   int    `json:"group"`
	Command string `json:"command"` // argv joined by spaces, cut at 4 KiB
}

// ProcessList is the result of OpProcesses.
type ProcessList struct {
	Processes []Process `json:"processes"`
	Commands  []Running `json:"commands,omitempty"`
	Complete  bool      `json:"complete,omitempty"` // Commands are all there are; older guests do not know them
	Editors   []string  `json:"editors,omitempty"`  // names of internal/editor whose servers run, in commands and services too
}

// Buffers answers OpBuffers.
type Buffers struct {
	Bytes int64 `json:"bytes"`
}

// Running is a command that runs for a client.
type Running struct {
	Cycle    int       `json:"cycle"` // as in Exec.Iteration
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Terminal bool      `json:"terminal,omitempty"`
}

// FileInfo is the result of OpRead and OpWrite.
type FileInfo struct {
	Path []byte `json:"path"` // absolute, inside
	Size int64  `json:"size"`
	Mode uint32 `json:"mode"`

	Created bool `json:"created,omitempty"` // OpPut: there was none before
}

// View is the result of OpView.
type View struct {
	FileInfo
	Offset int64 `json:"offset"` // of the first byte that was sent
}

// Entry is a file that OpFind found.
type Entry struct {
	Path []byte `json:"path"` // relative to the requested directory
	Type string `json:"type"` // "file", "dir", "link" or "other"
	Size int64  `json:"size,omitempty"`
}

// Match is a line that OpSearch found.
type Match struct {
	Path []byte `json:"path"` // relative to the requested directory; its name for a file
	Line int64  `json:"line"`
	Text string `json:"text"`           // cut around the match
	Near bool   `json:"near,omitempty"` // it is only near a match
}

// Found is the result of OpFind and OpSearch.
type Found struct {
	Path    []byte `json:"path"`              // where it searched: absolute, inside
	Files   int    `json:"files"`             // that were searched
	Stopped string `json:"stopped,omitempty"` // why it did not search all: "limit", "time" or "size"
	Skipped int    `json:"skipped,omitempty"` // files too large to search, and unreadable ones
}

// Head is the result of OpHead.
type Head struct {
	Commit string `json:"commit"`           // empty when HEAD is unborn or there is no repository
	Branch string `json:"branch"`           // full ref name, empty when detached
	Damage string `json:"damage,omitempty"` // what keeps git from working; one of the Damage constants
}

// How a [Head] describes a repository that git cannot use.
const (
	DamageGone    = "gone"    // there is no .git
	DamageHead    = "head"    // HEAD cannot be read, or does not name a possible commit
	DamageObjects = "objects" // objects are missing
)

// Module is the result of OpModule.
type Module struct {
	Head
	Changed bool `json:"changed,omitempty"` // something in it is not committed
}

// Hello is the result of OpHello.
type Hello struct {
	Version int       `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// Empty is the result of operations that return nothing.
type Empty struct{}

// Failure is what KindError carries: fault.Error as data.
type Failure struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}
