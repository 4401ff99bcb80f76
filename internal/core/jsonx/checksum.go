package jsonx

import (
	"hash/crc32"
	"sync"
	"sync/atomic"
)

// Checksum continues sum, the CRC-32C of encoded JSON, over b. The sum of nothing is 0.
//
// hash/crc32 prepares its tables for longer than a start takes to encode its first request. A small table therefore
// serves until the program has summed as much as repays them.
func Checksum(sum uint32, b []byte) uint32 {
	if summed.Add(int64(len(b))) > smallTableBytes {
		return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
	}
	return crc32.Update(sum, smallTable(), b)
}

// smallTableBytes is how many bytes the small table serves.
const smallTableBytes = 128 << 10

var summed atomic.Int64

// smallTable returns the table of CRC-32C, without those of hash/crc32 for eight bytes at a time.
var smallTable = sync.OnceValue(func() *crc32.Table {
	t := new(crc32.Table)
	for i := range t {
		crc := uint32(i)
		for range 8 {
			if low := crc & 1; low == 0 {
				crc >>= 1
			} else {
				crc = crc>>1 ^ crc32.Castagnoli
			}
		}
		t[i] = crc
	}
	return t
})
