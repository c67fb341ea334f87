//go:build !linux

package layer

import "github.com/litterbox-sandbox/litterbox/internal/fault"

func makeWhiteout(string, string) error {
	return fault.New(fault.Unsupported, "cannot lay one tree over another: overlayfs is Linux")
}
