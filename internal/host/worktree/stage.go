package worktree

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"coder/internal/host/repofile"
)

// maxStageAge is how old a temporary folder must be for nobody to work in it any more.
const maxStageAge = 24 * time.Hour

// MakeTemp makes a new folder whose name begins with prefix, and removes those that a killed
// program left beside it.
func MakeTemp(dir, prefix string, now time.Time) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, old := range left {
		if info, err := os.Lstat(old); err == nil && info.IsDir() && now.Sub(info.ModTime()) > maxStageAge {
			RemoveAll(old)
		}
	}
	made, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(made)
}

// RemoveAll removes a folder, also what commands left read-only in it.
func RemoveAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// maxCopied bounds each file that is copied.
const maxCopied = 64 << 20

// CopyTree copies a file, or a folder of files, into a folder that coder made. Links and what
// cannot be read are skipped.
func CopyTree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target, info := filepath.Join(to, rel), fs.FileInfo(nil)
		if info, err = d.Info(); err != nil {
			return nil
		}
		if d.IsDir() {
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if text, err := repofile.ReadOwn(path, maxCopied); err == nil {
			return os.WriteFile(target, text, info.Mode().Perm()|0o600)
		}
		return nil
	})
}
