package git

import (
	"fmt"
	"strings"
	"time"
)

// Signature is a person and a time.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

// Line returns the signature as written in a commit.
func (s Signature) Line() string {
	clean := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r == '<' || r == '>' || r == '\n' || r == 0 {
				return -1
			}
			return r
		}, text)
		return strings.TrimSpace(text)
	}
	return fmt.Sprintf("%s <%s> %d %s", clean(s.Name), clean(s.Email), max(s.When.Unix(), 0), s.When.Format("-0700"))
}
