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
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/inject"
	"github.com/litterbox-sandbox/litterbox/internal/egress/intercept"
	"github.com/litterbox-sandbox/litterbox/internal/egress/renew"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/rest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The files of a sandbox's network, in its directory.
const (
	PolicyFile = "policy.json"   // the revision in force, written by the engine
	SeenFile   = "network.jsonl" // attempts, written by the keeper
	namesFile  = "names.json"    // which of our addresses stands for which name
	// authorityFile holds the key that signs the sandbox's own certificates. It is
	// made when a rule first looks at requests inside TLS.
	authorityFile = "authority.pem"
)

// The files that a sandbox has mounted as its trusted roots, below its
// directory; the engine writes them before each start. The first holds all of
// the host's, the second only the sandbox's own.
const (
	RootsFile    = "roots.pem"
	OwnRootsFile = "roots-own.pem"
)

// The keeper's own operations on the network.
const (
	OpPolicy  wire.Op = "keeper.policy"  // read PolicyFile again → Empty
	OpDeploy  wire.Op = "keeper.deploy"  // the same while the sandbox is paused for it → Empty
	OpNetwork wire.Op = "keeper.network" // → SeenFile is up to date; Empty
	OpFollow  wire.Op = "keeper.follow"  // observations as KindStdout frames, one JSON each, until the client goes
)

// saveEvery is how soon an observation goes to the disk, and how often while
// connections are open.
const saveEvery = 5 * time.Second

// network is the only way out of the sandbox: it answers names, decides, dials
// and copies, by the policy in force.
type network struct {
	dir      string
	records  *store.Store
	revision atomic.Pointer[egress.Policy] // as it is on the disk
	policy   atomic.Pointer[egress.Policy] // with what was allowed once
	askers   *askers
	proxy    *egress.Proxy
	resolver *egress.Resolver
	seen     *egress.Observations
	inspect  *intercept.Inspector
	changed  atomic.Bool
	news     chan struct{} // signaled when there is something to save
	refusals *refusals
	costs    *costs
	secrets  *secret.Set
	lent     lent
	logins   logins
	renewals *renew.Hook

	lend func() error // shows the roots to a place that nothing of the host is mounted in

	rest      *rest.Rest
	room      chan struct{} // holds one for every connection that is open
	enforcing sync.Mutex

	saving sync.Mutex
	closed bool // guarded by saving
}

// openNetwork prepares the network of the sandbox in dir. Without a policy
// file nothing is allowed.
func openNetwork(dir string, records *store.Store, emit func(*sandbox.Event) error, costs *costs, rest *rest.Rest, lend func() error) (*network, error) {
	n := &network{dir: dir, rest: rest, lend: lend, news: make(chan struct{}, 1), records: records, seen: egress.NewObservations(0), room: make(chan struct{}, connections()), refusals: newRefusals(emit), costs: costs, secrets: secret.NewSet()}
	n.openSecrets()
	n.openLogins()
	n.renewals = renew.New(n.logins.all)
	n.inspect = intercept.New(intercept.Options{
		Authority: filepath.Join(dir, authorityFile),
		Roots:     []string{filepath.Join(dir, RootsFile), filepath.Join(dir, OwnRootsFile)},
		// The hook that puts secrets in comes after all that must see no value. Only
		// the one that renews the values comes later.
		Hooks: []intercept.Hook{costs.hook, inject.New(n.secrets), n.renewals},
	})
	n.askers = &askers{changed: n.enforce}
	if err := n.reload(); err != nil {
		return nil, err
	}
	names, err := egress.NewNames(filepath.Join(dir, namesFile))
	if err != nil {
		return nil, err
	}
	if err := n.seen.Load(filepath.Join(dir, SeenFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	upstream, err := egress.UpstreamFromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	n.resolver = &egress.Resolver{Policy: n.policy.Load, Names: names, Observe: n.observe, Await: n.askers.await}
	n.proxy = egress.New(egress.Options{Policy: n.policy.Load, Names: names, Upstream: upstream, Observe: n.observe,
		MaxConns: connections(), MaxExchanges: exchanges(), Inspector: n.inspect, Ask: n.askers.ask})
	return n, nil
}

func (n *network) observe(o egress.Observation) {
	o.Host, o.Path = n.records.Redacts().ByValue(o.Host), n.records.Redacts().ByValue(o.Path)
	n.seen.Add(o)
	n.changed.Store(true)
	signal(n.news)
	n.refusals.note(o)
}

// reload puts the revision on disk in force, also for live connections.
func (n *network) reload() error {
	policy := &egress.Policy{}
	data, err := os.ReadFile(filepath.Join(n.dir, PolicyFile))
	if err == nil {
		err = seal.Decode(data, policy)
	}
	if errors.Is(err, seal.ErrDamaged) {
		fmt.Fprintln(os.Stderr, "keeper: the network policy is damaged, so nothing is allowed:", err)
		policy, err = &egress.Policy{}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot read the network policy")
	}
	// At once: the steps below write to files in the sandbox, which must not be
	// able to hold up a narrower policy. Until its authority is trusted there, a
	// program cannot reach an intercepted host.
	n.revision.Store(policy)
	n.enforce()
	if policy.Inspects() || n.costs.settings().Looks() || n.secrets.State().Inspects() {
		return n.prepare()
	}
	return nil
}

// prepare lets the sandbox trust its own authority.
func (n *network) prepare() error {
	if err := n.inspect.Prepare(); err != nil {
		return err
	}
	return n.lend()
}

// enforce puts the revision in force, with what was allowed once.
func (n *network) enforce() {
	n.enforcing.Lock()
	defer n.enforcing.Unlock()
	policy := *n.revision.Load()
	policy.Allow = slices.Concat(policy.Allow, n.askers.granted())
	n.policy.Store(&policy)
	if n.proxy != nil {
		n.proxy.Recheck()
	}
}

// serve takes the connections that the guest hands over until the link ends.
func (n *network) serve(ctx context.Context, d driver.Driver, lease driver.Lease) error {
	conn, err := d.Dial(ctx, lease)
	if err != nil {
		return err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.Join(fault.New(fault.Unsupported, "cannot pass descriptors over this driver's wire"), conn.Close())
	}
	if _, err := unixConn.Write([]byte(wire.EgressHello)); err != nil {
		return errors.Join(err, conn.Close())
	}
	link := wire.NewEgress(unixConn)
	stop := context.AfterFunc(ctx, func() { link.Close() })
	defer stop()
	defer link.Close()
	return n.receive(ctx, link, nil)
}

// receive takes what the guest hands over on way. link carries the connections
// announced there; it is nil where the connections themselves are handed over.
func (n *network) receive(ctx context.Context, way *wire.Egress, link *wire.Link) error {
	sending, stop := context.WithCancel(ctx) // carried connections go on
	defer stop()
	out := newOutbox(sending, way)
	for {
		received, err := way.Receive()
		if err != nil {
			return err
		}
		switch received.Kind {
		case wire.KindConnection:
			n.carry(ctx, received)
		case wire.KindAnnounced:
			if link == nil {
				return fault.New(fault.Unavailable, "the guest announces connections where it has to hand them over")
			}
			n.carryAnnounced(ctx, link, received, out)
		case wire.KindDatagram:
			d := received.Datagram
			n.proxy.Datagram(ctx, d.Source, d.Destination, d.Process, d.Payload, out)
		case wire.KindQuery:
			// Answering is a look into tables: nothing is asked outside.
			answer := n.resolver.Answer(received.Query.Message, received.Query.TCP)
			if err := way.SendAnswer(received.Query.ID, answer); err != nil {
				return err
			}
		}
	}
}

// save writes the observations when there are new ones.
func (n *network) save() error {
	n.proxy.Report()
	n.saving.Lock()
	defer n.saving.Unlock()
	if n.closed || !n.changed.Swap(false) {
		return nil
	}
	return n.seen.Save(filepath.Join(n.dir, SeenFile))
}

// busy reports whether there is more to save, or an open connection that moves
// bytes without an observation.
func (n *network) busy() bool { return n.changed.Load() || n.proxy.Connections() > 0 }

// close writes the observations for the last time: the client that asked for
// the sandbox's end may delete its directory next.
func (n *network) close() error {
	err := n.save()
	n.saving.Lock()
	defer n.saving.Unlock()
	n.closed = true
	return err
}

// follow streams observations to a client until it goes away.
func (n *network) follow(conn net.Conn) {
	updates, cancel := n.seen.Subscribe(256)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		// The client says nothing more; its end is all there is to read.
		_, _ = conn.Read(make([]byte, 1))
		close(gone)
	}()
	for {
		select {
		case <-gone:
			return
		case observation, ok := <-updates:
			if !ok || wire.WriteJSON(conn, wire.KindStdout, observation) != nil {
				return
			}
		}
	}
}
