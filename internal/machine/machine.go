// Package machine is the machines that a human has added, as records below the
// state directory. It knows how a machine is named and reached, and reaches
// none.
//
// Start reading at [Machine] and [Store].
package machine

import (
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The kinds of machines.
const SSH = "ssh" // a host that the user's ssh reaches

// Machine is the record of one.
type Machine struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	// ID distinguishes it from one of the same name that was added before or
	// elsewhere. Its state directory there has that name.
	ID string `json:"id"`

	Host     string `json:"host"` // as ssh takes it: [user@]host, a name of ssh_config(5) too
	Port     int    `json:"port,omitempty"`
	Identity string `json:"identity,omitempty"` // absolute path of a private key

	System       string    `json:"system"`       // in Go's words
	Architecture string    `json:"architecture"` // in Go's words
	Dir          string    `json:"dir"`          // the state directory there
	AddedAt      time.Time `json:"added_at"`
}

// Address is its address as a human writes it.
func (m Machine) Address() string {
	if m.Port == 0 {
		return "ssh://" + m.Host
	}
	return "ssh://" + m.Host + ":" + strconv.Itoa(m.Port)
}

// CheckName refuses what cannot name a machine. A name is a file's, a flag's value
// and part of a driver's name.
func CheckName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	if name == "" || len(name) > 63 || strings.Trim(name, letters+"-") != "" || !strings.Contains(letters, name[:1]) {
		return fault.New(fault.Invalid, "cannot call a machine %q: its name is made of a to z, 0 to 9 and dashes, and begins with no dash", name).
			WithHint("litterbox machine add build-host ssh://user@host")
	}
	return nil
}

// Parse reads ssh://[user@]host[:port] and the path of a private key, which may be
// empty, into the record that reaches a machine.
func Parse(name, address, identity string) (Machine, error) {
	m := Machine{Version: 1, Name: name, Kind: SSH}
	if err := CheckName(name); err != nil {
		return m, err
	}
	wrong := func(why string) error {
		return fault.New(fault.Invalid, "cannot read the address %q: %s", address, why).WithHint("litterbox machine add %s ssh://user@host:22", name)
	}
	at, err := url.Parse(address)
	switch {
	case err != nil:
		return m, wrong("it is not a URL")
	case at.Scheme != "ssh":
		return m, wrong("it does not begin with ssh://")
	case at.Path != "" && at.Path != "/" || at.RawQuery != "" || at.Fragment != "":
		return m, wrong("nothing stands behind the host and the port")
	case at.Hostname() == "":
		return m, wrong("it names no host")
	}
	if _, has := at.User.Password(); has {
		return m, wrong("a password cannot be kept; ssh takes keys")
	}
	m.Host = at.Hostname()
	if user := at.User.Username(); user != "" {
		m.Host = user + "@" + m.Host
	}
	// Anything that ssh would take for an option, a shell for a command or a
	// terminal for an escape is neither a host nor a user.
	if strings.HasPrefix(m.Host, "-") || strings.HasPrefix(at.Hostname(), "-") || strings.ContainsFunc(m.Host, unfit) {
		return m, wrong("the user or the host has letters that none has")
	}
	if port := at.Port(); port != "" {
		if m.Port, err = net.LookupPort("tcp", port); err != nil || m.Port == 0 {
			return m, wrong("the port is none")
		}
	}
	if identity != "" {
		if m.Identity, err = filepath.Abs(identity); err != nil || strings.ContainsAny(m.Identity, "\n\r\x00\"") {
			return m, fault.New(fault.Invalid, "cannot use the key %q: its path is none that ssh takes", identity)
		}
	}
	return m, nil
}

// unfit reports whether names of users and hosts never have a letter.
func unfit(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("'\"`$\\;&|<>(){}*?!#,", r)
}
