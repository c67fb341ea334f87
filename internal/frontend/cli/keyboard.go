package cli

import (
	"errors"
	"io"
	"sync"
)

// keyboard shares what the user types between a command and the questions that come
// up while it runs: during a question every key is an answer. It reads only on
// demand, because keys read but not taken are lost to the next reader of the
// terminal.
type keyboard struct {
	source io.Reader

	mu      sync.Mutex
	changed *sync.Cond
	started bool
	wanted  bool        // the command waits for input
	held    []byte      // for the command
	end     error       // for the command
	dead    bool        // the source will never give anything again
	answer  chan []byte // of the open question; nil without one
}

func newKeyboard(source io.Reader) *keyboard {
	k := &keyboard{source: source}
	k.changed = sync.NewCond(&k.mu)
	return k
}

// Read is the command's side.
func (k *keyboard) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.start()
	for len(k.held) == 0 && k.end == nil {
		k.wanted = true
		k.changed.Broadcast()
		k.changed.Wait()
	}
	if len(k.held) > 0 {
		n := copy(p, k.held)
		k.held = k.held[n:]
		return n, nil
	}
	return 0, k.end
}

// question gives the keys typed from now on, until done is called. The channel is
// closed when no more keys can come.
func (k *keyboard) question() (typed <-chan []byte, done func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.start()
	answer := make(chan []byte, 16)
	if k.dead {
		close(answer)
		return answer, func() {}
	}
	k.answer = answer
	k.changed.Broadcast()
	return answer, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answer = nil
	}
}

// start is called with mu held.
func (k *keyboard) start() {
	if !k.started {
		k.started = true
		go k.pump()
	}
}

func (k *keyboard) pump() {
	for buffer := make([]byte, 4096); ; {
		k.mu.Lock()
		for k.answer == nil && (!k.wanted || len(k.held) > 0 || k.end != nil) {
			k.changed.Wait()
		}
		k.mu.Unlock()
		n, err := k.source.Read(buffer)
		k.mu.Lock()
		typed := append([]byte(nil), buffer[:n]...)
		switch {
		case n == 0:
		case k.answer != nil:
			select {
			case k.answer <- typed:
			default: // no one types that fast
			}
		default:
			k.held = append(k.held, typed...)
			k.wanted = false
		}
		if err != nil {
			// The end of input that a user types ends only the command's.
			if k.dead = !errors.Is(err, io.EOF); k.dead && k.answer != nil {
				close(k.answer)
				k.answer = nil
			}
			k.end = err
		}
		k.changed.Broadcast()
		dead := k.dead
		k.mu.Unlock()
		if dead {
			return
		}
	}
}
