package keeper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
)

// The report is the last document; those before it are progress. A keeper that
// ends between them has reported nothing.
func TestReadReport(t *testing.T) {
	t.Parallel()
	const said = `{"progress":{"what":"sending","done":1,"total":9},"lease":null,"failure":null}
{"progress":{"what":"sending","done":9,"total":9},"lease":null,"failure":null}
`
	var heard []keeper.Progress
	hear := func(one keeper.Progress) { heard = append(heard, one) }
	report, err := keeper.ReadReport(strings.NewReader(said+`{"lease":null,"failure":null,"notes":["n"]}`), hear)
	if err != nil || !cmp.Equal(report, keeper.Report{Notes: []string{"n"}}) {
		t.Errorf("read %+v, %v", report, err)
	}
	if diff := cmp.Diff([]keeper.Progress{{What: "sending", Done: 1, Total: 9}, {What: "sending", Done: 9, Total: 9}}, heard); diff != "" {
		t.Errorf("progress (- want, + got):\n%s", diff)
	}
	for _, short := range []string{"", said, said + `{"lease":`, "no report"} {
		if report, err := keeper.ReadReport(strings.NewReader(short), nil); !errors.Is(err, keeper.ErrSilent) {
			t.Errorf("%q is read as %+v, %v", short, report, err)
		}
	}
}
