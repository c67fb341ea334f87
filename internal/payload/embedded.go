//go:build embedguest

package payload

import _ "embed"

//go:embed litterbox-guest-linux-amd64.gz
var amd64 []byte

//go:embed litterbox-guest-linux-arm64.gz
var arm64 []byte

func embedded(arch string) []byte {
	switch arch {
	case "amd64":
		return amd64
	case "arm64":
		return arm64
	}
	return nil
}
