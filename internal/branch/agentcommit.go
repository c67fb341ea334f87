package branch

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// AgentCommit is one commit of the agent's own history, as data.
type AgentCommit struct {
	Oid        string // inside
	Tree       string
	ParentTree string // of its first parent; the empty tree for a root
	Author     git.Signature
	Committer  git.Signature
	Message    []byte // UTF-8; message and names are safe to show
}

// parseCommits reads what cat-file --batch printed about n commits.
// ParentTree holds the first parent's commit until parents looks it up.
func parseCommits(out []byte, n int) ([]AgentCommit, error) {
	var found []AgentCommit
	for range n {
		head, rest, ok := bytes.Cut(out, []byte{'\n'})
		f := strings.Fields(string(head))
		if !ok || len(f) != 3 || f[1] != "commit" {
			return nil, fault.New(fault.Denied, "cannot read a commit: git says %q", git.Printable(string(head)))
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size+1 > len(rest) {
			return nil, fault.New(fault.Denied, "cannot read the commit %s", f[0])
		}
		if size > git.MaxMessage {
			return nil, fault.New(fault.Denied, "cannot take the commit %s: its message is longer than %d bytes", f[0], git.MaxMessage)
		}
		c, err := parseCommit(f[0], rest[:size])
		if err != nil {
			return nil, err
		}
		found = append(found, c)
		out = rest[size+1:]
	}
	return found, nil
}

// parseCommit reads one commit object. Signatures and other headers are
// dropped: they would not hold for the commit made from it.
func parseCommit(oid string, object []byte) (AgentCommit, error) {
	header, message, ok := bytes.Cut(object, []byte("\n\n"))
	if !ok {
		header = bytes.TrimSuffix(object, []byte("\n"))
	}
	encoding := ""
	c := AgentCommit{Oid: oid, Message: bytes.ReplaceAll(message, []byte{0}, nil)}
	for line := range strings.SplitSeq(string(header), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			if c.ParentTree == "" {
				c.ParentTree = value
			}
		case "author":
			c.Author = parseSignature(value)
		case "committer":
			c.Committer = parseSignature(value)
		case "encoding":
			encoding = value
		}
	}
	if !git.IsOid(c.Tree) || (c.ParentTree != "" && !git.IsOid(c.ParentTree)) {
		return AgentCommit{}, fault.New(fault.Denied, "cannot read the commit %s", oid)
	}
	c.tame(encoding)
	return c, nil
}

// parseSignature reads "Name <email> seconds zone".
func parseSignature(s string) git.Signature {
	name, rest, _ := strings.Cut(s, "<")
	email, when, _ := strings.Cut(rest, ">")
	sig := git.Signature{Name: strings.TrimSpace(name), Email: strings.TrimSpace(email)}
	f := strings.Fields(when)
	if len(f) != 2 {
		sig.When = time.Unix(0, 0).UTC()
		return sig
	}
	seconds, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		seconds = 0
	}
	sig.When = time.Unix(seconds, 0).UTC()
	zone, err := strconv.Atoi(f[1])
	if offset := (zone/100)*3600 + (zone%100)*60; err == nil && offset != 0 && offset <= 14*3600 && offset >= -14*3600 {
		sig.When = sig.When.In(time.FixedZone("", offset))
	}
	return sig
}
