// Package inprocess starts keepers as goroutines of this process, for tests of
// use cases without a kernel's help. An order and a report travel as JSON, as
// they do between processes; everything else is the true keeper, socket and
// locks included.
package inprocess

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Keepers implements keeper.Starter. Its zero value has no drivers.
type Keepers struct {
	Drivers *driver.Set
	// Refuse, when set, is asked before a keeper runs its order; an error is a
	// keeper that could not be started.
	Refuse func(keeper.Order) error
	// Silent, when set, reports whether the keeper of an order dies without a
	// report, as when it is killed.
	Silent func(keeper.Order) bool

	mu      sync.Mutex
	keepers map[string]*running // by sandbox
	started []Started
}

// Started is what a keeper was started with.
type Started struct {
	Dir   string
	Env   []string
	Order keeper.Order
}

// running is a keeper that has its order.
type running struct {
	end  context.CancelFunc
	over chan struct{}
	err  error // set before over is closed
}

// Start implements keeper.Starter.
func (k *Keepers) Start(_, dir string, env []string) (keeper.Starting, error) {
	return &starting{keepers: k, dir: dir, env: env}, nil
}

// End implements keeper.Starter. All keepers have the process of the test as
// their holder, so the sandbox alone says which one is meant.
func (k *Keepers) End(id string, _ sandbox.Process) (bool, error) {
	k.mu.Lock()
	found := k.keepers[id]
	k.mu.Unlock()
	if found == nil {
		return false, nil
	}
	select {
	case <-found.over:
		return false, nil
	default:
	}
	found.end()
	<-found.over
	return true, nil
}

// Started lists every order that was carried out.
func (k *Keepers) Started() []Started {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]Started{}, k.started...)
}

// Close ends all keepers; their places go on.
func (k *Keepers) Close() {
	k.mu.Lock()
	var ids []string
	for id := range k.keepers {
		ids = append(ids, id)
	}
	k.mu.Unlock()
	for _, id := range ids {
		_, _ = k.End(id, sandbox.Process{}) // never fails
	}
}

type starting struct {
	keepers *Keepers
	dir     string
	env     []string
}

// Abandon implements keeper.Starting.
func (*starting) Abandon() {}

// Command implements keeper.Starting.
func (s *starting) Command(ctx context.Context, order keeper.Order, progress func(keeper.Progress)) (keeper.Report, error) {
	data, err := json.Marshal(order)
	if err != nil {
		return keeper.Report{}, err
	}
	var mine keeper.Order
	if err := json.Unmarshal(data, &mine); err != nil {
		return keeper.Report{}, err
	}
	if s.keepers.Refuse != nil {
		if err := s.keepers.Refuse(mine); err != nil {
			return keeper.Report{}, err
		}
	}
	silent := s.keepers.Silent != nil && s.keepers.Silent(mine)
	own, end := context.WithCancel(context.Background())
	one := &running{end: end, over: make(chan struct{})}
	report := &reported{done: make(chan struct{})}
	s.keepers.add(mine.Spec.SandboxID, one, Started{s.dir, s.env, mine})
	go func() {
		defer close(one.over)
		defer report.Close()
		if silent {
			end()
			return
		}
		one.err = keeper.Run(own, s.keepers.Drivers, mine, report, nil)
	}()
	select {
	case <-report.done:
	case <-ctx.Done():
		end()
		<-one.over
		return keeper.Report{}, ctx.Err()
	}
	said, err := keeper.ReadReport(&report.text, progress)
	if err != nil {
		<-one.over
	}
	return said, err
}

func (k *Keepers) add(id string, one *running, started Started) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keepers == nil {
		k.keepers = map[string]*running{}
	}
	k.keepers[id] = one
	k.started = append(k.started, started)
}

// reported is a keeper's standard output: complete when it is closed.
type reported struct {
	text bytes.Buffer
	once sync.Once
	done chan struct{}
}

func (r *reported) Write(p []byte) (int, error) { return r.text.Write(p) }

func (r *reported) Close() error {
	r.once.Do(func() { close(r.done) })
	return nil
}
