package engine

import (
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Verification is the result of verifying the audit log.
type Verification struct {
	Intact   bool            `json:"intact"`
	Entries  int             `json:"entries"`
	Commits  int             `json:"commits"` // that name an entry, and were compared
	Head     string          `json:"head"`
	Findings []audit.Finding `json:"findings"`
	Open     int             `json:"open"`     // calls without a result: under way, or cut off by a crash
	Unproven []string        `json:"unproven"` // what verification cannot show
}

// VerifyAudit checks the chain of the audit log, and the commits that name
// entries against it.
func (e *Engine) VerifyAudit(ctx context.Context) (Verification, error) {
	log := e.auditLog()
	report, err := log.Verify(ctx)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Entries: report.Entries, Head: report.Head, Findings: report.Findings, Unproven: []string{}}
	c := &commitCheck{v: &v, hashes: map[string]uint64{}, expected: map[string]map[string]uint64{}, where: map[string]string{}}
	open := map[uint64]string{}
	for entry, err := range log.Entries() {
		if err != nil {
			return v, err
		}
		c.hashes[entry.Hash] = entry.Seq
		switch entry.Event {
		case audit.EventCall:
			open[entry.Seq] = entry.Repository
		case audit.EventResult:
			if entry.Commit != "" {
				c.expect(open[entry.Call], entry.Commit, entry.Call)
			}
			delete(open, entry.Call)
		}
	}
	v.Open = len(open)
	if err := c.iterations(e); err != nil {
		return v, err
	}
	if err := c.compare(ctx); err != nil {
		return v, err
	}
	v.Intact = true
	for _, finding := range v.Findings {
		v.Intact = v.Intact && finding.Harmless
	}
	v.Unproven = append(v.Unproven, c.unproven()...)
	return v, nil
}

// commitCheck compares commits with the entries that they name.
type commitCheck struct {
	v        *Verification
	hashes   map[string]uint64            // number by hash, of every entry there is
	expected map[string]map[string]uint64 // by repository and commit: the call; 0 when only the sandbox's log knows it
	where    map[string]string            // sandbox of a commit, for texts
	named    uint64                       // the highest entry that a commit names
	gone     int                          // commits that are no longer there
	missing  []string                     // repositories that are no longer there
	silent   int                          // commits without a trailer
}

func (c *commitCheck) expect(repository, commit string, call uint64) {
	if c.expected[repository] == nil {
		c.expected[repository] = map[string]uint64{}
	}
	if c.expected[repository][commit] == 0 {
		c.expected[repository][commit] = call
	}
}

// iterations adds the commits that the sandboxes' own logs know.
func (c *commitCheck) iterations(e *Engine) error {
	records, _, err := e.Store.Sandboxes() // list reports the unreadable ones
	if err != nil {
		return err
	}
	for _, record := range records {
		all, err := e.Store.Iterations(record.ID)
		if err != nil {
			return err
		}
		for _, iteration := range all {
			if iteration.Commit != "" {
				c.expect(record.Repository, iteration.Commit, 0)
				c.where[iteration.Commit] = record.Name
			}
		}
	}
	return nil
}

func (c *commitCheck) compare(ctx context.Context) error {
	for repository, commits := range c.expected {
		location, ok := git.Locate(repository)
		if !ok {
			c.missing = append(c.missing, repository)
			continue
		}
		var oids []string
		for oid := range commits {
			oids = append(oids, oid)
		}
		values, err := git.At(ctx, location.CommonDir, location.Top, oids[0]).TrailerOf(ctx, auditTrailer, oids)
		if err != nil {
			return err
		}
		for oid, call := range commits {
			hash, there := values[oid]
			c.one(oid, call, hash, there)
		}
	}
	return nil
}

func (c *commitCheck) one(oid string, call uint64, hash string, there bool) {
	find := func(seq uint64, kind, format string, args ...any) {
		c.v.Findings = append(c.v.Findings, audit.Finding{Seq: seq, Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	seq, known := c.hashes[hash]
	switch {
	case !there:
		c.gone++
		return
	case hash == "" && call != 0:
		find(call, audit.Changed, "commit %s was made under entry %d and does not name it", oid, call)
		return
	case hash == "":
		c.silent++ // made before there was an audit log
		return
	case !known:
		find(0, audit.Removed, "commit %s of sandbox %q names an entry that is not in the log: %s", oid, c.where[oid], hash)
	case call != 0 && seq != call:
		find(call, audit.Changed, "commit %s was made under entry %d and names entry %d", oid, call, seq)
	}
	c.v.Commits++
	c.named = max(c.named, seq)
}

func (c *commitCheck) unproven() []string {
	list := []string{"a program with your rights can rewrite log, head and branches together, and leave no trace here"}
	last := uint64(0)
	for _, seq := range c.hashes {
		last = max(last, seq)
	}
	if last > c.named {
		list = append(list, fmt.Sprintf("entries %d to %d are held by the chain and its head alone: no commit names them or a later one", c.named+1, last))
	}
	if c.gone > 0 {
		list = append(list, "no longer in their repository: "+counted(c.gone, "commit")+" that an entry names")
	}
	for _, repository := range c.missing {
		list = append(list, "the repository "+repository+" is not there: its commits were not compared")
	}
	if c.silent > 0 {
		list = append(list, "older than the audit log: "+counted(c.silent, "commit")+" without an entry")
	}
	return list
}
