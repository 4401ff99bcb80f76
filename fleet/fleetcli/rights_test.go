package fleetcli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/fleet/engine"
	"coder/fleet/queue"
)

// put writes an entry past all seals, with the token of the admin.
func (f *fleet) put(key, value string) {
	f.t.Helper()
	link, err := engine.Find(filepath.Join(f.home, ".coder", "fleet"))
	if err != nil {
		f.t.Fatal(err)
	}
	c, js, err := link.Dial("forger")
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if _, err := js.Publish(f.t.Context(), key, []byte(value)); err != nil {
		f.t.Fatal(err)
	}
}

// A task goes all its way with the tokens of a person and of a worker. A result that
// somebody forged is told from it, and entries that cannot be read stop no command.
func TestAForgedResultIsNamed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start("worker", "--slots", "1", "--name", "w1", "--as", "worker")
	id := f.must("submit", "begin the work", "--repo", f.repo, "--script", f.script(writes), "--as", "person")
	f.until(id, queue.Waiting)
	if got := f.must("watch", id, "--as", "person"); !strings.Contains(got, "waiting for an answer") {
		t.Error(got)
	}
	f.must("answer", id, "--option", "approve", "--as", "person")
	if task := f.until(id, queue.Done); task.Unsealed || task.Result.Branch != "coder/"+id {
		t.Errorf("%+v", task)
	}
	for _, args := range [][]string{{"result", id, "--patch"}, {"result", id, "--branch"}, {"logs", id}, {"ps"}, {"status"}, {"workers"}, {"metrics"}} {
		f.must(append(args, "--as", "person")...)
	}
	if got := f.must("verify"); !strings.Contains(got, "incomplete: 0") {
		t.Error(got)
	}
	f.put("$KV.coder-task.bad", "everything")
	f.put("$KV.coder-task.old", `{"id":"old","status":"done","result":{"answer":"FORGED","check":"make test","verified":true}}`)
	f.put("$KV.coder-worker.bad", "everything")
	for i, branch := range []string{"*", "main", "+main", "-x", "coder/" + id + ":refs/heads/main", "coder/other"} {
		f.put("$KV.coder-task."+id, `{"id":"`+id+`","status":"done","result":{"answer":"FORGED","check":"make test","verified":true,"branch":"`+branch+`"}}`)
		if out, code := f.run("result", id, "--branch"); code == 0 || strings.Contains(out, "FORGED") {
			t.Errorf("branch %d %s: exit code %d: %s", i, branch, code, out)
		}
	}
	for _, args := range [][]string{{"ps"}, {"ps", "--all", "--as", "person"}, {"ps", id}} {
		if got := f.must(args...); !strings.Contains(got, id) || !strings.Contains(got, "skipped this entry") || strings.Contains(got, "FORGED") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := f.must("result", "old"); !strings.Contains(got, "not sealed") || strings.Contains(got, "checked: make test") && !strings.Contains(got, "check incomplete") {
		t.Error(got)
	}
	for _, command := range []string{"status", "workers", "metrics"} {
		f.must(command, "--as", "person")
	}
	out, code := f.run("verify")
	if code == 0 || !strings.Contains(out, "incomplete: 3") || !strings.Contains(out, id+": skipped this entry") || !strings.Contains(out, "old: not sealed") {
		t.Errorf("exit code %d: %s", code, out)
	}
	next := f.must("submit", "x", "--repo", f.repo, "--mode", "plan", "--script", f.script("say hello\nrepeat\n"))
	f.until(next, queue.Done)
	git := exec.Command("git", "for-each-ref", "--format=%(refname)")
	git.Dir = f.repo
	if refs, err := git.Output(); err != nil || string(refs) != "refs/heads/coder/"+id+"\nrefs/heads/main\n" {
		t.Errorf("the repository has %q, %v", refs, err)
	}
}

// The page about fleets shows the table of rights as the server has it.
func TestTheTableOfRightsIsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, r := range engine.Rights() {
		who := "worker, person"
		if r.Role == engine.Worker {
			who = "worker"
		}
		want.WriteString("| `" + r.Subject + "` | " + who + " | " + r.For + " |\n")
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/reference/fleet.md lacks this table:\n%s", want.String())
	}
}
