package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

// Several -m are paragraphs of one message, as in git.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"-m", "one"}, "one"},
		{[]string{"-m", "one", "--message=two\nthree", "-mfour"}, "one\n\ntwo\nthree\n\nfour"},
	} {
		var text string
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		messageFlag(flags, &text, "")
		if err := flags.Parse(c.args); err != nil || text != c.want {
			t.Errorf("%q: %q, %v", c.args, text, err)
		}
	}
}
