package workspace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"coder/internal/host/workspace"
)

func TestSwap(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "old")
	linkUnnamed(t, "f", dir+"/l")
	if err := ws.Swap("l", []byte("old"), []byte("new")); err != nil || get(t, dir+"/f") != "new" {
		t.Errorf("through a link: %v", err)
	}
	for name, c := range map[string]struct {
		file string
		old  []byte
	}{
		"changed": {"f", []byte("old")}, "is there": {"f", nil}, "is not there": {"g", []byte("old")}, "longer": {"f", []byte("newer")},
	} {
		if err := ws.Swap(c.file, c.old, []byte("x")); !errors.Is(err, workspace.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ws.Swap("sub/made", nil, []byte("made")); err != nil || get(t, dir+"/sub/made") != "made" {
		t.Errorf("made: %v", err)
	}
	if err := ws.Swap("f", []byte("new"), []byte{}); err != nil || get(t, dir+"/f") != "" {
		t.Errorf("emptied: %v", err)
	}
	if err := ws.Swap("f", []byte{}, []byte("again")); err != nil || get(t, dir+"/f") != "again" {
		t.Errorf("an empty file is a file: %v", err)
	}
	if names := list(t, dir); len(names) != 3 {
		t.Errorf("left are %q", names)
	}
}

// appendTo adds a line to a file in one of the ways in which programs write, and
// reports whether it did.
var appendTo = map[string]func(ws *workspace.Workspace, file, line string) bool{
	"one of us": func(ws *workspace.Workspace, file, line string) bool {
		old, _, err := ws.ReadFile(filepath.Base(file), 1<<20)
		return err == nil && ws.Swap(filepath.Base(file), old, append(bytes.Clone(old), line...)) == nil
	},
	"another of us": func(_ *workspace.Workspace, file, line string) bool {
		ws, err := workspace.Open(filepath.Dir(file))
		if err != nil {
			return false
		}
		defer ws.Close()
		old, _, err := ws.ReadFile(filepath.Base(file), 1<<20)
		return err == nil && ws.Swap(filepath.Base(file), old, append(bytes.Clone(old), line...)) == nil
	},
	"in place": func(_ *workspace.Workspace, file, line string) bool {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return false
		}
		_, err = f.WriteString(line)
		return errors.Join(err, f.Close()) == nil
	},
}

// Whatever others do to a file meanwhile, what was told to be in it is in it.
func TestNothingIsLostBetweenLookingAndReplacing(t *testing.T) {
	ws, dir, _ := open(t)
	file := dir + "/f"
	put(t, file, "")
	watched(t, ws) // where there are leases there is this
	told := make(map[string]int)
	var mu sync.Mutex
	var crew sync.WaitGroup
	for who, write := range appendTo {
		crew.Go(func() {
			for i := range 300 {
				line := fmt.Sprintf("%s %d\n", who, i)
				if write(ws, file, line) {
					mu.Lock()
					told[line]++
					mu.Unlock()
				}
			}
		})
	}
	crew.Wait()
	text := get(t, file)
	counts := make(map[string]int)
	for line := range told {
		who, _, _ := strings.Cut(line, " ")
		counts[who]++
		if n := strings.Count(text, line); n != 1 {
			t.Errorf("%q is there %d times", line, n)
		}
	}
	if len(counts) != 3 {
		t.Errorf("not all of them ever wrote: %v", counts)
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("left are %q", names)
	}
}

// An editor that writes beside the file and renames sees its work last.
func TestWhatAnEditorSavedIsNotReplaced(t *testing.T) {
	ws, dir, _ := open(t)
	file := dir + "/f"
	put(t, file, "0")
	saved := "0"
	done := make(chan struct{})
	var editor sync.WaitGroup
	editor.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			saved = fmt.Sprintf("saved %d", i)
			if err := errors.Join(os.WriteFile(dir+"/f.new", []byte(saved), 0o644), os.Rename(dir+"/f.new", file)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	lastOld := ""
	for range 500 {
		old, _, err := ws.ReadFile("f", 100)
		if err == nil && !strings.HasPrefix(string(old), "saved") && string(old) != "0" && string(old) != "ours" {
			t.Fatalf("read %q", old)
		}
		if err == nil && ws.Swap("f", old, []byte("ours")) == nil && string(old) != "ours" {
			lastOld = string(old)
		}
	}
	close(done)
	editor.Wait()
	if got := get(t, file); got != saved && (got != "ours" || lastOld != saved) {
		t.Errorf("saved %q, then found %q, which had replaced %q", saved, got, lastOld)
	}
}

func TestAFileThatIsBeingWrittenIsLeftAlone(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "old")
	watched(t, ws)
	f, err := os.OpenFile(dir+"/f", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := ws.Swap("f", []byte("old"), []byte("new")); !errors.Is(err, workspace.ErrBusy) {
		t.Errorf("while it is open: %v", err)
	}
	if _, err := f.WriteString("er"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil || get(t, dir+"/f") != "older" {
		t.Errorf("%v, %q", err, get(t, dir+"/f"))
	}
	if err := ws.Swap("f", []byte("older"), []byte("new")); err != nil {
		t.Error(err)
	}
}

func TestRemoveAsksAboutWhatItTookAway(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/f", "text")
	if err := ws.Remove("f", workspace.AcceptContent([]byte("other"))); !errors.Is(err, workspace.ErrChanged) || get(t, dir+"/f") != "text" {
		t.Error(err)
	}
	// After it was looked at an editor saves the file, or somebody writes to it.
	saved := func(workspace.Existing) error {
		put(t, dir+"/f.new", "saved")
		return os.Rename(dir+"/f.new", dir+"/f")
	}
	for name, do := range map[string]func(workspace.Accept) error{
		"remove":       func(a workspace.Accept) error { return ws.Remove("f", a) },
		"restore":      func(a workspace.Accept) error { return ws.Restore("f", strings.NewReader("new"), 0o644, a) },
		"restore link": func(a workspace.Accept) error { return ws.RestoreLink("f", "to", a) },
	} {
		put(t, dir+"/f", "text")
		if err := do(saved); !errors.Is(err, workspace.ErrChanged) || get(t, dir+"/f") != "saved" {
			t.Errorf("%s: %v, %q", name, err, get(t, dir+"/f"))
		}
	}
	put(t, dir+"/f", "text")
	if err := ws.Remove("f", workspace.AcceptContent([]byte("text"))); err != nil {
		t.Error(err)
	}
	if names := list(t, dir); len(names) != 0 {
		t.Errorf("left are %q", names)
	}
}

// A file that cannot be put back, because a newer one came, is kept and named, and no sweep
// removes it.
func TestWhatCannotBePutBackIsKept(t *testing.T) {
	ws, dir, _ := open(t)
	ws.UseScratchDir(".coder/tmp")
	saved := func(workspace.Existing) error { // by an editor
		put(t, dir+"/f.new", "saved")
		return os.Rename(dir+"/f.new", dir+"/f")
	}
	for range 2000 {
		put(t, dir+"/f", "text")
		done, ended := make(chan struct{}), make(chan struct{})
		go func() { // somebody makes the file as soon as it is away
			defer close(ended)
			for {
				if f, err := os.OpenFile(dir+"/f", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
					f.Close()
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		}()
		err := ws.Remove("f", saved)
		close(done)
		<-ended
		if err == nil {
			t.Fatal("removed what an editor saved")
		}
		if get(t, dir+"/f") == "saved" {
			continue
		}
		left := list(t, dir+"/.coder/tmp")
		if len(left) != 1 || get(t, dir+"/.coder/tmp/"+left[0]) != "saved" || !errors.Is(err, workspace.ErrNotRestored) || !strings.Contains(err.Error(), left[0]) {
			t.Fatalf("what an editor saved is gone: %v, %q", err, left)
		}
		abandoned := strings.Replace(left[0], fmt.Sprint(os.Getpid()), fmt.Sprint(dead), 1)
		if err := os.Rename(dir+"/.coder/tmp/"+left[0], dir+"/.coder/tmp/"+abandoned); err != nil {
			t.Fatal(err)
		}
		if stay := ws.RemoveScratch(nil, func(io.ReadSeeker) bool { return false }); len(stay) != 1 {
			t.Errorf("swept what nobody else has: %q", stay)
		}
		return
	}
	t.Skip("nobody was quick enough")
}

func TestTemporaryFilesLieInTheScratchDirectory(t *testing.T) {
	ws, dir, _ := open(t)
	ws.UseScratchDir(".coder/tmp")
	put(t, dir+"/sub/f", "old")
	seen := ""
	peek := func(workspace.Existing) error {
		seen += fmt.Sprint(list(t, dir+"/sub"))
		return nil
	}
	if err := ws.Restore("sub/f", strings.NewReader("new"), 0o600, peek); err != nil || get(t, dir+"/sub/f") != "new" {
		t.Fatal(err)
	}
	if err := ws.RestoreLink("sub/f", "x", peek); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(seen, ".coder-") {
		t.Errorf("beside the file: %s", seen)
	}
	if left := list(t, dir+"/.coder/tmp"); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// dead is the number of a process that is not there.
const dead = 1<<22 + 1

func TestSweep(t *testing.T) {
	ws, dir, _ := open(t)
	ws.UseScratchDir(".coder/tmp")
	if left := ws.RemoveScratch(nil, nil); left != nil {
		t.Errorf("of nothing: %q", left)
	}
	name := func(pid int, tail string) string { return fmt.Sprintf(".coder-%d-1%s.tmp", pid, tail) }
	const x = "-2d711642b726b044" // what "x" sums up to
	files := map[string]bool{     // whether it stays
		".coder/tmp/" + name(dead, x):                   false,
		".coder/tmp/" + name(dead, "-0000000000000000"): true, // it holds something else
		".coder/tmp/" + name(dead, ""):                  false,
		".coder/tmp/" + name(os.Getpid(), x):            true,
		".coder/tmp/notes":                              true,
		"sub/" + name(dead, x):                          false,
		"sub/" + name(dead, "-11111111111111111"):       true, // not a name of ours
		"sub/.coder-mine.tmp":                           true,
	}
	var beside []string
	for file := range files {
		put(t, dir+"/"+file, "x")
		if strings.HasPrefix(file, "sub/") {
			beside = append(beside, file)
		}
	}
	left := ws.RemoveScratch(beside, func(io.ReadSeeker) bool { return false })
	if len(left) != 1 || !strings.HasSuffix(left[0], "-0000000000000000.tmp") {
		t.Errorf("left: %q", left)
	}
	for file, stays := range files {
		if _, err := os.Stat(dir + "/" + file); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: stays %v, %v", file, stays, err)
		}
	}
	if left := ws.RemoveScratch(nil, func(io.ReadSeeker) bool { return true }); left != nil {
		t.Errorf("kept elsewhere: %q", left)
	}
}
