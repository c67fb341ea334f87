package machine

import (
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Status is the state of a machine at one moment. Negative numbers were not measured.
type Status struct {
	Isolation  sandbox.Isolation `json:"isolation"` // the strongest available; empty if there is none
	Tiers      []driver.Tier     `json:"tiers"`
	RoundTrip  time.Duration     `json:"round_trip_ns"`
	Clock      time.Duration     `json:"clock_ahead_ns"` // of this machine's
	Boot       string            `json:"boot"`
	Free       int64             `json:"disk_free_bytes"`   // where its state is
	Memory     int64             `json:"memory_free_bytes"` // without swapping
	Processors int               `json:"processors"`
	Load       float64           `json:"load"` // of the last minute
}
