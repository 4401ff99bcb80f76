package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file of a world.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// recordFolders are folders of records in a world, each with something kept.
var recordFolders = []string{".coder/undo/objects", ".coder/log", "sub/.coder/runs/s1"}

func (w world) records(t testing.TB) Limits {
	t.Helper()
	for _, dir := range recordFolders {
		put(t, filepath.Join(w.work, dir, "kept"), "KEPT\n")
	}
	put(t, filepath.Join(w.work, "sub/plain"), "TODO there\n")
	put(t, filepath.Join(w.work, ".coder/plans/plan.md"), "a plan\n")
	l := w.limits()
	for _, dir := range []string{".coder/undo", ".coder/log", "sub/.coder/runs"} {
		l.Hide = append(l.Hide, filepath.Join(w.work, dir))
	}
	l.Hide = append(l.Hide, filepath.Join(w.work, ".coder/cache")+"/")
	return l
}

func TestConfinedCommandsSeeEmptyFoldersForRecords(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.records(t)
		if s.Backend() == Landlock {
			l.Write = []string{w.temp} // a line that only reads
		}
		through := wrap(t, s, l)
		for _, script := range []string{
			"cat .coder/undo/objects/*", "cat .c*/log/*", "grep -rh KEPT .", "cat sub/.coder/runs/s1/kept",
			"ln -s .coder/log $T/to && cat $T/to/kept",
			"cat /proc/self/root$PWD/.coder/log/kept", "cd .coder/log && cat kept", "tar cf - . | grep -a KEPT",
			"mv sub sub2; cat sub2/.coder/runs/s1/kept; mv sub2 sub",
			"umount .coder/log; cat .coder/log/kept", "cp -r .coder $T/copy; cat $T/copy/log/kept",
		} {
			if got := w.run(t, through, script); strings.Contains(got.stdout+got.stderr, "KEPT") {
				t.Errorf("%s: %+v", script, got)
			}
		}
		if s.Backend() == Landlock {
			return
		}
		for _, script := range []string{
			"tar cf $T/x.tar .", "cp -r . $T/all", "find . >/dev/null", "du -s . >/dev/null", "grep -rq TODO .",
			"ls -la .coder/log", "cat .coder/plans/plan.md",
			"rmdir $T/all/.coder/log && rm -r $T/all", "ls -R >/dev/null",
		} {
			if got := w.run(t, through, script); got.code != 0 || got.stderr != "" {
				t.Errorf("%s: %+v", script, got)
			}
		}
		before := w.limits() // as commands ended before anything was hidden
		for _, script := range []string{
			"git init -q g 2>/dev/null; git clean -ndx >/dev/null", "rm -r .coder 2>/dev/null",
			"rm -rf .coder/log 2>/dev/null", "mv .coder other 2>/dev/null",
		} {
			was, is := w.run(t, wrap(t, s, before), script), w.run(t, through, script)
			if was.code != is.code {
				t.Errorf("%s: %+v, before %+v", script, is, was)
			}
		}
		for _, dir := range recordFolders {
			if text, err := os.ReadFile(filepath.Join(w.work, dir, "kept")); string(text) != "KEPT\n" {
				t.Errorf("%s: %q, %v", dir, text, err)
			}
		}
	})
}

// What runs on, such as a server, does not see what is put into a folder of
// records that is made only then.
func TestFoldersForRecordsAreHiddenFromTheStart(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if !s.CanProtect() {
			t.Skip("it hides nothing where commands may write")
		}
		w := newWorld(t)
		l := w.records(t)
		cache := filepath.Join(w.work, ".coder/cache")
		cmd := w.command(t, wrap(t, s, l), "read go; cat .coder/cache/* sub/plain")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(cache, "late"), "KEPT\n")
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Error(err)
		}
		if _ = cmd.Wait(); out.String() != "TODO there\n" {
			t.Errorf("it saw %q", out.String())
		}
		if err := os.Remove(filepath.Join(cache, "late")); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(cache); err == nil {
			t.Error("the folder that was made for that is left")
		}
	})
}

// A folder whose name decides what is hidden in it keeps that name.
func TestConfinedCommandsMoveNoPinnedFolder(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() == Landlock {
			t.Skip("Landlock hides nothing from commands that write")
		}
		w := newWorld(t)
		l := w.limits()
		for _, name := range []string{"private/deep/x", "other/x"} {
			put(t, filepath.Join(w.work, name), "DENIED\n")
		}
		l.Hide = append(l.Hide, filepath.Join(w.work, "private/deep/x"))
		l.Pin = []string{filepath.Join(w.work, "private"), filepath.Join(w.work, "private/deep"), w.work, "/nowhere", w.outside}
		through := wrap(t, s, l)
		for _, script := range []string{
			"mv private elsewhere", "mv private/deep elsewhere", "mv private $T/elsewhere && rm $T/elsewhere", "rm -r private",
			"mv private/deep/x x", "ln private/deep/x x", "$SELF __attack exchange private other", "$SELF __attack exchange private/deep other",
		} {
			_ = w.run(t, through, script)
			if got := w.run(t, wrap(t, s, w.limits()), "cat private/deep/x"); got.stdout != "DENIED\n" {
				t.Fatalf("%s moved it: %+v", script, got)
			}
		}
		for _, script := range []string{
			"echo new > private/new && mv private/new private/deep/new && rm private/deep/new", "mv other other2 && mv other2 other",
		} {
			if got := w.run(t, through, script); got.code != 0 {
				t.Errorf("%s: %+v", script, got)
			}
		}
	})
}
