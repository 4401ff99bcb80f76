package undo

import "testing"

// SetMany makes fewer files count as many.
func SetMany(t *testing.T, n int) {
	was := manyFiles
	manyFiles = n
	t.Cleanup(func() { manyFiles = was })
}
