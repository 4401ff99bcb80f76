package workspace

import (
	"os"
	"path/filepath"
)

// Program finds a program by its name in a list of folders such as PATH, and
// none that lies in the workspace: what a repository brings along is not run
// because it is called the same. It is "" if there is none.
func (w *Workspace) Program(pathList, name string) string {
	for _, dir := range filepath.SplitList(pathList) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil || w.holds(file) || w.holds(real) {
			continue
		}
		return file
	}
	return ""
}

func (w *Workspace) holds(name string) bool {
	_, err := w.Resolve(name)
	return err == nil
}
