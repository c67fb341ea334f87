package keeper

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// OpPack is the keeper's own operation: join the packs that commits have left.
// There is no answer; no client waits for one.
const OpPack wire.Op = "keeper.pack"

// packs joins packs, one run at a time.
type packs struct {
	mu      sync.Mutex
	running bool
	again   bool // asked for meanwhile
	closed  bool
	done    sync.WaitGroup
}

// pack begins to join the sandbox's packs, or has the current run repeat it.
func (k *keeper) pack(ctx context.Context) {
	k.packs.mu.Lock()
	defer k.packs.mu.Unlock()
	if k.packs.closed {
		return
	}
	if k.packs.again = k.packs.running; k.packs.running {
		return
	}
	k.packs.running = true
	k.packs.done.Go(func() {
		for {
			if err := k.consolidate(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "keeper: cannot join packs:", err)
			}
			k.packs.mu.Lock()
			if !k.packs.again {
				k.packs.running = false
				k.packs.mu.Unlock()
				return
			}
			k.packs.again = false
			k.packs.mu.Unlock()
		}
	})
}

// close waits for the current run and lets no other begin: it writes where the
// sandbox may be deleted next.
func (p *packs) close() {
	p.mu.Lock()
	p.closed, p.again = true, false
	p.mu.Unlock()
	p.done.Wait()
}

func (k *keeper) consolidate(ctx context.Context) error {
	record, err := k.store.Sandbox(k.order.Spec.SandboxID)
	if err != nil {
		return err
	}
	return git.At(ctx, record.GitDir, "", record.Base).Consolidate(ctx, git.Consolidation{
		State: filepath.Join(k.order.Spec.StateDir, DeltaFile), Lock: k.store.LocksOf(record.ID), Idle: true,
	})
}

// DeltaFile remembers, in the sandbox's directory, what the branch holds
// against its base (package branch).
const DeltaFile = "delta"
