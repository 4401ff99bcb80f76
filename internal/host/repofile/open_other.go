//go:build !unix

package repofile

import "os"

const nonBlocking = 0

// openExactly opens the file name below dir.
func openExactly(dir, name string, _ bool) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
