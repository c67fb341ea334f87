// Package audit is the log of what was asked of litterbox, by whom, and what
// came of it: JSON Lines in which every entry holds the hash of the one before,
// so that a change, a removal or a reordering shows.
//
// It deliberately knows nothing of sandboxes and git: what an entry means, and
// that commits name entries, is the engine's. It does not keep a process with the
// user's rights from writing a whole new log; see [Verify] for what is found and
// what cannot be proved.
//
// Layout of the directory:
//
//	log.jsonl   the entries, oldest first; appended only
//	head        number and hash of the last entry, to notice a log cut short
//	lock        held while an entry is appended
//
// Start reading at [Log.Append] and [Verify].
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Version is in every entry.
const Version = 1

// The events of an entry.
const (
	EventCall   = "call"   // a request; written before it is carried out
	EventResult = "result" // the result of a call that changed something
	EventRead   = "read"   // a request and its result at once: nothing was changed
	EventTorn   = "torn"   // bytes before this entry were torn by a crash
	EventGap    = "gap"    // the log before this entry was cut; the head knew more
)

// Entry is one line of the log. The field Hash comes first on the line and is
// the SHA-256 of the line without it.
type Entry struct {
	Hash string    `json:"-"`
	V    int       `json:"v"`
	Seq  uint64    `json:"seq"`
	Prev string    `json:"prev"` // hash of the entry before; empty in the first
	Time time.Time `json:"time"`

	Event      string         `json:"event"`
	Call       uint64         `json:"call,omitempty"` // of a result: the number of its call
	Action     string         `json:"action,omitempty"`
	Who        *Who           `json:"who,omitempty"`
	Repository string         `json:"repository,omitempty"`
	Sandbox    string         `json:"sandbox,omitempty"`
	SandboxID  string         `json:"sandbox_id,omitempty"`
	Arguments  map[string]any `json:"arguments,omitempty"`

	Outcome  string        `json:"outcome,omitempty"` // "ok" or the kind of the error
	Problem  string        `json:"problem,omitempty"`
	ExitCode *int          `json:"exit_code,omitempty"`
	Commit   string        `json:"commit,omitempty"` // made under it, the last of them
	Tip      string        `json:"tip,omitempty"`    // of the branch that was merged or deleted
	Duration time.Duration `json:"duration_ns,omitempty"`

	Torn *Torn `json:"torn,omitempty"`
	Gap  *Gap  `json:"gap,omitempty"`
}

// Who identifies the requester.
type Who struct {
	Via     string `json:"via"`               // "cli" or "mcp"
	Client  string `json:"client,omitempty"`  // as an MCP client names itself
	Version string `json:"version,omitempty"` // of that client
	Session string `json:"session,omitempty"`
	User    string `json:"user,omitempty"`
	PID     int    `json:"pid,omitempty"`
}

// Torn describes bytes before an entry that are not an entry.
type Torn struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Gap says what the head knew about entries that are gone.
type Gap struct {
	Seq  uint64 `json:"seq"` // of the last entry that had been there
	Hash string `json:"hash"`
}

// hashPrefix begins every line; the hash and a quote and comma follow.
const hashPrefix = `{"hash":"`

// bodyOffset is where the rest of the line begins, after hash, quote and comma.
const bodyOffset = len(hashPrefix) + 2*sha256.Size + 2

// line encodes an entry, sets its hash, and ends the line.
func (e *Entry) line() ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	e.Hash = hex.EncodeToString(sum[:])
	line := make([]byte, 0, len(body)+bodyOffset+1)
	line = append(line, hashPrefix...)
	line = append(line, e.Hash...)
	line = append(line, '"', ',')
	line = append(line, body[1:]...)
	return append(line, '\n'), nil
}

// parse reads a line without its end. ok is false for a line that is not an entry;
// the hash is taken as it is and checked by [intact].
func parse(line []byte) (e Entry, ok bool) {
	if len(line) <= bodyOffset || string(line[:len(hashPrefix)]) != hashPrefix || string(line[bodyOffset-2:bodyOffset]) != `",` {
		return Entry{}, false
	}
	if json.Unmarshal(line, &e) != nil || e.Seq == 0 || e.Event == "" {
		return Entry{}, false
	}
	e.Hash = string(line[len(hashPrefix) : bodyOffset-2])
	return e, true
}

// intact reports whether a line that was parsed has the hash that it names.
func intact(line []byte, e Entry) bool {
	sum := sha256.New()
	sum.Write([]byte{'{'})
	sum.Write(line[bodyOffset:])
	return hex.EncodeToString(sum.Sum(nil)) == e.Hash
}
