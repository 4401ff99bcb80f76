package workspace_test

import (
	"context"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/host/workspace"
)

func TestWalk(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/b.txt", "")
	put(t, dir+"/a/deep/er/x", "")
	put(t, dir+"/.git/config", "")
	put(t, dir+"/node_modules/m/index.js", "")
	put(t, evil+"/secret", "")
	linkUnnamed(t, evil, dir+"/out")
	linkUnnamed(t, "..", dir+"/a/loop")

	var got []string
	for e := range ws.Walk(t.Context(), ".", 0) {
		s := strings.Repeat(">", e.Depth) + e.Path
		if e.Ignored {
			s += " ignored"
		}
		got = append(got, s)
	}
	want := []string{
		">.git ignored", ">a", ">b.txt", ">node_modules ignored", ">out",
		">>a/deep", ">>a/loop", ">>>a/deep/er", ">>>>a/deep/er/x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("walk = %q\nwant   %q", got, want)
	}
	if got := paths(ws.Walk(t.Context(), "a", 1)); !slices.Equal(got, []string{"a/deep", "a/loop"}) {
		t.Errorf("walk of depth 1 = %q", got)
	}
	if got := paths(ws.Walk(t.Context(), ".git", 0)); !slices.Equal(got, []string{".git/config"}) {
		t.Errorf("walk of a directory named = %q", got)
	}
	for e := range ws.Walk(t.Context(), "out", 0) {
		if e.Err == nil {
			t.Errorf("walk left the workspace: %q", e.Path)
		}
	}
}

func TestWalkStops(t *testing.T) {
	ws, dir, _ := open(t)
	for i := range 20 {
		put(t, dir+"/"+strconv.Itoa(i), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range ws.Walk(ctx, ".", 0) {
		if n++; n == 3 {
			cancel()
		}
	}
	if n != 3 {
		t.Errorf("walk went on to %d entries after cancel", n)
	}
	for range ws.Walk(t.Context(), ".", 0) {
		break // must not panic
	}
}

func TestWalkNotesUnreadableDirectories(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/a/x", "")
	put(t, dir+"/b/y", "")
	for e := range ws.Walk(t.Context(), ".", 0) {
		if e.Path == "a" && e.Err == nil {
			os.RemoveAll(dir + "/a") // gone between being named and being listed
		}
		if e.Path == "b/y" {
			return
		}
		if e.Err != nil && e.Path != "a" {
			t.Errorf("error for %q: %v", e.Path, e.Err)
		}
	}
	t.Error("the walk did not go on past a directory it could not list")
}

func paths(seq iter.Seq[workspace.Entry]) (list []string) {
	for e := range seq {
		list = append(list, e.Path)
	}
	return list
}

func TestWalkDescribesWhatItFinds(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/a/b.txt", "seven..")
	linkUnnamed(t, "a/b.txt", dir+"/l")
	for e := range ws.Walk(t.Context(), ".", 0) {
		info, err := e.Info()
		if err != nil || info.Name() != path.Base(e.Path) || info.Mode().Type() != e.Type {
			t.Errorf("%s is described as %v, %v", e.Path, info, err)
		}
		if e.Path == "a/b.txt" && info.Size() != 7 {
			t.Errorf("%s has %d bytes", e.Path, info.Size())
		}
	}
	if _, err := (workspace.Entry{}).Info(); err == nil {
		t.Error("nothing was described")
	}
}
