package sshagent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// Kind is the kind of purpose of a signature.
type Kind string

// The kinds.
const (
	Login Kind = "login" // to a host, over SSH
	File  Kind = "file"  // of something: a commit, a tag, a file
)

// Purpose is what a signature is for, according to the data to sign.
type Purpose struct {
	Kind      Kind
	User      string // who logs in
	Namespace string // of a file: "git" for commits and tags
	// HostKey is the key of the host that the login goes to; nil if the client
	// has not proved it.
	HostKey ssh.PublicKey
}

// OpenSSH's names for the ways to log in with a key.
const (
	publicKey = "publickey"
	hostBound = "publickey-hostbound-v00@openssh.com"
)

// errForeign refuses data of an unknown kind.
var errForeign = errors.New("the data to sign is neither a login over SSH nor a signature of ssh-keygen")

// maxName bounds names that are shown to a human.
const maxName = 128

// login is SSH_MSG_USERAUTH_REQUEST as it is signed (RFC 4252, section 7), with
// the session before it.
type login struct {
	Session   []byte
	Message   byte
	User      string
	Service   string
	Method    string
	Signed    bool
	Algorithm string
	Key       []byte
	Rest      []byte `ssh:"rest"`
}

// signed is the data that ssh-keygen -Y sign signs, after the magic (PROTOCOL.sshsig).
type signed struct {
	Namespace string
	Reserved  string
	Algorithm string
	Hash      []byte
}

const signedMagic = "SSHSIG"

// purposeOf reads the purpose of data, for a signature with key. Logins must
// be of a session in bound, unless bound is empty.
func purposeOf(data []byte, key ssh.PublicKey, bound []binding) (Purpose, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(signedMagic)); ok {
		var s signed
		if ssh.Unmarshal(rest, &s) != nil || s.Namespace == "" || !shown(s.Namespace) {
			return Purpose{}, errForeign
		}
		return Purpose{Kind: File, Namespace: s.Namespace}, nil
	}
	const request = 50 // SSH_MSG_USERAUTH_REQUEST
	var l login
	if ssh.Unmarshal(data, &l) != nil || l.Message != request || l.Service != "ssh-connection" || !l.Signed || !shown(l.User) || len(l.Session) < 16 {
		return Purpose{}, errForeign
	}
	if !bytes.Equal(l.Key, key.Marshal()) {
		return Purpose{}, errors.New("the login is one with another key")
	}
	p := Purpose{Kind: Login, User: l.User}
	for _, b := range bound {
		if bytes.Equal(b.session, l.Session) {
			p.HostKey = b.host
		}
	}
	if len(bound) > 0 && p.HostKey == nil {
		return Purpose{}, errors.New("the login is one of another session than the host has signed")
	}
	switch l.Method {
	case publicKey:
		if len(l.Rest) > 0 {
			return Purpose{}, errForeign
		}
	case hostBound:
		var host struct{ Key []byte }
		if ssh.Unmarshal(l.Rest, &host) != nil {
			return Purpose{}, errForeign
		}
		if p.HostKey == nil || !bytes.Equal(host.Key, p.HostKey.Marshal()) {
			return Purpose{}, errors.New("the login names another host key than the one that has signed the session")
		}
	default:
		return Purpose{}, errForeign
	}
	return p, nil
}

// shown reports whether a name can be shown as it is.
func shown(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// binding is a session whose identifier a host key has signed.
type binding struct {
	host    ssh.PublicKey
	session []byte
}

// extension is the name under which OpenSSH binds sessions.
const extension = "session-bind@openssh.com"

// maxBindings bounds the number of sessions of one connection to the agent.
const maxBindings = 16

// bind verifies a session-bind message.
func bind(contents []byte) (binding, error) {
	var m struct {
		Host       []byte
		Session    []byte
		Signature  []byte
		Forwarding bool
	}
	if err := ssh.Unmarshal(contents, &m); err != nil {
		return binding{}, err
	}
	host, err := ssh.ParsePublicKey(m.Host)
	if err != nil {
		return binding{}, err
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(m.Signature, &signature); err != nil {
		return binding{}, err
	}
	if len(m.Session) < 16 || len(m.Session) > 128 {
		return binding{}, errors.New("the identifier of the session is none")
	}
	if err := host.Verify(m.Session, &signature); err != nil {
		return binding{}, err
	}
	if m.Forwarding {
		return binding{}, errors.New("the agent is not forwarded to other hosts")
	}
	return binding{host: host, session: bytes.Clone(m.Session)}, nil
}

// HostNames finds the names that a known_hosts file has for a host key. Hashed names
// cannot be read; a name after @revoked or @cert-authority is not the name of a host.
func HostNames(knownHosts []byte, key ssh.PublicKey) []string {
	var names []string
	for len(knownHosts) > 0 {
		marker, hosts, known, _, rest, err := ssh.ParseKnownHosts(knownHosts)
		if err != nil {
			// An unreadable line hides none after it.
			at := bytes.IndexByte(knownHosts, '\n')
			if at < 0 {
				break
			}
			knownHosts = knownHosts[at+1:]
			continue
		}
		knownHosts = rest
		if marker != "" || !bytes.Equal(known.Marshal(), key.Marshal()) {
			continue
		}
		for _, host := range hosts {
			if !strings.HasPrefix(host, "|") && !strings.ContainsAny(host, "*?!") && shown(host) {
				names = append(names, host)
			}
		}
	}
	return names
}

// Describe words a purpose for the human who is asked; names are the names of
// its host key.
func Describe(p Purpose, names []string) string {
	switch {
	case p.Kind == File && p.Namespace == "git":
		return "sign a commit or a tag of git"
	case p.Kind == File:
		return fmt.Sprintf("sign a file for %q", p.Namespace)
	case p.HostKey == nil:
		return fmt.Sprintf("log in as %q to a host that the program does not prove", p.User)
	case len(names) == 0:
		return fmt.Sprintf("log in as %q to a host that your known_hosts does not name, with the host key %s", p.User, ssh.FingerprintSHA256(p.HostKey))
	}
	return fmt.Sprintf("log in as %q to %s", p.User, strings.Join(names[:min(len(names), 4)], ", "))
}
