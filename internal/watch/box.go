package watch

import (
	"bytes"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// The most that a box holds for a slow watcher. Log entries are read again from
// the logs; of output, the oldest goes and its lines are counted.
const (
	boxLogs   = 4 << 10 // entries and events
	boxOutput = 1 << 20 // bytes
	boxPieces = 16 << 10
)

// box collects items from a hub for one watcher. Putting one in never waits.
type box struct {
	round  *round
	output func(*sandbox.Sandbox) bool // whose output is wanted; nil: none
	wake   chan struct{}               // something is in it

	mu   sync.Mutex
	news news
	size int              // bytes of output
	lost map[string]int64 // dropped lines, by id of their sandbox
}

// news is everything that has come since the last take.
type news struct {
	entries []audit.Entry
	events  []sandbox.Event
	printed []output
	behind  bool  // more was logged than is in it
	err     error // nothing more comes
}

// output is a piece of the output of a sandbox's commands.
type output struct {
	record  *sandbox.Sandbox
	piece   keeper.Echo
	cut     bool  // the stream ended: no piece
	problem error // why nothing is shown: no piece
}

func (b *box) logs(entries []audit.Entry, events []sandbox.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news.behind || len(b.news.entries)+len(b.news.events)+len(entries)+len(events) > boxLogs {
		b.news.entries, b.news.events, b.news.behind = nil, nil, true
	} else {
		b.news.entries = append(b.news.entries, entries...)
		b.news.events = append(b.news.events, events...)
	}
	poke(b.wake)
}

func (b *box) print(o output) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news.printed = append(b.news.printed, o)
	b.size += len(o.piece.Data)
	for b.size > boxOutput || len(b.news.printed) > boxPieces {
		gone := b.news.printed[0]
		b.news.printed = b.news.printed[1:]
		b.size -= len(gone.piece.Data)
		if b.lost == nil {
			b.lost = map[string]int64{}
		}
		// A piece without a line's end is part of a line that is lost.
		b.lost[gone.record.ID] += max(1, int64(bytes.Count(gone.piece.Data, []byte{'\n'}))) + gone.piece.Lost
	}
	poke(b.wake)
}

func (b *box) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.news.err = err
	poke(b.wake)
}

// take empties the box. The first piece of a sandbox after dropped output says
// how many lines were dropped.
func (b *box) take() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.news
	for i := range taken.printed {
		o := &taken.printed[i]
		if n := b.lost[o.record.ID]; n > 0 {
			o.piece.Lost += n
			delete(b.lost, o.record.ID)
		}
	}
	b.news, b.size = news{}, 0
	return taken
}
