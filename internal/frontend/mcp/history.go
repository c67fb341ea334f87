package mcp

import (
	"slices"
	"strings"
)

// news leaves out notes that the last change in this sandbox had too: a state
// that lasts, such as damage to git inside, is named once, and again where a
// command asks git.
func (c *call) news(notes []string, command string) []string {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	before := c.session.standing[c.hold.ID]
	c.session.standing[c.hold.ID] = notes
	return slices.DeleteFunc(notesOf(notes), func(note string) bool {
		return !strings.Contains(command, "git") && slices.ContainsFunc(before, func(old string) bool { return printable(old) == note })
	})
}

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
