package limactl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The errors of limactl. Its own words follow as text.
var (
	ErrNotInstalled = fault.New(fault.Unavailable, "Lima is not installed")
	ErrRoot         = fault.New(fault.Unsupported, "Lima does not run as root")
	ErrNoInstance   = fault.New(fault.NotFound, "there is no such virtual machine")
	ErrExists       = fault.New(fault.AlreadyExists, "there is a virtual machine of that name")
	ErrNotStopped   = fault.New(fault.Conflict, "the virtual machine is not stopped")
	ErrNotRunning   = fault.New(fault.Conflict, "the virtual machine does not run")
	ErrProtected    = fault.New(fault.Denied, "the virtual machine is protected")
	ErrConfig       = fault.New(fault.Invalid, "Lima does not accept the configuration")
	ErrNoHypervisor = fault.New(fault.Unavailable, "the program that runs virtual machines is missing")
	ErrImage        = fault.New(fault.Unavailable, "the image of the virtual machine is not available")
	ErrDiskFull     = fault.New(fault.Unavailable, "the disk is full")
	ErrNotBooted    = fault.New(fault.Timeout, "the virtual machine did not come up")
	ErrEnded        = fault.New(fault.Unavailable, "the virtual machine ended while it started")
	ErrTooOld       = fault.New(fault.Unsupported, "this Lima is too old")
	ErrStrange      = fault.New(fault.Unavailable, "limactl gave an unexpected answer")
	ErrFailed       = fault.New(fault.Unavailable, "limactl could not do it")
)

// install is how to install Lima on systems without a package of it.
const install = "brew install lima"

// troubles maps limactl's words to errors: the first row whose text is in the
// log counts. The words are those of Lima 2.2 (pkg/instance, pkg/driver/qemu,
// pkg/hostagent, cmd/limactl) and of the programs it runs.
//
// To add one: a row, and a case in failure_test.go with a log line as it came.
var troubles = []struct {
	says []string
	err  *fault.Error
	hint string // NAME is the instance
}{
	{[]string{"no space left on device", "disk quota exceeded"}, ErrDiskFull, "df -h; limactl prune"},
	{[]string{"must not run as the root user"}, ErrRoot, "su USER -c 'litterbox …'"},
	{[]string{"unknown flag", "unknown command", "unknown shorthand flag"}, ErrTooOld, "limactl --version; " + install},
	{[]string{"instance is protected"}, ErrProtected, "limactl unprotect NAME"},
	{[]string{"already exists"}, ErrExists, "limactl list NAME"},
	{[]string{".yaml` not found"}, ErrImage, "limactl create --list-templates"},
	{[]string{"unmatched instances", "/lima.yaml: no such file or directory", "NAME` not found"}, ErrNoInstance, "litterbox machine start"},
	{[]string{"expected status `Stopped`", "cannot clone a running instance", "cannot edit a running instance", "seems running"}, ErrNotStopped, "litterbox machine stop"},
	{[]string{"expected status `Running`"}, ErrNotRunning, "litterbox machine start"},
	{[]string{"failed to initialize kvm", "Could not access KVM"}, ErrNoHypervisor, "sudo usermod -aG kvm \"$USER\"  # then log in again"},
	{[]string{"failed to find the QEMU binary", "executable file not found in $PATH", "swtpm not found", "failed to locate virtiofsd", "could not find firmware"}, ErrNoHypervisor, hypervisor},
	{[]string{"failed to unmarshal YAML", "failed to validate YAML", "the YAML is invalid", "is not a registered driver", "unknown or unsupported VM type", "unknown field", "field `", "disk shrinking"}, ErrConfig, ""},
	{[]string{"failed to download", "attempted to download", "is not acceptable as a disk image", "no images are configured", "expected digest", "Could not open"}, ErrImage, "litterbox machine logs"},
	{[]string{"failed to satisfy the", "did not receive an event with the `running`", "context deadline exceeded", "did not start up in", "degraded, status"}, ErrNotBooted, "litterbox machine logs"},
	{[]string{"exiting, status", "host agent process has exited"}, ErrEnded, "litterbox machine logs"},
}

// hypervisor is how the program is installed that Lima runs where the system has
// none of its own.
const hypervisor = "brew install qemu; on Debian and Ubuntu: sudo apt-get install qemu-system qemu-utils"

// failure says why a run failed. The cause is what limactl said last as fatal,
// and what it said before decides with it: a full disk shows in a warning.
func failure(about call, log *logged, err error) error {
	log.mu.Lock()
	said, all := log.cause(), strings.Join(append(log.kept, log.cause()), "\n")
	log.mu.Unlock()
	if said == "" {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fault.Wrap("", fault.Wrap("", ErrFailed, "%v", err), "cannot %s", about)
		}
		said = err.Error()
	}
	found, hint := match(about, said, all)
	if found == nil || errors.Is(found, ErrEnded) {
		// The host agent logs for itself, and limactl says only where.
		if cause := lastWords(about.log); cause != "" {
			if one, mend := match(about, cause); one != nil {
				found, hint = one, mend
			}
			said = cause
		}
	}
	if found == nil {
		found, hint = ErrFailed, "litterbox machine logs"
	}
	return fault.Wrap("", fault.Wrap("", found, "%s", said), "cannot %s", about).WithHint("%s", hint)
}

// match finds the row of troubles whose words are in a text: in the first text
// before the second.
func match(about call, texts ...string) (found *fault.Error, hint string) {
	for _, text := range texts {
		for _, one := range troubles {
			for _, word := range one.says {
				if about.name == "" && strings.Contains(word, "NAME") || !strings.Contains(text, strings.ReplaceAll(word, "NAME", about.name)) {
					continue
				}
				hint := strings.ReplaceAll(one.hint, "NAME", about.name)
				if hint == "" {
					hint = about.hint
				}
				return one.err, hint
			}
		}
	}
	return nil, ""
}

// lastWords is the last thing that a log calls fatal, or an error.
func lastWords(path string) string {
	if path == "" {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	const most = 256 << 10
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	log := &logged{}
	if _, err := io.Copy(log, io.LimitReader(file, most)); err != nil {
		return ""
	}
	log.end()
	switch {
	case log.fatal != "":
		return log.fatal
	case log.qemu != "":
		return log.qemu
	}
	if len(log.errors) > 0 {
		return log.errors[len(log.errors)-1]
	}
	return ""
}

// logged takes limactl's log: JSON lines, and others that its libraries print.
type logged struct {
	note func(string)

	mu      sync.Mutex
	partial []byte
	fatal   string
	plain   string   // the last line that is no JSON
	kept    []string // warnings and errors, the last of them
	errors  []string // errors alone
	qemu    string   // the last line that QEMU printed as an error, in a host agent's log
}

// Bounds of what is kept of a log.
const (
	longestLine = 64 << 10
	longestText = 2000
	keptLines   = 40
)

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if len(l.partial)+len(line) <= longestLine {
			l.partial = append(l.partial, line...)
		}
		if !ended {
			break
		}
		l.line(l.partial)
		l.partial, rest = l.partial[:0], after
	}
	return len(p), nil
}

// end takes a last line without an end.
func (l *logged) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.line(l.partial)
		l.partial = nil
	}
}

func (l *logged) line(line []byte) {
	var entry struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
		Error string `json:"error"`
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if json.Unmarshal(line, &entry) != nil || entry.Level == "" {
		// Before limactl has read its flags it logs as text.
		text := strings.TrimPrefix(string(line), "limactl: ")
		if _, msg, ok := strings.Cut(text, " level=fatal msg="); ok {
			text = strings.Trim(strings.ReplaceAll(msg, `\"`, `"`), `"`)
		}
		l.plain = short(text)
		return
	}
	text := entry.Msg
	if entry.Error != "" {
		text += ": " + entry.Error
	}
	text = short(text)
	switch entry.Level {
	case "fatal", "panic":
		l.fatal = text
	case "error", "warning":
		if entry.Level == "error" {
			l.errors = append(l.errors[max(0, len(l.errors)-keptLines):], text)
		}
		if l.kept = append(l.kept, text); len(l.kept) > keptLines {
			l.kept = l.kept[1:]
		}
	case "debug":
		if said, ok := strings.CutPrefix(text, "qemu[stderr]: "); ok {
			l.qemu = said
		}
	case "info":
		if l.note != nil {
			l.note(text)
		}
	}
}

// cause is why limactl ended, in its words.
func (l *logged) cause() string {
	if l.fatal != "" {
		return l.fatal
	}
	return l.plain
}

// unknown is a warning of a key that Lima does not know, empty without one.
func (l *logged) unknown() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.kept {
		if strings.HasPrefix(line, "Non-strict YAML") {
			return line
		}
	}
	return ""
}

// short makes one line of a message that is no longer than it needs to be.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "") + "…"
	}
	return text
}

// Hint is how Lima gets onto this machine.
func Hint() string {
	if runtime.GOOS == "darwin" {
		return "brew install lima git"
	}
	return install
}
