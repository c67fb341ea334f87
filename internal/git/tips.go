package git

import (
	"context"
	"strings"
)

// Tips returns the commits of all branches by short name, with one git process.
func (r *Repository) Tips(ctx context.Context) (map[string]string, error) {
	out, err := r.Command("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/").Output(ctx)
	if err != nil {
		return nil, err
	}
	tips := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if oid, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			tips[strings.TrimPrefix(ref, Heads)] = oid
		}
	}
	return tips, nil
}
