package landing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeFlags(t *testing.T) {
	for args, want := range map[string]MergeFlags{
		"":                                    {},
		"--abort":                             {Leaves: true},
		"--cont":                              {Resumes: true},
		"-h":                                  {Leaves: true},
		"-m --abort":                          {message: true},
		"-qm --abort":                         {message: true},
		"--message --abort -F x":              {message: true},
		"--mess=x":                            {message: true},
		"-s ours -Xtheirs":                    {strategy: true, content: []string{"--strategy=ours", "--strategy-option=theirs"}},
		"--strategy ours --strategy-o=theirs": {strategy: true, content: []string{"--strategy=ours", "--strategy-option=theirs"}},
		"--strat ours":                        {content: []string{"--strat"}, revisions: []string{"ours"}},
		"--squash --no-commit":                {squash: true},
		"--no-ff -e":                          {makes: true, content: []string{"--no-ff"}, edit: true},
		"--no-ff --ff-only":                   {content: []string{"--no-ff", "--ff-only"}},
		"-Skey --into-name x other":           {into: []string{"--into-name", "x"}, revisions: []string{"other"}},
		"--allow-unrelated-histories":         {content: []string{"--allow-unrelated-histories"}},
		"-- --yes":                            {revisions: []string{"--yes"}},
	} {
		got := ReadMergeFlags(strings.Fields(args))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(MergeFlags{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}
