package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Fingerprint returns a fingerprint of all files below a folder, from their names, sizes, modes and times, and
// of session records there, without git's own files. It changes once a file changes or a session
// continues.
func Fingerprint(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case name == ".git" || d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		written := info.ModTime().UnixNano()
		if _, own, ok := strings.Cut("/"+name, "/.coder/"); ok {
			if !strings.HasPrefix(own, "log/") || path.Ext(own) != ".jsonl" {
				return nil // files that coder writes when a session is only viewed
			}
			written = 0
		}
		fmt.Fprintf(sum, "%q %o %d %d\n", name, info.Mode(), info.Size(), written)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
