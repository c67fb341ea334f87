//go:build embedguest

package payload

import (
	_ "embed"
	"strings"
)

// Beside each program stands the SHA-256 of its content, in hexadecimal digits:
// its name where it is unpacked, and what is demanded of it there.
var (
	//go:embed litterbox-guest-linux-amd64.gz
	amd64 []byte
	//go:embed litterbox-guest-linux-amd64.id
	amd64ID string

	//go:embed litterbox-guest-linux-arm64.gz
	arm64 []byte
	//go:embed litterbox-guest-linux-arm64.id
	arm64ID string

	//go:embed litterbox-keeper.gz
	keeper []byte
	//go:embed litterbox-keeper.id
	keeperID string

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

func embeddedKeeper() (packed []byte, id string) { return keeper, strings.TrimSpace(keeperID) }
