package undo

import "coder/internal/record/undo/blob"

// Store keeps the contents of files. StoreOptions say how it behaves, and
// StoreDir is what it writes to.
type (
	Store        = blob.Store
	StoreOptions = blob.Options
	StoreDir     = blob.Dir
)

// OpenStore returns the store in dir. It touches nothing: the directory is made
// when there is something to put into it.
func OpenStore(dir string, o StoreOptions) *Store { return blob.Open(dir, o) }
