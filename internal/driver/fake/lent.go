package fake

import (
	"context"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// lent are the files of the host that a place shows, by their paths inside.
type lent struct {
	mu    sync.Mutex
	files map[string][]byte
}

func newLent(all []driver.Lent) *lent {
	l := &lent{files: map[string][]byte{}}
	for _, one := range all {
		l.files[one.Target] = nil
	}
	return l
}

// Lend implements driver.Lender.
func (d Driver) Lend(_ context.Context, lease driver.Lease, target string, content []byte) error {
	if !d.Traits().Lends {
		return d.refuse(PretendsToLend)
	}
	d.machine.mu.Lock()
	p, err := d.find(lease)
	d.machine.mu.Unlock()
	if err != nil {
		return err
	}
	p.lent.mu.Lock()
	defer p.lent.mu.Unlock()
	old, known := p.lent.files[target]
	if !known {
		return fault.New(fault.NotFound, "the sandbox shows no file of the host at %q", target)
	}
	if old == nil || !d.has(LendsOnce) {
		p.lent.files[target] = content
	}
	return nil
}

func (l *lent) read(path string) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, known := l.files[path]
	return content, known
}
