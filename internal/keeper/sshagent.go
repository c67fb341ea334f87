package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/sshagent"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The files of the human's ssh-agent, in the directory of a sandbox.
const (
	// SSHAgentFile says which agent is in use; without it there is none. The
	// engine writes it before each start.
	SSHAgentFile = "ssh-agent.json"
	// SSHAgentDir is mounted in the sandbox; it holds the proxy's socket.
	SSHAgentDir    = "ssh-agent"
	SSHAgentSocket = "socket"
	// KnownHostsFile is what the host knew of hosts when the sandbox was started.
	KnownHostsFile = "known_hosts"
)

// SSHAgent is the content of SSHAgentFile.
type SSHAgent struct {
	Socket string   `json:"socket"` // of the human's agent
	Keys   []string `json:"keys,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`

	// Where nothing of this machine is mounted, the guest makes the socket Inside, and
	// KnownHosts is the path at which it is lent KnownHostsFile. Empty otherwise.
	Inside     string `json:"inside,omitempty"`
	KnownHosts string `json:"known_hosts,omitempty"`
}

// The keeper's own operations on signatures.
const (
	OpSignatures wire.Op = "keeper.signatures" // → Signatures
	OpSign       wire.Op = "keeper.sign"       // Reason is the number of one that waits → Empty
	OpNoSign     wire.Op = "keeper.no-sign"    // likewise
)

// Signature is one that waits for the human.
type Signature struct {
	ID      int       `json:"id"`
	Since   time.Time `json:"since"`
	Purpose string    `json:"purpose"` // one sentence for humans
	Key     string    `json:"key"`
	Comment string    `json:"comment"`
}

// Signatures are the signatures that wait.
type Signatures struct {
	Waiting []Signature `json:"waiting"`
	Late    []Signature `json:"late,omitempty"` // the last that were not answered in time
}

// Bounds on what a sandbox can make wait for the keeper and the human.
const (
	signPatience  = 2 * time.Minute
	maxSignatures = 16
	maxAgents     = 16 // connections to the agent
)

// signer is the human's ssh-agent as the sandbox sees it.
type signer struct {
	k        *keeper
	agent    SSHAgent
	listener *net.UnixListener
	room     chan struct{}
	patience time.Duration // of a signature with the human

	mu      sync.Mutex
	next    int
	waiting []*waitingSignature
	late    []Signature // not answered in time, at most maxSignatures
}

type waitingSignature struct {
	Signature
	answer chan bool
}

// openSSHAgent listens for programs of the sandbox, where the human has allowed
// that.
func (k *keeper) openSSHAgent(ctx context.Context) error {
	dir := k.order.Spec.StateDir
	data, err := os.ReadFile(filepath.Join(dir, SSHAgentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s := &signer{k: k, room: make(chan struct{}, maxAgents), patience: signPatience}
	if err == nil {
		err = seal.Decode(data, &s.agent)
	}
	if err == nil && s.agent.Inside == "" {
		s.listener, err = listenInside(filepath.Join(dir, SSHAgentDir), SSHAgentSocket)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot offer your ssh-agent to sandbox %q", k.order.Spec.Name)
	}
	k.signer = s
	if s.agent.Inside != "" {
		go s.serveFar(ctx)
		return k.lendKnownHosts()
	}
	go s.serve(ctx)
	context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	return nil
}

func (s *signer) proxy() *sshagent.Proxy {
	return &sshagent.Proxy{Dial: s.dial, Offers: s.offers, Decide: s.decide}
}

func (s *signer) serve(ctx context.Context) {
	proxy := s.proxy()
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		select {
		case s.room <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		go func() {
			defer func() { <-s.room }()
			_ = proxy.Serve(ctx, conn) // a protocol error of the program ends it
		}()
	}
}

func (s *signer) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", s.agent.Socket)
}

func (s *signer) offers(fingerprint, comment string) bool {
	return len(s.agent.Keys) == 0 || slices.Contains(s.agent.Keys, fingerprint) || slices.Contains(s.agent.Keys, comment)
}

// decide allows a signature for a listed host, and asks about every other one.
func (s *signer) decide(ctx context.Context, r sshagent.Request) error {
	var names []string
	if r.HostKey != nil {
		known, err := os.ReadFile(filepath.Join(s.k.order.Spec.StateDir, KnownHostsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		names = sshagent.HostNames(known, r.HostKey)
	}
	purpose := sshagent.Describe(r.Purpose, names)
	verdict, why := "refused", "you refused it"
	switch {
	case slices.ContainsFunc(names, func(name string) bool { return slices.Contains(s.agent.Hosts, name) }):
		verdict, why = "signed", "the host is listed in ssh-agent.hosts"
	default:
		answered, allowed := s.ask(ctx, purpose, r)
		if allowed {
			verdict, why = "signed", "you approved it"
		} else if !answered {
			why = "nothing was answered in time"
		}
	}
	s.k.record(sandbox.EventSignature, map[string]string{"purpose": purpose, "key": r.Key, "verdict": verdict, "reason": why})
	if verdict != "signed" {
		return errors.New(why)
	}
	return nil
}

// ask waits for the human.
func (s *signer) ask(ctx context.Context, purpose string, r sshagent.Request) (answered, allowed bool) {
	s.mu.Lock()
	if len(s.waiting) >= maxSignatures {
		s.mu.Unlock()
		return false, false
	}
	s.next++
	w := &waitingSignature{Signature{s.next, time.Now(), purpose, r.Key, r.Comment}, make(chan bool, 1)}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	s.k.record(sandbox.EventSignature, map[string]string{"purpose": purpose, "key": r.Key, "verdict": "asked",
		"reason": fmt.Sprintf("litterbox approve %s %d", s.k.order.Spec.Name, w.ID)})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a client that asks on a terminal is one way to answer
		if answered, allowed := s.k.net.askers.sign(ctx, w.Signature); answered {
			_ = s.k.sign(strconv.Itoa(w.ID), allowed) // else it was answered already
		}
	}()
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	defer s.forget(w)
	select {
	case allowed := <-w.answer:
		return true, allowed
	case <-patience.C:
		s.tooLate(w.Signature)
	case <-ctx.Done():
	}
	return false, false
}

func (s *signer) forget(w *waitingSignature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *waitingSignature) bool { return other == w })
}

func (s *signer) tooLate(one Signature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late[max(0, len(s.late)-maxSignatures+1):], one)
}

// signatures answers OpSignatures.
func (k *keeper) signatures() Signatures {
	list := Signatures{Waiting: []Signature{}}
	if k.signer == nil {
		return list
	}
	k.signer.mu.Lock()
	defer k.signer.mu.Unlock()
	for _, w := range k.signer.waiting {
		list.Waiting = append(list.Waiting, w.Signature)
	}
	list.Late = slices.Clone(k.signer.late)
	return list
}

// sign answers OpSign and OpNoSign.
func (k *keeper) sign(number string, allow bool) error {
	id, err := strconv.Atoi(number)
	if err == nil && k.signer != nil {
		k.signer.mu.Lock()
		defer k.signer.mu.Unlock()
		for i, w := range k.signer.waiting {
			if w.ID == id {
				k.signer.waiting = slices.Delete(k.signer.waiting, i, i+1) // one answer each
				w.answer <- allow
				return nil
			}
		}
	}
	return fault.New(fault.NotFound, "in sandbox %q no signature with the number %s waits", k.order.Spec.Name, strconv.Quote(number)).
		WithHint("litterbox approve %s", k.order.Spec.Name)
}

// ReadSignatures asks a keeper which signatures wait.
func ReadSignatures(ctx context.Context, s wire.Stream) (Signatures, error) {
	var list Signatures
	err := wire.AskFor(ctx, s, wire.Request{Op: OpSignatures}, &list)
	return list, err
}
