//go:build embedguest

package payload

import (
	_ "embed"
	"strings"
)

// Beside each program is the SHA-256 of its content, in hexadecimal digits: its
// name when unpacked, and the hash demanded of it there.
var (
	//go:embed litterbox-guest-linux-amd64.gz
	amd64 []byte
	//go:embed litterbox-guest-linux-amd64.id
	amd64ID string

	//go:embed litterbox-guest-linux-arm64.gz
	arm64 []byte
	//go:embed litterbox-guest-linux-arm64.id
	arm64ID string

	//go:embed litterbox-outpost-linux-amd64.gz
	outpostAMD64 []byte
	//go:embed litterbox-outpost-linux-amd64.id
	outpostAMD64ID string

	//go:embed litterbox-outpost-linux-arm64.gz
	outpostARM64 []byte
	//go:embed litterbox-outpost-linux-arm64.id
	outpostARM64ID string

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

func embeddedOutpost(arch string) (packed []byte, id string) {
	switch arch {
	case "amd64":
		return outpostAMD64, strings.TrimSpace(outpostAMD64ID)
	case "arm64":
		return outpostARM64, strings.TrimSpace(outpostARM64ID)
	}
	return nil, ""
}
