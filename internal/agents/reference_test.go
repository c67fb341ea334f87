package agents_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/agents"
)

var update = flag.Bool("update", false, "rewrite the reference page")

func TestReference(t *testing.T) {
	const page = "../../docs/reference/agents.md"
	got := agents.Reference()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is known of the clients; rewrite it with -update (-want +got):\n%s", page, diff)
	}
}
