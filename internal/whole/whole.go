// Package whole writes a file whole or not at all: whoever reads it meanwhile,
// or after a crash, finds the old content or the new, never a part.
package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of the file at path. A new file has mode.
func Write(path string, text []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already if all went well
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
