package undo

import "coder/internal/undo/blob"

// Store keeps the contents of files. StoreOptions say how it behaves.
type (
	Store        = blob.Store
	StoreOptions = blob.Options
)

// OpenStore returns the store in dir. It touches nothing: the directory is made
// when there is something to put into it.
func OpenStore(dir string, o StoreOptions) *Store { return blob.Open(dir, o) }
