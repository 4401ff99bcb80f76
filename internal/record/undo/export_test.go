package undo

import "testing"

// SetMany makes fewer files count as many.
func SetMany(t *testing.T, n int) {
	was := many
	many = n
	t.Cleanup(func() { many = was })
}
