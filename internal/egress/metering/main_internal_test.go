package metering

import (
	"os"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/zstd"
	"github.com/litterbox-sandbox/litterbox/internal/zstd/linked"
)

func TestMain(m *testing.M) {
	zstd.Use(linked.NewReader)
	os.Exit(m.Run())
}
