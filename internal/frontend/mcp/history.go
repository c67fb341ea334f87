package mcp

import (
	"slices"
	"strings"
)

// aboutHistory says, once in a session, why git inside does not show the steps:
// its history is the agent's own. Answers name steps by their numbers, which
// the tools take, and never a commit that git inside does not have.
func (c *call) aboutHistory(command string) []string {
	looks := slices.ContainsFunc([]string{"git log", "git show", "git reflog", "git blame", "git revert"}, func(part string) bool {
		return strings.Contains(command, part)
	})
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if !looks || c.session.history {
		return nil
	}
	c.session.history = true
	return []string{"git inside has the base and the commits made inside; the steps are in sandbox-log, and sandbox-diff since N shows what came after step N"}
}
