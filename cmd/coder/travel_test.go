package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/scripted"
)

// TestForkAndRestoreAtEveryRecord: of random sessions, with edits, commands, git,
// links, modes, binary files and subtasks, every record can be forked from and
// restored to, and files are then byte for byte what they were when the record was
// made. CODER_TEST_SESSIONS says how many; without it some records of two are gone to.
func TestForkAndRestoreAtEveryRecord(t *testing.T) {
	sessions, every := 2, 9
	if n, err := strconv.Atoi(os.Getenv("CODER_TEST_SESSIONS")); err == nil {
		sessions, every = n, 1
	}
	forks, restores := 0, 0
	for seed := range sessions {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			v := newVoyage(t, uint64(seed)+1)
			v.live()
			all := slices.Sorted(maps.Keys(v.moments))
			for i := 0; i < len(all); i += every {
				v.fork(all[i])
				forks++
			}
			for n, i := range v.r.Perm(len(all)) {
				if n%every == 0 {
					v.restore(all[i])
					restores++
				}
			}
			t.Logf("%d records, git %v", len(v.moments), v.git)
		})
	}
	t.Logf("%d sessions, %d forks, %d restores", sessions, forks, restores)
}

// voyage is a random session, and what its files really were at each record.
type voyage struct {
	t       *testing.T
	r       *rand.Rand
	p       *program
	app     *app.Workspace
	git     bool
	moments map[uint64]map[string]string
	made    int
}

func newVoyage(t *testing.T, seed uint64) *voyage {
	p := newProgram(t)
	p.ws = filepath.Join(p.ws, "shop")
	v := &voyage{t: t, p: p, r: rand.New(rand.NewPCG(seed, 44)), moments: make(map[uint64]map[string]string)}
	_, err := exec.LookPath("git")
	v.git = err == nil && seed%3 != 2
	v.sh("mkdir -p " + p.ws)
	v.sh("mkdir -p sub/deep && echo one > a.txt && printf 'l1\\nl2\\nl3\\n' > sub/b.txt && echo deep > sub/deep/c.txt && echo run > run.sh && chmod 755 run.sh && ln -s a.txt link && head -c 2000 /dev/urandom > pic.bin && echo '*.log' > .gitignore")
	if v.git {
		v.sh("git init -q && git config user.name A && git config user.email a@b && git add -A && git commit -qm first && echo later >> a.txt && echo untracked > u.txt && git add a.txt")
	}
	v.app = p.app(app.Options{Mode: "yolo", Overrides: app.Overrides{AutoApprove: true}})
	v.app.Config.Storage.Fsync = "never"
	return v
}

func (v *voyage) sh(line string) {
	v.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	if cmd.Dir = v.p.ws; strings.HasPrefix(line, "mkdir -p /") {
		cmd.Dir = "/"
	}
	cmd.Env = v.p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		v.t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// live lets the session happen and looks at the files whenever a record was made.
func (v *voyage) live() {
	v.t.Helper()
	ctx := context.Background()
	play := &scripts{}
	v.app.ScriptedProvider = play
	sink := event.SinkFunc(func(_ context.Context, r event.Record) error {
		if r.Seq > 0 {
			v.moments[r.Seq] = look(v.t, v.p.ws)
		}
		return nil
	})
	s, err := v.app.OpenSession(ctx, v.app.NewSupervisor(uip.NoInteractor, app.Screen{}), app.SessionChoice{NewID: "s"}, sink)
	if err != nil {
		v.t.Fatal(err)
	}
	for range 2 + v.r.IntN(2) {
		words := "do what is to be done"
		play.Provider = scripted.New(v.turn(), scripted.Options{})
		if v.r.IntN(5) == 0 {
			words = []string{"/undo all", "!echo mine >> own.txt", "/undo"}[v.r.IntN(3)]
		}
		if _, err := s.RunText(ctx, words, sink); err != nil {
			v.t.Fatalf("%s: %v", words, err)
		}
	}
	if err := s.Close(); err != nil {
		v.t.Fatal(err)
	}
}

// turn is what the model does in a turn.
func (v *voyage) turn() (script scripted.Script) {
	for range 1 + v.r.IntN(3) {
		var steps []scripted.Step
		for range 1 + v.r.IntN(3) {
			steps = append(steps, v.call())
		}
		script = append(script, scripted.Reply{Steps: steps})
	}
	if v.r.IntN(3) == 0 {
		v.made++
		title := fmt.Sprintf("part %d", v.made)
		script = append(script, scripted.Reply{Steps: []scripted.Step{tool("task", map[string]any{"objective": title, "agent": "general"})}})
		script = append(script, scripted.Reply{Conversation: title, Steps: []scripted.Step{v.call(), v.call()}}, scripted.Reply{Conversation: title, Steps: []scripted.Step{scripted.Say("Part done.")}})
	}
	return append(script, scripted.Reply{Steps: []scripted.Step{scripted.Say("That is done.")}})
}

func tool(name string, args map[string]any) scripted.Step {
	text, _ := json.Marshal(args)
	return scripted.Call{Name: name, Args: string(text)}
}

// call is a random call. A command that fails is one, too.
func (v *voyage) call() scripted.Step {
	v.made++
	n := v.made
	file := []string{"a.txt", "sub/b.txt", "sub/deep/c.txt", "new.txt", "sub/n2.txt", "u.txt"}[v.r.IntN(6)]
	commands := []string{
		"sed -i 's/l2/L2/; s/one/ONE/' sub/b.txt a.txt", "rm -f " + file, "rm -rf sub/deep", "mkdir -p x/y && touch x/y/e.txt", "mkdir -p empty",
		"head -c 700 /dev/urandom > pic.bin", "mv a.txt moved.txt", "mv moved.txt a.txt", "ln -sfn sub link", "ln -sfn a.txt link", "rm -f link && echo file > link",
		"chmod 600 " + file, "chmod 755 " + file, "echo more >> " + file, "cp pic.bin sub/copy.bin", "echo log > w.log; false", "rm -rf sub && echo flat > sub",
		"rm -f sub && mkdir -p sub && echo again > sub/b.txt", "printf 'a\\000b\\377' > 'odd name.bin'", "for i in 1 2 3 4 5; do echo $i > gen$i.txt; done", "rm -f gen*.txt",
	}
	if v.git {
		commands = append(commands, "git mv sub/b.txt sub/renamed.txt", "git mv run.sh go.sh", "git add -A", "git commit -qam more", "git stash", "git stash pop", "git checkout -q -b other", "git rm -q -f run.sh")
	}
	switch v.r.IntN(4) {
	case 0:
		return tool("write", map[string]any{"path": file, "content": fmt.Sprintf("written %d\nl2\n", n)})
	case 1:
		return tool("edit", map[string]any{"path": file, "old_string": "l2", "new_string": fmt.Sprintf("edited %d", n)})
	}
	return tool("bash", map[string]any{"command": commands[v.r.IntN(len(commands))]})
}

// look is all files below a folder: kind, mode and content of each.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		switch {
		case err != nil:
			return err
		case rel == ".git" || rel == ".coder":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case rel == "." || filepath.Ext(rel) == ".log": // git ignores the last
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if text, err = os.Readlink(name); err != nil {
				return err
			}
		}
		all[rel] = info.Mode().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameFiles compares what files are with what they were.
func (v *voyage) sameFiles(what string, at uint64, dir string) {
	v.t.Helper()
	got, want := look(v.t, dir), v.moments[at]
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			v.t.Errorf("%s at %d: %s is %.60q, want %.60q", what, at, name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			v.t.Errorf("%s at %d: %s is there: %.60q", what, at, name, got[name])
		}
	}
}

func (v *voyage) fork(at uint64) {
	v.t.Helper()
	f, err := v.app.ForkSession(v.t.Context(), "s", at, "")
	if err != nil {
		v.t.Fatalf("fork at %d: %v", at, err)
	}
	v.sameFiles("fork", at, f.Workspace)
	if (f.Repo != "") != v.git || len(f.Lost) > 0 {
		v.t.Errorf("fork at %d: %+v", at, f)
	}
	if _, err := v.app.RemoveWorktree(v.t.Context(), f.Entry); err != nil {
		v.t.Fatalf("remove the fork at %d: %v", at, err)
	}
}

func (v *voyage) restore(at uint64) {
	v.t.Helper()
	sink := event.Discard
	s, err := v.app.OpenSession(v.t.Context(), v.app.NewSupervisor(uip.NoInteractor, app.Screen{}), app.SessionChoice{ResumeID: "s"}, sink)
	if err != nil {
		v.t.Fatal(err)
	}
	done, err := s.RunText(v.t.Context(), fmt.Sprintf("/restore %d", at), sink)
	if err := errors.Join(err, s.Close()); err != nil {
		v.t.Fatalf("restore at %d: %v", at, err)
	}
	v.sameFiles("restore: "+done.Text, at, v.p.ws)
}
