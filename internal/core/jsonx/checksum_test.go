package jsonx

import (
	"bytes"
	"hash/crc32"
	"testing"
)

// TestChecksum compares both tables with hash/crc32: sums on disk outlive the program.
func TestChecksum(t *testing.T) {
	text := bytes.Repeat([]byte(`{"a":1}`), 5000)
	for n := range 2 * smallTableBytes / len(text) {
		from := n * 31 % 100
		want := crc32.Checksum(text[from:], crc32.MakeTable(crc32.Castagnoli))
		if got := Checksum(Checksum(0, text[from:200]), text[200:]); got != want {
			t.Fatalf("after %d bytes: %08x, want %08x", summed.Load(), got, want)
		}
	}
	if got := Checksum(0, nil); got != 0 {
		t.Errorf("the sum of nothing is %08x", got)
	}
}
