package remote

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// failed says why a script did not reach its word, from what ssh and the host
// said. Each of these errors is driver.ErrUnreachable: the machine, and what
// runs there, may be as before.
func (h *SSH) failed(s *sshStream, format string, args ...any) error {
	_ = s.Close() // then everything has been said
	said := s.said.String()
	why, hint := h.explain(said)
	err := fault.Wrap(fault.Unavailable, unreached(why), format, args...)
	err.Hint = hint
	return err
}

// unreached is driver.ErrUnreachable in other words.
type unreached string

func (why unreached) Error() string { return string(why) }

// Unwrap returns the underlying error.
func (unreached) Unwrap() error { return driver.ErrUnreachable }

// explain finds out what ssh's words mean (readconf.c, sshconnect.c and
// sshconnect2.c of OpenSSH), and what to type.
func (h *SSH) explain(said string) (why, hint string) {
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(said, word) {
				return true
			}
		}
		return false
	}
	command := "ssh "
	if h.Machine.Port != 0 {
		command += fmt.Sprintf("-p %d ", h.Machine.Port)
	}
	if h.Machine.Identity != "" {
		command += "-i " + shown(h.Machine.Identity) + " "
	}
	command += h.Machine.Host
	host := h.Machine.Host[strings.LastIndexByte(h.Machine.Host, '@')+1:]
	if h.Machine.Port != 0 {
		host = fmt.Sprintf("'[%s]:%d'", host, h.Machine.Port)
	}
	switch {
	case has("REMOTE HOST IDENTIFICATION HAS CHANGED"):
		return "its host key has changed: it was reinstalled, or another host has taken its place", "ssh-keygen -R " + host + "  # once you know why"
	case has("Host key verification failed", "No matching host key", "host key is known for"):
		return "its host key is not known yet", command + " true  # shows the fingerprint, and asks"
	case has("Too many authentication failures"):
		return "ssh offered more keys than it accepts", "litterbox machine remove " + h.Machine.Name + ", and add it with --identity FILE"
	case has("Permission denied ("):
		return "it accepts none of your keys", "ssh-copy-id " + strings.TrimPrefix(command, "ssh ")
	case has("Could not resolve hostname"):
		return "its name is not known: " + last(said), command + " true"
	case has("Permission denied", "cannot create", "Read-only file system", "No space left", "Disk quota"):
		return last(said), command + " df -h ." // of the shell there
	case strings.TrimSpace(said) == "":
		return "the connection ended", command + " true"
	}
	return last(said), command + " true"
}

// last returns the last line that is not empty.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return shown(lines[len(lines)-1])
}

// shown removes what a terminal would obey.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}
