package ssh

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"unicode"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// failed is the exit status that means that litterbox failed, and not the command.
const failed = 125

// mostEnv bounds the variables of one session.
const mostEnv = 64

// session is one command, shell or transfer of files.
type session struct {
	*server
	channel ssh.Channel

	env      []string
	terminal *wire.Terminal
	resize   chan wire.Terminal
	signals  chan string
	started  bool
	over     atomic.Bool
}

// session serves one channel of that type until both sides are done with it.
func (s *server) session(ctx context.Context, offered ssh.NewChannel) {
	channel, requests, err := offered.Accept()
	if err != nil {
		return // the client is gone
	}
	one := &session{server: s, channel: channel, resize: make(chan wire.Terminal, 1), signals: make(chan string, 16)}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for r := range requests {
		run, ok := one.ask(r)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if run == nil {
			continue
		}
		one.started = true
		go func() {
			defer close(done)
			one.finish(run(ctx))
		}()
	}
	// The client has closed the channel, or is gone. As after a hang-up of a
	// terminal, running programs are told so and then ended.
	if !one.over.Load() {
		one.signal("HUP")
	}
	cancel()
	if one.started {
		<-done
	}
	_ = channel.Close()
}

// ask obeys one request of the client. It returns what to run after the answer, if
// anything.
func (s *session) ask(r *ssh.Request) (run func(context.Context) (outcome, error), ok bool) {
	switch r.Type {
	case "env":
		return nil, s.setEnv(r.Payload)
	case "pty-req":
		return nil, s.setTerminal(r.Payload)
	case "window-change":
		return nil, s.setSize(r.Payload)
	case "signal":
		var wanted struct{ Name string }
		if ssh.Unmarshal(r.Payload, &wanted) != nil {
			return nil, false
		}
		return nil, s.signal(wanted.Name)
	case "exec":
		var wanted struct{ Command string }
		if s.started || ssh.Unmarshal(r.Payload, &wanted) != nil {
			return nil, false
		}
		return func(ctx context.Context) (outcome, error) { return s.exec(ctx, wanted.Command) }, true
	case "shell":
		return s.shell, !s.started
	case "subsystem":
		var wanted struct{ Name string }
		if s.started || ssh.Unmarshal(r.Payload, &wanted) != nil || wanted.Name != "sftp" {
			return nil, false
		}
		return s.files, true
	}
	// This machine's agent and display are not forwarded; with ssh-agent.enabled a
	// sandbox has SSH_AUTH_SOCK of litterbox's own.
	return nil, false
}

// setEnv takes a variable of the list that exec has. GIT_PROTOCOL is git's own
// variable for its protocol over the connection.
func (s *session) setEnv(payload []byte) bool {
	var wanted struct{ Name, Value string }
	if ssh.Unmarshal(payload, &wanted) != nil || len(s.env) >= mostEnv || strings.ContainsRune(wanted.Name+wanted.Value, 0) {
		return false
	}
	if !slices.Contains([]string{"LANG", "COLORTERM", "NO_COLOR", "TZ", "GIT_PROTOCOL"}, wanted.Name) && !strings.HasPrefix(wanted.Name, "LC_") ||
		strings.Contains(wanted.Name, "=") {
		return false
	}
	s.env = append(s.env, wanted.Name+"="+wanted.Value)
	return true
}

// setTerminal is RFC 4254, 6.2. The modes that follow stay the sandbox's own.
func (s *session) setTerminal(payload []byte) bool {
	var wanted struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}
	if s.started || ssh.Unmarshal(payload, &wanted) != nil || strings.ContainsRune(wanted.Term, 0) {
		return false
	}
	s.terminal = &wire.Terminal{Rows: size(wanted.Rows), Cols: size(wanted.Cols), Term: wanted.Term}
	return true
}

func (s *session) setSize(payload []byte) bool {
	var wanted struct{ Cols, Rows, Width, Height uint32 }
	if s.terminal == nil || ssh.Unmarshal(payload, &wanted) != nil {
		return false
	}
	select {
	case <-s.resize: // an older size that was never fetched
	default:
	}
	s.resize <- wire.Terminal{Rows: size(wanted.Rows), Cols: size(wanted.Cols), Term: s.terminal.Term}
	return true
}

func size(n uint32) uint16 { return uint16(min(n, 1<<15)) }

// signal passes a signal on that RFC 4254 names.
func (s *session) signal(name string) bool {
	known := []string{"ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2"}
	if !slices.Contains(known, name) {
		return false
	}
	select {
	case s.signals <- name:
		return true
	default: // a full queue is enough
		return false
	}
}

// outcome is how a session ended.
type outcome struct {
	exit  wire.Exit
	notes []string
}

// exec runs a command as sshd does, by a shell.
func (s *session) exec(ctx context.Context, command string) (outcome, error) {
	request := engine.ExecRequest{Argv: []string{"sh", "-c", command}, Command: command}
	if name, ok := transfers(command); ok {
		request.Lenient, request.Message = true, name+" over ssh"
	}
	return s.run(ctx, "exec", request)
}

// transfers reports whether a command is the other end of a program that copies,
// and which: reading files makes no step.
func transfers(command string) (string, bool) {
	words := strings.Fields(command)
	if len(words) < 2 {
		return "", false
	}
	name := path.Base(words[0])
	if name == "git" {
		name += "-" + words[1]
	}
	switch name {
	case "git-upload-pack", "git-receive-pack", "git-upload-archive":
		return name, true
	case "rsync":
		return name, words[1] == "--server"
	case "scp":
		return name, slices.Contains(words, "-t") || slices.Contains(words, "-f")
	}
	return "", false
}

// shell runs the user's shell, or sh.
func (s *session) shell(ctx context.Context) (outcome, error) {
	shell := "sh"
	if mine := path.Base(s.Shell); mine != "." && mine != "/" && mine != "sh" {
		found, err := s.Engine.FindProgram(ctx, s.place(), mine, false)
		if err != nil {
			return outcome{}, err
		}
		if found {
			shell = mine
		}
	}
	return s.run(ctx, "shell", engine.ExecRequest{Argv: []string{shell}, Message: "shell session"})
}

// run carries out a command, with an entry in the audit log that says which
// client asked.
func (s *session) run(ctx context.Context, kind string, request engine.ExecRequest) (done outcome, err error) {
	request.Dir, request.Name, request.Kind, request.Env = s.Host.Project, s.Host.Name, kind, s.env
	request.Streams = engine.Streams{
		Stdin: s.channel, Stdout: output{s.channel}, Stderr: output{s.channel.Stderr()},
		Terminal: s.terminal, Resize: s.resize, Signals: s.signals,
	}
	ctx, call, err := s.Engine.Begin(ctx, s.actor(), engine.Action{
		Name: kind, Dir: request.Dir, Sandbox: request.Name, Arguments: map[string]any{"command": orShell(request)},
	})
	if err != nil {
		return outcome{}, err
	}
	result, err := s.Engine.Exec(ctx, request)
	end := engine.Outcome{ExitCode: &result.Exit.Code, Err: err}
	if result.Iteration != nil {
		end.Commit = result.Iteration.Commit
	}
	return outcome{result.Exit, result.Notes}, errors.Join(err, call.End(end))
}

func orShell(request engine.ExecRequest) string {
	if request.Command != "" {
		return request.Command
	}
	return strings.Join(request.Argv, " ")
}

// files serves SFTP.
func (s *session) files(ctx context.Context) (done outcome, err error) {
	ctx, call, err := s.Engine.Begin(ctx, s.actor(), engine.Action{Name: "sftp", Dir: s.Host.Project, Sandbox: s.Host.Name})
	if err != nil {
		return outcome{}, err
	}
	made, notes, err := s.Engine.ServeFiles(ctx, engine.FilesRequest{Place: s.place(), Client: s.channel})
	end := engine.Outcome{Err: err}
	if made != nil {
		end.Commit = made.Commit
	}
	return outcome{notes: notes}, errors.Join(err, call.End(end))
}

// finish says how it ended, and closes the channel.
func (s *session) finish(done outcome, err error) {
	s.over.Store(true)
	for _, note := range done.notes {
		s.say("note: " + note)
	}
	if err != nil {
		s.say("litterbox: " + err.Error())
		if hint := fault.HintOf(err); hint != "" {
			s.say("  try: " + hint)
		}
		done.exit = wire.Exit{Code: failed}
	}
	if done.exit.Signal != "" {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal  string
			Core    bool
			Message string
			Lang    string
		}{Signal: done.exit.Signal}))
	} else {
		_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(done.exit.Code)}))
	}
	_ = s.channel.Close() // likewise: a client that is gone
}

// say writes a line where the client shows errors.
func (s *session) say(text string) {
	end := "\n"
	if s.terminal != nil {
		end = "\r\n" // the client's terminal is in raw mode
	}
	for line := range strings.Lines(text) {
		_, _ = io.WriteString(s.channel.Stderr(), printable(strings.TrimRight(line, "\n"))+end)
	}
}

// printable removes characters that a terminal would obey: parts of messages come
// from inside.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == ' ' {
			return r
		}
		return '?'
	}, text)
}

// output is a channel that fails as a closed pipe does.
type output struct{ to io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		err = syscall.EPIPE
	}
	return n, err
}
