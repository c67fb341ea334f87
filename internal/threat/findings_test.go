package threat_test

import (
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// findings are the ways out that attacks on the real program once found, in the
// order in which they were found, by the names of their rows. A row can go only when
// another covers the finding.
func findings() [][]string {
	return [][]string{
		{"trees that stand for 10^10 paths"},
		{"a delta that expands"},
		{"have work run before it is merged"},
		{"bring a hook that its own merge runs"},
		{"have the merge land something that was not judged"},
		{"use up the user's quotas"},
		{"slow down PID 1, or take its limits"},
		{"fill memory with what sockets hold", "fill memory with files that have no name", "fill memory with page tables"},
		{"a message that is a terminal's and litterbox's own", "have a repository's settings weaken the human's", "have root write into another user's repository"},
		{"have another user's state directory used", "have another user's configuration count"},
		{"denied hosts by their addresses", "neighbours with public addresses", "neighbours under the default deny", "translated addresses"},
		{"win a question about the network"},
		{"search without end", "callers without the token"},
		{"names behind an upstream proxy", "paths that two readers read differently"},
		{"hold the host's files without writing", "use what a narrower policy has closed"},
		{"make forbidden system calls", "change, signal, trace and reach what the degraded tier shares"},
		{"lock the host out of the sandbox's own files"},
		{"put a pipe in the place of a directory", "hold up the host with a FIFO"},
		{"hold the sandbox by a control group of its own"},
		{"make forbidden system calls", "have a live sandbox's pin cleared away", "stack layers without end", "make a log that the host reads for ever"},
	}
}

// Every finding is still tried: it has rows, and TestTableIsWhole says that each row
// has a defence and a test that are there.
func TestFindingsHaveRows(t *testing.T) {
	const known = 20
	all := findings()
	if len(all) != known {
		t.Errorf("%d findings, want %d", len(all), known)
	}
	for n, names := range all {
		if len(names) == 0 {
			t.Errorf("finding %d has no row", n+1)
		}
		for _, name := range names {
			if !slices.ContainsFunc(threat.All(), func(a threat.Attack) bool { return a.Name == name }) {
				t.Errorf("finding %d: there is no row %q", n+1, name)
			}
		}
	}
}
