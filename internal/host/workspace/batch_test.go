package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"coder/internal/host/workspace"
)

func TestBatchesAreTheFilesOfAWalk(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/.gitignore", "*.log\nout/\n")
	for i := range 200 {
		put(t, fmt.Sprintf("%s/d%d/e%d/f%d", dir, i%3, i%2, i), "x")
	}
	for i := range 150 {
		put(t, fmt.Sprintf("%s/flat/f%d", dir, i), "x")
	}
	put(t, dir+"/a.log", "")
	put(t, dir+"/out/x", "")
	put(t, dir+"/.git/x", "")
	put(t, evil+"/x", "secret")
	linkUnnamed(t, evil, dir+"/link")
	linkUnnamed(t, evil+"/x", dir+"/linked")
	if err := syscall.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for e := range ws.Walk(t.Context(), ".", 0) {
		if e.Type.IsRegular() && !e.Ignored {
			want = append(want, e.Path)
		}
	}
	for b := range ws.Batches(t.Context(), ".") {
		r, err := b.Open()
		if err != nil || b.Err != nil {
			t.Fatal(err, b.Err)
		}
		for _, name := range b.Names {
			got = append(got, path.Join(b.Dir, name))
			if data, err := r.Read(name, 100); err != nil || len(data) == 0 {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		r.Close()
	}
	if !slices.Equal(got, want) || len(want) != 351 {
		t.Errorf("%d files in batches, %d in a walk", len(got), len(want))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for b := range ws.Batches(ctx, ".") {
		t.Errorf("after the end: %v", b)
	}
}

func TestReaderRefuses(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/f", "12345")
	put(t, dir+"/d/g", "x")
	put(t, evil+"/x", "secret")
	var batch workspace.Batch
	for b := range ws.Batches(t.Context(), ".") {
		batch = b
		break
	}
	r, err := batch.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	linkUnnamed(t, evil+"/x", dir+"/link") // since the directory was listed
	if err := syscall.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"link": syscall.ELOOP, "fifo": workspace.ErrNotRegular, "d": workspace.ErrNotRegular, "none": os.ErrNotExist} {
		if b, err := r.Read(name, 100); !errors.Is(err, want) {
			t.Errorf("Read(%s) = %q, %v", name, b, err)
		}
	}
	if _, err := r.Read("f", 4); !errors.Is(err, workspace.ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
	if b, err := r.Read("f", 5); string(b) != "12345" || err != nil {
		t.Errorf("Read(f) = %q, %v", b, err)
	}
}

func TestAddedTrees(t *testing.T) {
	ws, dir, evil := open(t)
	ws.Close()
	inner := filepath.Join(evil, "inner")
	put(t, evil+"/f", "f")
	put(t, inner+"/g", "g")
	put(t, dir+"/m", "m")
	linkUnnamed(t, dir+"/m", evil+"/across")
	linkUnnamed(t, evil+"/f", dir+"/into")
	linkUnnamed(t, "inner", evil+"/alias")
	ws, err := workspace.Open(dir, evil, inner)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	real, err := filepath.EvalSymlinks(evil)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"m": "m", dir + "/m": "m", evil + "/f": real + "/f", evil + "/x/../f": real + "/f", inner + "/g": real + "/inner/g", evil + "/alias/g": real + "/inner/g"} {
		if got, err := ws.Locate(in); got != want || err != nil {
			t.Errorf("Locate(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, name := range []string{"../ws-evil/f", evil + "/across", dir + "/into", "into", filepath.Dir(evil) + "/x", evil + "2/f"} {
		if _, err := ws.Stat(name); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("Stat(%q): %v", name, err)
		}
		if err := ws.WriteFile(name, []byte("x")); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("WriteFile(%q): %v", name, err)
		}
	}
	if err := ws.WriteFile(evil+"/new/h", []byte("h")); err != nil || get(t, evil+"/new/h") != "h" {
		t.Errorf("WriteFile: %v", err)
	}
	if err := ws.WriteFile(evil+"/f", []byte("F")); err != nil || get(t, evil+"/f") != "F" {
		t.Errorf("WriteFile: %v", err)
	}
	if err := ws.WriteFile(evil+"/inner", nil); err == nil || !strings.Contains(err.Error(), "inner is a directory") {
		t.Errorf("the error does not name the path: %v", err)
	}
	var names []string
	for e := range ws.Walk(t.Context(), evil, 1) {
		names = append(names, strings.TrimPrefix(e.Path, real+"/"))
	}
	if got := strings.Join(names, " "); got != "across alias f inner new" {
		t.Errorf("Walk = %q", got)
	}
	if err := ws.Delete(evil + "/f"); err != nil {
		t.Error(err)
	}
	if got := ws.AddedDirs(); len(got) != 2 || got[0] != evil {
		t.Errorf("Added = %q", got)
	}
	if _, err := workspace.Open(dir, evil+"/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a tree that is not there: %v", err)
	}
}
