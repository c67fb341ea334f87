package branch_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
)

// The test binary serves as the inside of a sandbox.
func TestMain(m *testing.M) { branchtest.Main(m) }
