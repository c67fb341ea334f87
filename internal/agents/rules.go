package agents

import (
	"bytes"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
)

// The marks between which the rules stand.
const (
	rulesBegin = "<!-- litterbox:begin -->"
	rulesEnd   = "<!-- litterbox:end -->"
)

// Rules is the text for a model. It isolates nothing by itself.
const Rules = `## Work in a sandbox

Do all work on this repository with the tools of the MCP server litterbox, whose names begin with ` + "`sandbox-`" + `; do not run commands or change files in any other way.

- Begin with ` + "`sandbox-create`" + ` and a short name for the task; go on with ` + "`sandbox-open`" + ` when it exists already.
- Every command and every write becomes a commit. Its message says why, in the imperative, on one line.
- When a step is complete and its tests pass, call ` + "`sandbox-milestone`" + ` with a message that stands for all of it.
- At the end name the sandbox: a human looks at it with ` + "`litterbox diff NAME`" + ` and merges it with ` + "`litterbox merge NAME`" + `.
`

// rulesAt finds the rules in a file; false where there are none.
func rulesAt(content []byte) (from, to int, there bool, err error) {
	from = bytes.Index(content, []byte(rulesBegin))
	end := bytes.Index(content, []byte(rulesEnd))
	if from < 0 && end < 0 {
		return 0, 0, false, nil
	}
	if from < 0 || end < from || bytes.Count(content, []byte(rulesBegin)) > 1 || bytes.Count(content, []byte(rulesEnd)) > 1 {
		return 0, 0, false, fault.New(fault.Conflict, "the marks %s and %s do not enclose one text", rulesBegin, rulesEnd)
	}
	return from, end + len(rulesEnd), true, nil
}

// addRules gives the changes that put the rules into a file, in their present form.
// A file whose last line has no end has none afterwards.
func addRules(content []byte) ([]patch.Splice, error) {
	eol := "\n"
	if i := bytes.IndexByte(content, '\n'); i > 0 && content[i-1] == '\r' {
		eol = "\r\n"
	}
	block := strings.ReplaceAll(rulesBegin+"\n"+Rules+rulesEnd, "\n", eol)
	from, to, there, err := rulesAt(content)
	switch {
	case err != nil:
		return nil, err
	case there && string(content[from:to]) == block:
		return nil, nil
	case there:
		return []patch.Splice{{At: from, Old: string(content[from:to]), New: block}}, nil
	case len(content) == 0:
		block += eol
	case content[len(content)-1] == '\n':
		block = eol + block + eol
	default:
		block = eol + eol + block
	}
	return []patch.Splice{{At: len(content), New: block}}, nil
}

// removeRules takes them out again, with the blank line before them.
func removeRules(content []byte) ([]patch.Splice, error) {
	from, to, there, err := rulesAt(content)
	if err != nil || !there {
		return nil, err
	}
	eat := func(newlines int) {
		for ; newlines > 0 && from > 0 && content[from-1] == '\n'; newlines-- {
			from--
			if from > 0 && content[from-1] == '\r' {
				from--
			}
		}
	}
	if rest := content[to:]; bytes.HasPrefix(rest, []byte("\n")) || bytes.HasPrefix(rest, []byte("\r\n")) {
		to += bytes.IndexByte(rest, '\n') + 1
		if before := content[:from]; bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\n\r\n")) {
			eat(1)
		}
	} else {
		eat(2)
	}
	return []patch.Splice{{At: from, Old: string(content[from:to])}}, nil
}
