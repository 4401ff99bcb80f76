package git_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/host/program"
	"coder/internal/tool/git"
)

// TestReadingChangesNothing covers what git would do on the side: note in its
// index that a file whose time changed is the same.
func TestReadingChangesNothing(t *testing.T) {
	r := newRepo(t)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(r.dir, "a.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(r.dir, ".git/index")
	before, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	o := r.options(".")
	if v := r.must(git.Diff(o), `{}`); v.Diff != "" {
		t.Errorf("diff = %q", v.Diff)
	}
	if v := r.must(git.Status(o), `{}`); !v.Clean {
		t.Errorf("status = %q", v.Changes)
	}
	if after, err := os.ReadFile(index); err != nil || string(after) != string(before) {
		t.Errorf("the index was written, %v", err)
	}
}

func TestTime(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", "two\n")
	r.git("add", "a.txt")
	r.put(".git/hooks/pre-commit", "#!/bin/sh\necho waiting >&2\nsleep 1000\n")
	if err := os.Chmod(filepath.Join(r.dir, ".git/hooks/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := r.options(".")
	o.Hooks, o.Timeout = true, time.Second
	r.refused(git.Commit(o), `{"message":"m"}`, "timed out after 1s")
	if _, err := os.Stat(filepath.Join(r.dir, ".git/index.lock")); err == nil {
		t.Error("a lock was left behind")
	}

	o.Timeout = 0
	call, err := git.Commit(o).Prepare(t.Context(), json.RawMessage(`{"message":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := call.Run(ctx, io.Discard); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if r.git("log", "--format=%s") != "first\n" {
		t.Error("there is a commit")
	}
}

func TestHooksRunIfTheyMay(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", "two\n")
	r.git("add", "a.txt")
	r.put(".git/hooks/commit-msg", "#!/bin/sh\necho no such message >&2\nexit 1\n")
	if err := os.Chmod(filepath.Join(r.dir, ".git/hooks/commit-msg"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := r.options(".")
	o.Hooks = true
	r.refused(git.Commit(o), `{"message":"m"}`, "git commit: no such message")
	o.Hooks = false
	r.must(git.Commit(o), `{"message":"m"}`)
}

func TestWithoutGit(t *testing.T) {
	r := newRepo(t)
	o := r.options(".")
	o.Launcher = program.NewOutside([]string{"PATH=" + t.TempDir()}, r.dir)
	r.refused(git.Status(o), `{}`, "git is not installed")
}

func TestTheEnvironmentDoesNotLeadAstray(t *testing.T) {
	r, other := newRepo(t), newRepo(t)
	other.put("theirs", "x")
	o := r.options(".")
	o.Launcher = o.Launcher.WithEnv(append(r.env(), "GIT_DIR="+other.dir+"/.git", "GIT_WORK_TREE="+other.dir, "GIT_INDEX_FILE=/nowhere",
		"GIT_CONFIG_PARAMETERS='core.bare=true'", "GIT_TRACE=/dev/stderr", "GIT_EXEC_PATH=/nowhere", "LANG=de_DE.UTF-8"))
	if v := r.must(git.Status(o), `{}`); !v.Clean {
		t.Errorf("status = %+v", v)
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{"x", "--amend", "-F/etc/passwd", "a\n\nb", "# c", "\x1b[2J", "\xff", "\r\n", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		r := newRepo(t)
		r.put("a.txt", "two\n")
		r.git("add", "a.txt")
		args, err := json.Marshal(map[string]string{"message": message})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.call(git.Commit(r.options(".")), string(args)); err == nil {
			if n := strings.Count(r.git("log", "--format=%h"), "\n"); n != 2 {
				t.Errorf("%q left %d commits", message, n)
			}
		}
	})
}
