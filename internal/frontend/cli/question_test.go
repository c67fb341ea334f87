package cli_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// contextFake also sees the context of a merge.
type contextFake struct {
	*fake
	merge func(context.Context, engine.MergeRequest) (engine.MergeResult, error)
}

func (f *contextFake) Merge(ctx context.Context, r engine.MergeRequest) (engine.MergeResult, error) {
	return f.merge(ctx, r)
}

func TestQuestions(t *testing.T) {
	risky := []engine.Risk{{Path: ".husky/post-merge\x1b[2J", Class: "git", Reason: "git runs it", Rank: 1}}
	for _, c := range []struct {
		name, answer string
		args         []string
		yes          bool
	}{
		{"yes", "y\n", []string{"merge", "fix"}, true},
		{"the word", "Yes\n", []string{"apply", "fix"}, true},
		{"no", "n\n", []string{"merge", "fix"}, false},
		{"nothing", "\n", []string{"merge", "fix"}, false},
		{"something else", "yikes\n", []string{"delete", "fix"}, false},
		{"delete", "y\n", []string{"delete", "fix"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScreen(t)
			var asked, answered bool
			e := &fake{
				merge: func(r engine.MergeRequest) (engine.MergeResult, error) {
					yes, err := r.Confirm(risky)
					asked, answered = true, yes
					return engine.MergeResult{}, err
				},
				delete: func(r engine.DeleteRequest) (engine.DeleteResult, error) {
					yes, err := r.Confirm(2)
					asked, answered = true, yes
					return engine.DeleteResult{Name: "fix"}, err
				},
			}
			if _, err := io.WriteString(s.user, c.answer+"left for git\n"); err != nil {
				t.Fatal(err)
			}
			if code := s.session(e).Run(t.Context(), c.args...); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !asked || answered != c.yes {
				t.Errorf("asked %t, answered %t, want %t", asked, answered, c.yes)
			}
			rest, err := bufio.NewReader(s.program).ReadString('\n')
			if rest != "left for git\n" || err != nil {
				t.Errorf("what follows the answer: %q, %v", rest, err)
			}
			shown := s.shown(t)
			want := "Merge them? [y/N]"
			if c.args[0] == "delete" {
				want = "fix has 2 unmerged commits. Delete it? [y/N]"
			} else if !strings.Contains(shown, ".husky/post-merge  (git runs it)") {
				t.Errorf("the file is not named: %q", shown)
			}
			if !strings.Contains(shown, want) || strings.Contains(shown, "\x1b[2J") {
				t.Errorf("shown: %q", shown)
			}
		})
	}
}

// shown is what has been written to the terminal so far.
func (s screen) shown(t *testing.T) string {
	t.Helper()
	const mark = "<end>"
	if _, err := io.WriteString(s.program, mark); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for b := make([]byte, 256); !strings.Contains(all.String(), mark); {
		n, err := s.user.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b[:n])
	}
	return strings.TrimSuffix(all.String(), mark)
}

func TestAnInterruptedQuestionMeansNo(t *testing.T) {
	s := newScreen(t)
	e := &fake{delete: func(r engine.DeleteRequest) (engine.DeleteResult, error) {
		go func() {
			// The question must be open before it can be interrupted.
			reader := bufio.NewReader(s.user)
			if _, err := reader.ReadString(']'); err != nil {
				t.Error(err)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}()
		yes, err := r.Confirm(1)
		if yes {
			t.Error("an interrupt meant yes")
		}
		return engine.DeleteResult{}, err
	}}
	session := s.session(e)
	if code := session.Run(t.Context(), "delete", "fix"); code != 130 {
		t.Errorf("exit code %d", code)
	}
}
