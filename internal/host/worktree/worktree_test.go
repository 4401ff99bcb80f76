package worktree_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/host/worktree"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func repository(t *testing.T) (*worktree.Tree, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "sub/gone.txt"), "gone\n")
	write(t, filepath.Join(dir, "built.o"), "tracked though ignored\n")
	write(t, filepath.Join(dir, ".gitignore"), "*.o\n")
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-qm", "first")
	tree, err := worktree.Open(t.Context(), dir, program.NewOutside(os.Environ(), t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return tree, dir
}

// keeper is what files held, by hash.
type keeper map[string]string

func (k keeper) content(_ context.Context, s event.FileState) ([]byte, error) {
	text, ok := k[s.Hash]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// fill makes a folder hold these files and no others.
func fill(t *testing.T, dir string, files worktree.Files, kept keeper, spared ...string) (lost []string, err error) {
	t.Helper()
	f, err := worktree.OpenFolder(dir, kept.content)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.RemoveExtra(files, spared...); err != nil {
		return nil, err
	}
	return f.Fill(t.Context(), files)
}

// What a worktree is filled with is all that is there, byte for byte, with modes and
// links; what git has already is not asked for.
func TestAWorktreeIsFilledWithTheFilesOfThen(t *testing.T) {
	tree, dir := repository(t)
	commit, err := tree.CommitAt(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(filepath.Dir(dir), "shop-at-7")
	made, err := tree.Add(t.Context(), into, "coder/x", commit)
	if err != nil {
		t.Fatal(err)
	}
	spared, err := made.TrackedIgnored(t.Context(), into)
	if err != nil || !slices.Equal(spared, []string{"built.o"}) {
		t.Fatalf("tracked and ignored: %q, %v", spared, err)
	}
	sum := sha1.Sum([]byte("blob 4\x00one\n"))
	files := worktree.Files{
		"a.txt":   {Path: "a.txt", Hash: "git:" + hex.EncodeToString(sum[:]), Size: 4, Mode: 0o755},
		"new.bin": {Path: "new.bin", Hash: "h1", Size: 3, Mode: 0o600},
		"l":       {Path: "l", Hash: "link", Link: "a.txt"},
		"d":       {Path: "d", Hash: "dir", Mode: 0o555},
		"d/in":    {Path: "d/in", Hash: "h2", Mode: 0o444},
		"lost":    {Path: "lost", Hash: "h3"},
		"absent":  {Path: "absent"},
	}
	lost, err := fill(t, into, files, keeper{"h1": "\x00\xff\n", "h2": "in"}, spared...)
	if err != nil || !slices.Equal(lost, []string{"lost"}) {
		t.Fatalf("fill: lost %q, %v", lost, err)
	}
	want := []string{
		".gitignore gone", "a.txt -rwxr-xr-x one\n", "built.o -rw-r--r-- tracked though ignored\n", "d/in -r--r--r-- in",
		"l Lrwxrwxrwx a.txt", "new.bin -rw------- \x00\xff\n",
	}
	for _, w := range want[1:] {
		name, rest, _ := strings.Cut(w, " ")
		info, err := os.Lstat(filepath.Join(into, name))
		if err != nil {
			t.Error(err)
			continue
		}
		text, _ := os.Readlink(filepath.Join(into, name))
		if info.Mode().IsRegular() {
			data, _ := os.ReadFile(filepath.Join(into, name))
			text = string(data)
		}
		if got := info.Mode().String() + " " + text; got != rest {
			t.Errorf("%s is %q, want %q", name, got, rest)
		}
	}
	for _, name := range []string{".gitignore", "sub", "sub/gone.txt", "lost", "absent"} {
		if _, err := os.Lstat(filepath.Join(into, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if info, err := os.Stat(filepath.Join(into, "d")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	if stays, err := tree.Remove(t.Context(), into, "coder/x", commit); err != nil || stays {
		t.Errorf("remove: %v, %v", stays, err)
	}
	if _, err := os.Lstat(into); err == nil || strings.Contains(git(t, dir, "branch", "-a"), "coder/x") {
		t.Error("the worktree or its branch is left")
	}
}

// A branch that somebody committed to outlives its worktree, and one whose folder was
// removed by hand is forgotten.
func TestABranchWithCommitsStays(t *testing.T) {
	tree, dir := repository(t)
	commit := git(t, dir, "rev-parse", "HEAD")
	into := filepath.Join(filepath.Dir(dir), "w")
	if _, err := tree.Add(t.Context(), into, "coder/x", commit); err != nil {
		t.Fatal(err)
	}
	git(t, into, "commit", "-q", "--allow-empty", "-m", "more")
	if err := os.RemoveAll(into); err != nil {
		t.Fatal(err)
	}
	if stays, err := tree.Remove(t.Context(), into, "coder/x", commit); err != nil || !stays {
		t.Errorf("remove: %v, %v", stays, err)
	}
	if list := git(t, dir, "worktree", "list"); strings.Contains(list, into) {
		t.Errorf("git still lists it: %s", list)
	}
}

// A repository's hooks and filters do not run, and nothing is laid out that git obeys.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	tree, dir := repository(t)
	marker := filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(dir, ".git/hooks/post-checkout"), "#!/bin/sh\ntouch "+marker+"\n")
	if err := os.Chmod(filepath.Join(dir, ".git/hooks/post-checkout"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "config", "filter.x.smudge", "touch "+marker+"; cat")
	write(t, filepath.Join(dir, ".git/info/attributes"), "* filter=x\n")
	if err := tree.InspectConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(filepath.Dir(dir), "w")
	if _, err := tree.Add(t.Context(), into, "coder/x", "HEAD"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the repository ran")
	}
	for _, s := range []event.FileState{{Path: "sub/.git/config", Hash: "h"}, {Path: "l", Hash: "link", Link: ".git/hooks"}} {
		_, err := fill(t, into, worktree.Files{s.Path: s}, keeper{"h": "x"})
		if !errors.Is(err, repofile.ErrGit) {
			t.Errorf("%s: %v", s.Path, err)
		}
	}
}

// A link that a record brings along leads no file out of the folder.
func TestFilesDoNotLeaveTheFolder(t *testing.T) {
	out, dir := t.TempDir(), t.TempDir()
	files := worktree.Files{
		"a":       {Path: "a", Hash: "link", Link: out},
		"a/owned": {Path: "a/owned", Hash: "h"},
	}
	if _, err := fill(t, dir, files, keeper{"h": "x"}); err == nil {
		t.Error("a file went through a link")
	}
	if _, err := os.Lstat(filepath.Join(out, "owned")); err == nil {
		t.Error("a file was written outside")
	}
	if _, err := fill(t, dir, worktree.Files{"../up": {Path: "../up", Hash: "h"}}, keeper{"h": "x"}); err == nil {
		t.Error("a file went up")
	}
}

// The list survives what is damaged in it, and names it.
func TestTheBookOfWorktrees(t *testing.T) {
	b := worktree.Registry{Dir: filepath.Join(t.TempDir(), "worktrees")}
	if all, err := b.List(); err != nil || len(all) > 0 {
		t.Fatalf("an empty one: %v, %v", all, err)
	}
	for i := range 2 {
		e := worktree.Entry{Name: fmt.Sprintf("w%d", i), Dir: "/x", Created: time.Unix(int64(i), 0)}
		if err := b.Save(e); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(b.Dir, "bad.json"), `{"name":"other","dir":"/"}`)
	all, err := b.List()
	if len(all) != 2 || all[0].Name != "w1" || err == nil || !strings.Contains(err.Error(), "bad.json is damaged") {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := b.Find("../worktrees/w1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path: %v", err)
	}
	if err := b.Remove("w1"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Find("w1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("struck: %v", err)
	}
}

// A print changes with a file and with the records of a session, and not with what
// coder writes when it looks.
func TestPrintTellsWhatWasChanged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	write(t, filepath.Join(dir, ".coder/log/s/audit.jsonl"), "1\n")
	print := func() string {
		p, err := worktree.Fingerprint(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := print()
	write(t, filepath.Join(dir, ".coder/sessions/s.json"), "{}")
	write(t, filepath.Join(dir, ".coder/log/s/lock"), "x")
	if print() != first {
		t.Error("a look changed it")
	}
	write(t, filepath.Join(dir, ".coder/log/s/audit.jsonl"), "1\n2\n")
	second := print()
	write(t, filepath.Join(dir, "b"), "1")
	if second == first || print() == second {
		t.Error("a change went unnoticed")
	}
}

// A temporary folder is new, and takes the place of those that were left long ago.
func TestTemporaryFoldersAreSwept(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "cache"), time.Now()
	for name, age := range map[string]time.Duration{"again-old": 48 * time.Hour, "again-new": time.Hour, "other": 48 * time.Hour} {
		write(t, filepath.Join(dir, name, "deep/x"), "")
		if err := errors.Join(os.Chmod(filepath.Join(dir, name, "deep"), 0o500), os.Chtimes(filepath.Join(dir, name), now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	made, err := worktree.MakeTemp(dir, "again-", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"again-old": false, "again-new": true, "other": true, filepath.Base(made): true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATreeIsCopiedWithoutLinks(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "in", "copy")
	write(t, filepath.Join(from, "sub/a"), "text")
	if err := errors.Join(os.Symlink("/etc", filepath.Join(from, "link")), os.Chmod(filepath.Join(from, "sub/a"), 0o755), worktree.CopyTree(from, to)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "sub/a")); err != nil || info.Mode() != 0o755 || info.Size() != 4 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "link")); err == nil {
		t.Error("a link was copied")
	}
	if err := worktree.CopyTree(filepath.Join(from, "none"), to); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// A file that is put later keeps what is not said of it, and git's own stays.
func TestAFileIsPutInAnothersPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "old")
	write(t, filepath.Join(dir, ".git/x"), "own")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "a"), 0o755), os.Symlink("a", filepath.Join(dir, "l"))); err != nil {
		t.Fatal(err)
	}
	f, err := worktree.OpenFolder(dir, keeper{"h": "new"}.content)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range []event.FileState{{Path: "a", Hash: "h"}, {Path: "l", Hash: "h", Mode: 0o600}, {Path: ".git/x"}, {Path: "none"}} {
		if err := f.WriteState(t.Context(), s.Path, s); err != nil {
			t.Errorf("%s: %v", s.Path, err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o755, "l": 0o600, ".git/x": 0o644} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, s := range []event.FileState{{Path: ".git/x", Hash: "h"}, {Path: ".GIT", Hash: "dir"}, {Path: "b/.git/config", ContentLost: true}} {
		if err := f.WriteState(t.Context(), s.Path, s); !errors.Is(err, repofile.ErrGit) {
			t.Errorf("%s is put: %v", s.Path, err)
		}
	}
}
