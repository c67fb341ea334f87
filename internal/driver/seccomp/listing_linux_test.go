package seccomp_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
)

// The golden files show what a change opens or closes, call by call. After
// reading the difference: go test ./internal/driver/seccomp -update
func TestListing(t *testing.T) {
	t.Parallel()
	for _, arch := range arches() {
		t.Run(arch.Name, func(t *testing.T) {
			t.Parallel()
			got, err := seccomp.Listing(arch)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", arch.Name+".golden")
			if flag.Lookup("update").Value.String() == "true" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the policy changed (- golden, + now):\n%s", diff)
			}
		})
	}
}

// The tables were made from x/sys; this is the compiler's word on the numbers
// of the architecture at hand.
func TestNumbersAreThoseOfTheKernelHeaders(t *testing.T) {
	t.Parallel()
	arch, err := seccomp.Native()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint32{}
	for number, name := range arch.Calls {
		if name != "" {
			got[name] = uint32(number)
		}
	}
	if diff := cmp.Diff(unixCalls(), got); diff != "" {
		t.Errorf("run go generate (- x/sys, + table):\n%s", diff)
	}
}
