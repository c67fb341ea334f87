package guest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// frameOfLines is how much text goes into one frame: JSON writes a byte as up
// to six, and the longest line still fits beside it.
const frameOfLines = 16 << 10

// logs sends the journal of a service, and further lines as they come.
func (g *guest) logs(x *exchange) (wire.LogEnd, error) {
	query := x.request.Logs
	if query == nil {
		return wire.LogEnd{}, fault.New(fault.Invalid, "cannot show the log of no service")
	}
	g.services.mu.Lock()
	u := g.services.units[query.Service]
	g.services.mu.Unlock()
	if u == nil {
		return wire.LogEnd{}, fault.New(fault.NotFound, "no service named %q in this sandbox", query.Service)
	}
	gone := x.gone()
	next := query.From
	for first := true; ; first = false {
		changed := u.journal.Changed()
		end, err := g.sendLines(x.out, query, next, first && query.From < 0)
		if err != nil || end.More || !query.Follow {
			return end, err
		}
		next = end.Next
		select {
		case <-changed:
		case <-gone:
			return end, nil
		case <-g.stop:
			return end, nil
		}
	}
}

// sendLines sends the lines from an offset on, or from where the query's tail
// begins.
func (g *guest) sendLines(out *wire.Writer, query *wire.LogQuery, from int64, find bool) (wire.LogEnd, error) {
	root, err := os.OpenRoot(g.services.logDir())
	if errors.Is(err, fs.ErrNotExist) {
		return wire.LogEnd{}, nil // nothing has been printed yet
	}
	if err != nil {
		return wire.LogEnd{}, wrap(err, "cannot read the log of service %q", query.Service)
	}
	defer root.Close()
	if find {
		if from, err = journal.Find(root, query.Service, query.Tail, query.Since); err != nil {
			return wire.LogEnd{}, wrap(err, "cannot read the log of service %q", query.Service)
		}
	}
	var lines wire.LogLines
	size, count, next := 0, 0, from
	var sendErr error
	flush := func() {
		if len(lines) > 0 && sendErr == nil {
			var payload []byte
			if payload, sendErr = json.Marshal(lines); sendErr == nil {
				sendErr = out.Frame(wire.KindStdout, payload)
			}
		}
		lines, size = lines[:0], 0
	}
	more := false
	last, err := journal.Scan(root, query.Service, from, func(line journal.Line) bool {
		if query.Limit > 0 && count == query.Limit {
			more = true
			return false
		}
		if size > 0 && size+len(line.Text) > frameOfLines {
			flush()
		}
		lines = append(lines, wire.LogLine{Time: line.Time, Own: line.Own, Text: line.Text, Next: line.Next})
		size += len(line.Text) + 64
		count++
		next = line.Next
		return sendErr == nil
	})
	flush()
	if !more {
		next = last // also when the lines from `from` on are no longer kept
	}
	if err == nil {
		err = sendErr
	}
	return wire.LogEnd{Next: next, More: more}, err
}
