package branch

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// Trailer is one line at the end of a commit message, git-interpret-trailers(1).
type Trailer struct {
	Key   string
	Value string
}

// message assembles the parts of a commit message.
func (i *importer) message() string {
	return commitMessage(i.q.Secrets, i.q.Subject, i.q.Body, i.q.Trailers)
}

func commitMessage(secrets redact.Secrets, subject, body string, trailers []Trailer) string {
	// Commands and messages come from an agent, too, and go wherever the branch is
	// pushed.
	clean := func(s string) string {
		return strings.Trim(tameMessage(secrets.Tokens(strings.ReplaceAll(s, "\x00", ""))), "\n")
	}
	oneLine := func(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
	text := oneLine(subject) + "\n"
	if body = clean(body); body != "" {
		text += "\n" + body + "\n"
	}
	for n, t := range trailers {
		if n == 0 {
			text += "\n"
		}
		text += t.Key + ": " + oneLine(t.Value) + "\n"
	}
	return text
}
