package seal

import (
	"hash/crc32"
	"testing"
)

// A record is the same whichever way it is summed: other versions of this
// program have written it, and will read it.
func TestSumIsCastagnoli(t *testing.T) {
	body := make([]byte, plainSum+3)
	for i := range body {
		body[i] = byte(i * 7 >> 3)
	}
	library := crc32.MakeTable(crc32.Castagnoli)
	for _, size := range []int{0, 1, 2, 255, 256, 4097, plainSum - 1, plainSum, plainSum + 1, len(body)} {
		if got, want := Sum(body[:size]), crc32.Checksum(body[:size], library); got != want {
			t.Errorf("%d bytes: %08x, want %08x", size, got, want)
		}
	}
}
