package fleetcli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/fleet/queue"
)

// writes is a script that writes a file and is done.
const writes = "want begin the work\ncall write {\"path\":\"b.txt\",\"content\":\"two\\n\"}\nrepeat\nelse\nsay done\n"

// A person is told what they may not do, at once and in words: by the program where
// it knows the role, and else by the server.
func TestAPersonIsToldWhatTheyMayNot(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start("worker", "--slots", "1", "--name", "w1")
	key := strings.TrimPrefix(f.must("enroll"), "coder fleet enroll ann ")
	for _, args := range [][]string{{"drain"}, {"drain", "w1"}, {"worker", "--slots", "1"}, {"enroll", "eve", key}, {"prune"}, {"restore"}} {
		if out, code := f.run(append(args, "--as", "person")...); code != 1 || !strings.Contains(out, "this one is of the role person") {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
	if got := f.must("workers"); !strings.Contains(got, "ready") {
		t.Errorf("a person sent the worker away: %s", got)
	}
	if got := f.must("enroll", "eve", key); !strings.Contains(got, "eve can now answer") {
		t.Error(got)
	}
	id := f.must("submit", "begin the work", "--repo", f.repo, "--script", f.script(writes), "--as", "person")
	f.until(id, queue.Waiting)
	stranger := f.command("answer", id, "--option", "approve", "--as", "person")
	stranger.Env = append(stranger.Env, "CODER_FLEET_USER=bob")
	if out, err := stranger.CombinedOutput(); err == nil || !strings.Contains(string(out), "coder fleet enroll bob "+key) {
		t.Errorf("who is not enrolled is told how: %v: %s", err, out)
	}
	if out, code := f.run("answer", id); code != 2 || !strings.Contains(out, "the options are approve|") {
		t.Errorf("an answer that says nothing: exit code %d: %s", code, out)
	}
	if got := f.must("ps", id); !strings.Contains(got, "+two") || !strings.Contains(got, "--option approve") {
		t.Errorf("one has to approve blind: %s", got)
	}
	f.must("answer", id, "--option", "approve", "--as", "person")
	f.until(id, queue.Done)
}

// The tasks of a clone are those of the address it came from, whatever way that is
// written; a question of the fleet is answered from any folder, by its own id or
// that of the task.
func TestTasksOfAnAddressAreThoseOfItsClones(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start("worker", "--slots", "2", "--name", "w1")
	script := f.script(writes)
	first := f.must("submit", "begin the work", "--repo", "file://"+f.repo, "--script", script)
	second := f.must("submit", "begin the work", "--repo", f.repo, "--script", script)
	question := f.until(first, queue.Waiting).Question.ID
	f.until(second, queue.Waiting)
	clone := filepath.Join(f.home, "clone")
	if out, err := exec.Command("git", "clone", "-q", f.repo, clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v: %s", err, out)
	}
	for dir, want := range map[string]bool{f.repo: true, clone: true, f.home: false} {
		f := *f
		f.repo = dir
		if got := f.coder("tasks"); strings.Contains(got, first) != want || strings.Contains(got, second) != want {
			t.Errorf("in %s there are %s", dir, got)
		}
	}
	elsewhere := *f
	elsewhere.repo = t.TempDir()
	for _, id := range []string{question, second} {
		if got := elsewhere.coder("respond", id, "--option", "approve"); !strings.Contains(got, "answered") {
			t.Errorf("coder respond %s says %s", id, got)
		}
	}
	f.until(first, queue.Done)
	f.until(second, queue.Done)
}

// What is not committed is not part of a task, and that is said; a folder inside a
// repository names all of it. What a task did that never came to its end is not lost.
func TestTheFilesOfATaskThatWasCanceled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.start("worker", "--slots", "1", "--name", "w1")
	inside := filepath.Join(f.repo, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, "new.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	script := "want begin the work\ncall write {\"path\":\"b.txt\",\"content\":\"two\\n\"}\nrepeat\nelse\ncall bash {\"command\":\"touch asked\"}\n"
	out, code := f.run("submit", "begin the work", "--repo", inside, "--mode", "auto-edit", "--script", f.script(script))
	if code != 0 || !strings.Contains(out, "is not committed") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	words := strings.Fields(out)
	id := words[len(words)-1]
	if task := f.until(id, queue.Waiting); task.Spec.Repo != f.repo {
		t.Errorf("the repository is %s, want %s", task.Spec.Repo, f.repo)
	}
	f.must("cancel", id)
	if out, code := f.run("result", id); code != 2 || !strings.Contains(out, "--branch fetches the files of its last checkpoint") {
		t.Errorf("exit code %d: %s", code, out)
	}
	f.must("result", id, "--branch")
	cmd := exec.Command("git", "show", "coder/"+id+":b.txt")
	cmd.Dir = f.repo
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "two\n" {
		t.Errorf("the branch holds %q, %v", out, err)
	}
	if err := os.RemoveAll(inside); err != nil {
		t.Fatal(err)
	}
	f.must("drain", "w1")
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
	never := f.must("submit", "x", "--repo", f.repo, "--mode", "plan", "--script", f.script("wait 600s\n"))
	f.must("cancel", never)
	if out, code := f.run("result", never); code == 0 || strings.Contains(out, "--branch") {
		t.Errorf("of nothing there is %d: %s", code, out)
	}
}
