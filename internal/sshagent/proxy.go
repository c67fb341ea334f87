package sshagent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Request is one signature that a program asks for.
type Request struct {
	Purpose
	Key     string // its fingerprint, as ssh-add -l shows it
	Comment string // of the key
}

// Proxy answers programs of a sandbox in place of the human's agent. It is
// safe for concurrent use.
type Proxy struct {
	// Dial connects to the human's agent. It is called once for each connection
	// of a program, at its first request.
	Dial func(context.Context) (net.Conn, error)
	// Offers reports whether a key is shown and may be used, given its
	// fingerprint and its comment.
	Offers func(fingerprint, comment string) bool
	// Decide allows a signature by returning nil. Its error is for the record;
	// the program learns only that there is no signature. It may wait for a
	// human until ctx ends.
	Decide func(ctx context.Context, r Request) error
}

// Serve speaks the agent's protocol on conn until it ends. It closes conn.
func (p *Proxy) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	s := &session{proxy: p, ctx: ctx}
	defer s.close()
	for {
		message, err := receive(conn)
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := s.answer(message)
		if err != nil {
			answer = []byte{failure} // the protocol has no messages
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return nil // the program is gone
		}
	}
}

// The messages answered (draft-ietf-sshm-ssh-agent, section 6.1). All others,
// which would change the agent, fail.
const (
	failure     = 5
	success     = 6
	requestKeys = 11
	answerKeys  = 12
	requestSign = 13
	answerSign  = 14
	requestMore = 27
)

const maxMessage = 256 << 10 // as OpenSSH's agent has it

func receive(conn io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > maxMessage {
		return nil, errors.New("the message is empty or too large")
	}
	message := make([]byte, size)
	_, err := io.ReadFull(conn, message)
	return message, err
}

// session is one connection of a program. Requests on it come one by one.
type session struct {
	proxy *Proxy
	ctx   context.Context

	conn  net.Conn
	real  agent.ExtendedAgent
	bound []binding
}

// errRefused refuses a request without saying more.
var errRefused = errors.New("refused")

func (s *session) answer(message []byte) ([]byte, error) {
	switch message[0] {
	case requestKeys:
		keys, err := s.keys()
		if err != nil {
			return nil, err
		}
		answer := binary.BigEndian.AppendUint32([]byte{answerKeys}, uint32(len(keys)))
		for _, key := range keys {
			answer = append(answer, ssh.Marshal(struct{ Blob, Comment string }{string(key.Marshal()), key.Comment})...)
		}
		return answer, nil
	case requestSign:
		var request struct {
			Key   []byte
			Data  []byte
			Flags uint32
		}
		if err := ssh.Unmarshal(message[1:], &request); err != nil {
			return nil, err
		}
		signature, err := s.sign(request.Key, request.Data, agent.SignatureFlags(request.Flags))
		if err != nil {
			return nil, err
		}
		return append([]byte{answerSign}, ssh.Marshal(struct{ Signature []byte }{ssh.Marshal(*signature)})...), nil
	case requestMore:
		var request struct {
			Name     string
			Contents []byte `ssh:"rest"`
		}
		if err := ssh.Unmarshal(message[1:], &request); err != nil {
			return nil, err
		}
		return []byte{success}, s.extend(request.Name, request.Contents)
	}
	return nil, errRefused
}

func (s *session) agent() (agent.ExtendedAgent, error) {
	if s.real == nil {
		conn, err := s.proxy.Dial(s.ctx)
		if err != nil {
			return nil, err
		}
		s.conn, s.real = conn, agent.NewClient(conn)
	}
	return s.real, nil
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing is being asked
	}
}

// keys returns the offered keys of the human's agent.
func (s *session) keys() ([]*agent.Key, error) {
	real, err := s.agent()
	if err != nil {
		return nil, err
	}
	keys, err := real.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(key *agent.Key) bool { return !s.proxy.Offers(ssh.FingerprintSHA256(key), key.Comment) }), nil
}

func (s *session) sign(blob, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	offered, err := s.keys()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(offered, func(key *agent.Key) bool { return bytes.Equal(key.Marshal(), blob) })
	if at < 0 {
		return nil, errRefused
	}
	key := offered[at]
	purpose, err := purposeOf(data, key, s.bound)
	if err != nil {
		return nil, err
	}
	if err := s.proxy.Decide(s.ctx, Request{Purpose: purpose, Key: ssh.FingerprintSHA256(key), Comment: key.Comment}); err != nil {
		return nil, err
	}
	return s.real.SignWithFlags(key, data, flags)
}

// extend binds sessions; no extension reaches the human's agent.
func (s *session) extend(name string, contents []byte) error {
	if name != extension || len(s.bound) >= maxBindings {
		return errRefused
	}
	b, err := bind(contents)
	if err == nil {
		s.bound = append(s.bound, b)
	}
	return err
}
