package cli_test

import (
	"context"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// signer is an engine in which signatures wait.
type signer struct {
	fake
	answered []engine.ApproveRequest
}

func (*signer) Signatures(context.Context, string, string) ([]engine.Signature, error) {
	return []engine.Signature{
		{ID: 3, Purpose: `log in as "git" to example.com`, Key: "SHA256:x", Comment: "work@laptop"},
		{ID: 12, Purpose: "sign a commit or a tag of git", Key: "SHA256:y"},
	}, nil
}

func (s *signer) Approve(_ context.Context, r engine.ApproveRequest) error {
	s.answered = append(s.answered, r)
	return nil
}

// Approving and refusing say what was answered, and the shell completes the numbers.
func TestApprove(t *testing.T) {
	for _, c := range []struct {
		args   []string
		stdout string
		refuse bool
	}{
		{[]string{"approve", "a", "3"}, "approved 3: log in as \"git\" to example.com, with work@laptop\n", false},
		{[]string{"approve", "a", "12", "--refuse"}, "refused 12: sign a commit or a tag of git, with SHA256:y\n", true},
	} {
		s := &signer{}
		wantOutcome(t, lb(t, s, "", c.args...), outcome{Stdout: c.stdout})
		if len(s.answered) != 1 || s.answered[0].Refuse != c.refuse {
			t.Errorf("%q answered %+v", c.args, s.answered)
		}
	}
	wantOutcome(t, lb(t, &signer{}, "", "__complete", "approve", "a", "1"), outcome{
		Stdout: "12\tsign a commit or a tag of git\n:4\n", Stderr: "Completion ended with directive: ShellCompDirectiveNoFileComp\n",
	})
}
