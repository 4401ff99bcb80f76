package undo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/record/undo"
)

// countGit has the keeper use a git that counts its runs.
func (w *world) countGit() (runs func() int) {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.dir), "bin")
	w.must(os.Mkdir(dir, 0o755))
	git, err := exec.LookPath("git")
	w.must(err)
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\nexec %s \"$@\"\n", log, git)
	w.must(os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755))
	w.o.Launcher = program.NewOutside([]string{"PATH=" + dir + ":" + os.Getenv("PATH")}, "/nowhere")
	w.o.GitFiles = &undo.GitFiles{Configs: []string{filepath.Join(dir, "config")}, Attributes: []string{filepath.Join(dir, "attributes")}}
	return func() int {
		text, _ := os.ReadFile(log)
		return strings.Count(string(text), "\n")
	}
}

// A start of files that the index has runs git only where git alone can tell how it stores
// them. All of them can be read back either way.
func TestStartAsksGitOnlyWhereItHasTo(t *testing.T) {
	needGit(t)
	for name, tt := range map[string]struct {
		change func(w *world)
		asks   bool
	}{
		"no attributes":        {func(*world) {}, false},
		"harmless attributes":  {func(w *world) { w.put(".gitattributes", "*.png binary\n*.go diff=golang\n") }, false},
		"line ends":            {func(w *world) { w.put("d/.gitattributes", "* text=auto eol=crlf\n") }, false},
		"a filter":             {func(w *world) { w.put("d/.gitattributes", "*.bin filter=lfs\n") }, true},
		"keywords":             {func(w *world) { w.put(".git/info/attributes", "*.c ident\n") }, true},
		"converted by default": {func(w *world) { w.git("config", "core.autocrlf", "true") }, true},
		"another encoding":     {func(w *world) { w.put(".gitattributes", "*.x working-tree-encoding=UTF-16\n") }, true},
		"removed attributes":   {func(w *world) { w.put("e/.gitattributes", "") }, true},
		"a link":               {func(w *world) { w.must(os.Symlink("d/f1", w.path(".gitattributes"))) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs := w.countGit()
			w.git("init", "-q")
			for i := range manyFiles {
				w.put(fmt.Sprint("d/f", i), fmt.Sprintf("line %d\r\nline\r\n", i))
			}
			tt.change(w)
			w.commit()
			_ = os.Remove(w.path("e/.gitattributes"))
			w.restart()
			saved := w.start(false)
			if asked := runs() > 0; asked != tt.asks {
				t.Errorf("git ran %d times", runs())
			}
			files, err := w.keeper.Files(w.ctx, saved)
			w.must(err)
			byName := make(map[string]event.FileState)
			for _, f := range files {
				byName[f.Path] = f
			}
			for _, i := range []int{0, 7, manyFiles - 1} {
				text, err := w.keeper.Content(w.ctx, byName[fmt.Sprint("d/f", i)], 100)
				if string(text) != fmt.Sprintf("line %d\r\nline\r\n", i) {
					t.Errorf("file %d held %q, %v", i, text, err)
				}
			}
		})
	}
}
