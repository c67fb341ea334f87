package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// DNS is the protocol of an observation that is a look-up.
const DNS = "dns"

// The verdicts of an observation.
const (
	Allowed = "allowed"
	Denied  = "denied"
	Failed  = "failed" // allowed, but not reachable
)

// defaultRows bounds a table of observations; textLimit bounds foreign text in
// a row.
const (
	defaultRows = 2048
	textLimit   = 256
)

// Observation is something a sandbox tried, how often, and what came of it. It is both
// a single report and a row of the table that adds up equal reports. In a report Count
// is 1 for a new attempt and 0 for the bytes of an old one; zero times mean now.
type Observation struct {
	Host     string     `json:"host,omitempty"`
	Addr     netip.Addr `json:"addr,omitzero"`
	Port     uint16     `json:"port,omitempty"`
	Protocol string     `json:"protocol"` // TCP, HTTP, HTTPS, UDP, DNS
	// Method and Path are those of the last request, where it was seen: inside
	// TLS and in HTTP/2 only where a rule looks at requests. Path is without
	// the query, which may hold secrets.
	Method   string    `json:"method,omitempty"`
	Path     string    `json:"path,omitempty"`
	Process  string    `json:"process,omitempty"`
	Verdict  string    `json:"verdict"`
	Rule     string    `json:"rule,omitempty"`
	Why      string    `json:"why"`
	BytesIn  int64     `json:"bytes_in"`  // towards the sandbox
	BytesOut int64     `json:"bytes_out"` // out of it
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Count    int64     `json:"count"`
}

// Destination returns where it was going: host and port, or the host alone for
// a look-up of its name.
func (o *Observation) Destination() string {
	host := o.Host
	if host == "" && o.Addr.IsValid() {
		host = o.Addr.String()
	}
	if o.Port == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(o.Port)))
}

// row is what makes two observations the same.
type row struct {
	host, protocol, process, verdict, rule string
	method, path                           string // of what was denied: each such request is one to decide on
	addr                                   netip.Addr
	port                                   uint16
}

func (o *Observation) row() row {
	r := row{host: o.Host, protocol: o.Protocol, process: o.Process, verdict: o.Verdict, rule: o.Rule, addr: o.Addr, port: o.Port}
	if o.Verdict == Denied {
		r.method, r.path = o.Method, o.Path
	}
	if o.Host != "" {
		r.addr = netip.Addr{} // large sites answer with different addresses every time
	}
	return r
}

// Observations is a bounded table of what a sandbox tried. When it is full,
// the row not seen for the longest time goes, denied look-ups first, because a
// sandbox can invent names without end. It is safe for concurrent use.
type Observations struct {
	mu    sync.Mutex
	limit int
	rows  map[row]*Observation
	lost  int64
	next  int
	subs  map[int]chan Observation
}

// NewObservations makes a table of at most limit rows; 0 is a sensible bound.
func NewObservations(limit int) *Observations {
	if limit <= 0 {
		limit = defaultRows
	}
	return &Observations{limit: limit, rows: map[row]*Observation{}, subs: map[int]chan Observation{}}
}

// Add merges one report into its row and sends the row to the subscribers.
// Text from the sandbox is made printable first.
func (o *Observations) Add(report Observation) {
	report.clean()
	now := time.Now()
	if report.Last.IsZero() {
		report.Last = now
	}
	if report.First.IsZero() {
		report.First = report.Last
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := report.row()
	have, ok := o.rows[key]
	if !ok {
		if len(o.rows) >= o.limit {
			o.evict()
		}
		have = &report
		o.rows[key] = have
	} else {
		have.Why = report.Why
		if report.Count > 0 {
			have.Method, have.Path = report.Method, report.Path
		}
		if report.Addr.IsValid() {
			have.Addr = report.Addr
		}
		have.BytesIn += report.BytesIn
		have.BytesOut += report.BytesOut
		have.Count += report.Count
		if report.First.Before(have.First) {
			have.First = report.First
		}
		if report.Last.After(have.Last) {
			have.Last = report.Last
		}
	}
	for _, sub := range o.subs {
		select {
		case sub <- *have:
		default: // too slow; the row's counts arrive with its next change
		}
	}
}

// evict removes a sixteenth of the rows at once, so that a flood does not pay
// for a search with every report.
func (o *Observations) evict() {
	all := make([]*Observation, 0, len(o.rows))
	for _, have := range o.rows {
		all = append(all, have)
	}
	slices.SortFunc(all, func(a, b *Observation) int {
		if cheap := lookup(b) - lookup(a); cheap != 0 {
			return cheap
		}
		return a.Last.Compare(b.Last)
	})
	for _, have := range all[:max(1, o.limit/16)] {
		delete(o.rows, have.row())
		o.lost++
	}
}

// lookup is 1 for a denied look-up.
func lookup(o *Observation) int {
	if o.Protocol == DNS && o.Verdict == Denied {
		return 1
	}
	return 0
}

// Snapshot returns all rows, the first seen first.
func (o *Observations) Snapshot() []Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]Observation, 0, len(o.rows))
	for _, have := range o.rows {
		all = append(all, *have)
	}
	slices.SortFunc(all, func(a, b Observation) int {
		if c := a.First.Compare(b.First); c != 0 {
			return c
		}
		return strings.Compare(a.Host+a.Addr.String()+a.Protocol+a.Rule, b.Host+b.Addr.String()+b.Protocol+b.Rule)
	})
	return all
}

// Lost returns how many rows were dropped because the table was full.
func (o *Observations) Lost() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// Subscribe gives every row as it changes, from now on; a reader that is more
// than buffer rows behind misses some. The returned function ends it and closes
// the channel.
func (o *Observations) Subscribe(buffer int) (<-chan Observation, func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, sub := o.next, make(chan Observation, max(1, buffer))
	o.next++
	o.subs[id] = sub
	return sub, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if _, ok := o.subs[id]; ok {
			delete(o.subs, id)
			close(sub)
		}
	}
}

// Save writes all rows to file as JSON Lines, by an atomic rename.
func (o *Observations) Save(file string) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	for _, one := range o.Snapshot() {
		if err := encoder.Encode(one); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot encode what the network saw")
		}
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".observed-*")
	if err == nil {
		_, err = temporary.Write(data.Bytes())
		if err = errors.Join(err, temporary.Close()); err == nil {
			err = os.Rename(temporary.Name(), file)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot record what the network saw")
	}
	return nil
}

// Load merges what Save wrote; a missing file counts as empty.
func (o *Observations) Load(file string) error {
	all, err := ReadObservations(file)
	if err != nil {
		return err
	}
	for _, one := range all {
		o.Add(one)
	}
	return nil
}

// ReadObservations reads what Save wrote. It skips foreign lines; a missing
// file counts as empty.
func ReadObservations(file string) ([]Observation, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read what the network saw")
	}
	var all []Observation
	for line := range bytes.Lines(data) {
		var one Observation
		if json.Unmarshal(line, &one) == nil && one.Verdict != "" {
			one.clean()
			all = append(all, one)
		}
	}
	return all, nil
}

func (o *Observation) clean() {
	for _, text := range []*string{&o.Host, &o.Protocol, &o.Process, &o.Verdict, &o.Rule, &o.Why, &o.Method, &o.Path} {
		*text = printable(*text)
	}
	o.Addr = o.Addr.Unmap().WithZone("")
}

// printable makes foreign text safe to show: no terminal escapes, no line
// breaks, no characters that reorder or hide others, and bounded in length.
func printable(text string) string {
	plain := len(text) <= textLimit
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= ' ' && text[i] < 0x7f
	}
	if plain {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '\uFFFD'
		}
		if b.Len()+utf8.RuneLen(r) > textLimit-len("…") {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}
	return b.String()
}

// pathOnly is a request target without its query, for records.
func pathOnly(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
