//go:build embedguest

package payload

import (
	_ "embed"
	"strings"
)

// Beside each program stands its build ID, a hash of its content (`go tool
// buildid`): to hash megabytes at every start would take longer than to start.
var (
	//go:embed litterbox-guest-linux-amd64.gz
	amd64 []byte
	//go:embed litterbox-guest-linux-amd64.id
	amd64ID string

	//go:embed litterbox-guest-linux-arm64.gz
	arm64 []byte
	//go:embed litterbox-guest-linux-arm64.id
	arm64ID string

	//go:embed litterbox-full.gz
	full []byte
	//go:embed litterbox-full.id
	fullID string
)

func embedded(arch string) (packed []byte, id string) {
	switch arch {
	case "amd64":
		return amd64, strings.TrimSpace(amd64ID)
	case "arm64":
		return arm64, strings.TrimSpace(arm64ID)
	}
	return nil, ""
}

func embeddedFull() (packed []byte, id string) { return full, strings.TrimSpace(fullID) }
