package seal

import (
	"hash/crc32"
	"sync"
)

// plainSum is the size, in bytes, up to which a body is summed with a table of
// our own. The library takes 0.2 ms in every process to prepare its table for
// the processor's own instruction: far more than a record takes without.
const plainSum = 16 << 10

// Sum is CRC-32C.
func Sum(body []byte) uint32 {
	if len(body) > plainSum {
		return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	}
	t := table()
	crc := ^uint32(0)
	for _, b := range body {
		crc = t[byte(crc)^b] ^ crc>>8
	}
	return ^crc
}

// table holds the effect of each byte value on a sum.
var table = sync.OnceValue(func() *[256]uint32 {
	var t [256]uint32
	for i := range t {
		crc := uint32(i)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ crc32.Castagnoli
			} else {
				crc >>= 1
			}
		}
		t[i] = crc
	}
	return &t
})
