package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// what50 is the subject of the target of many creates.
const what50 = "create, 50 at once (95th percentile)"

// atOnce is their number.
const atOnce = 50

// creates makes many sandboxes at once, in turns with as many of the others.
func (b *bench) creates() error {
	repo := filepath.Join(b.dir, "creates")
	if err := errors.Join(os.Mkdir(repo, 0o755), b.fill(repo, 100)); err != nil {
		return err
	}
	if err := b.prime(); err != nil {
		return err
	}
	here := []time.Duration{}
	beside := make([][]time.Duration, len(b.others))
	for round := range min(b.rounds, 3) {
		names := []string{b.litterbox, "delete", "--force"}
		for i := range atOnce {
			names = append(names, fmt.Sprintf("at%d-%d", round, i))
		}
		took, err := together(func(i int) error { return b.command(repo, b.litterbox, "create", names[3+i]) })
		if err != nil {
			return err
		}
		here = append(here, took...)
		if err := b.command(repo, names...); err != nil {
			return err
		}
		for n, other := range b.others {
			if took, err = together(func(int) error { return b.command(repo, other.argv()...) }); err != nil {
				return err
			}
			beside[n] = append(beside[n], took...)
		}
	}
	if len(b.others) == 0 {
		b.timed(what50, "100 files", ninetyFifth(here), "", timing{})
	}
	for n, other := range b.others {
		b.timed(what50, "100 files", ninetyFifth(here), other.name, ninetyFifth(beside[n]))
	}
	return nil
}

// together starts a step many times at once and returns how long each took.
func together(do step) ([]time.Duration, error) {
	took, failed := make([]time.Duration, atOnce), make([]error, atOnce)
	var wait sync.WaitGroup
	for i := range atOnce {
		wait.Go(func() {
			start := time.Now()
			failed[i] = do(i)
			took[i] = time.Since(start)
		})
	}
	wait.Wait()
	return took, errors.Join(failed...)
}

func ninetyFifth(all []time.Duration) timing {
	slices.Sort(all)
	return once(all[len(all)*95/100])
}
