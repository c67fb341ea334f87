package guest

import (
	"hash/maphash"
	"sync"
)

const (
	smallFile    = 64 << 10 // bytes of one that is held in memory
	smallWriters = 3
	smallQueue   = 8 // files that wait for each writer: 1.5 MiB of all of them
	smallFew     = 8 // that are not worth a writer
)

// smallFiles makes the small files of one directory, several at once: for each the
// kernel works longer than the stream takes to bring it. Files of one name are made
// in their order. It is for one goroutine.
type smallFiles struct {
	given   int
	writers []chan func()
	seed    maphash.Seed
	open    sync.WaitGroup // files that were given and are not there yet

	mu     sync.Mutex
	failed error // the first
}

// give has a file made. An error is that of this file or of one before it.
func (s *smallFiles) give(name string, grow func() error) error {
	if s.given++; s.given <= smallFew {
		return grow()
	}
	if s.writers == nil {
		s.start()
	}
	s.mu.Lock()
	failed := s.failed
	s.mu.Unlock()
	if failed != nil {
		return failed
	}
	s.open.Add(1)
	s.writers[maphash.String(s.seed, name)%smallWriters] <- func() {
		defer s.open.Done()
		if err := grow(); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.failed == nil {
				s.failed = wrap(err, "cannot make %q", name)
			}
		}
	}
	return nil
}

func (s *smallFiles) start() {
	s.seed = maphash.MakeSeed()
	for range smallWriters {
		jobs := make(chan func(), smallQueue)
		s.writers = append(s.writers, jobs)
		go func() {
			for job := range jobs {
				job()
			}
		}()
	}
}

// wait waits for all that were given.
func (s *smallFiles) wait() error {
	s.open.Wait()
	return s.failed
}

// end ends the writers. Nothing may be given afterwards.
func (s *smallFiles) end() {
	for _, jobs := range s.writers {
		close(jobs)
	}
}
