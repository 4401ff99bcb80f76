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

// Print is a word for all files below a folder by their names, sizes, modes and
// times, and for the records of sessions there, without what git keeps of its own. It
// is another one once a file was changed or a session was continued.
func Print(dir string) (string, error) {
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
				return nil // what coder writes when a session is only looked at
			}
			written = 0
		}
		fmt.Fprintf(sum, "%q %o %d %d\n", name, info.Mode(), info.Size(), written)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
