package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/event"
)

// What can be wrong after a round of sessions that undo beside others.
const (
	taken    = "others' files taken"
	unspoken = "own files left without a word"
	unended  = "open requests"
)

// TestSoakOthers lets four sessions and an editor work in one folder. Each session
// may undo all that it did while the others go on, and may redo it. Nobody's work but its
// own goes, and what stays of its own it names. CODER_SOAK and CODER_SOAK_SEED are as for
// TestSoak.
func TestSoakOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rounds, seed := 3, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("CODER_SOAK")); err == nil {
		rounds, seed = n, uint64(time.Now().Unix())
	}
	if n, err := strconv.ParseUint(os.Getenv("CODER_SOAK_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	var sum tally
	for i := range rounds {
		s := seed + uint64(i)
		t.Run(strconv.FormatUint(s, 10), func(t *testing.T) { sum.add(soakOthers(t, s)) })
	}
	found := make([]string, 0, len(othersFaults))
	for _, f := range othersFaults {
		found = append(found, fmt.Sprintf("%s %d", f, sum.count[f]))
	}
	t.Logf("%d rounds from seed %d: %s, of %d sessions, %d undos, %d redos, %d edits by others, %d files left with a word",
		rounds, seed, strings.Join(found, ", "), sum.did["sessions"], sum.did["undos"], sum.did["redos"], sum.did["edits"], sum.did["left"])
}

var othersFaults = []string{taken, unspoken, lost, twice, unended, stuck}

// together is a folder in which several work.
type together struct {
	*round
	mu    sync.Mutex
	gone  map[int]string // what the undo of a session said
	again map[int]bool   // it was redone
}

const (
	sessionsTogether = 4
	stepsEach        = 3
)

func soakOthers(t *testing.T, seed uint64) *round {
	dir := t.TempDir()
	r := &round{program: programIn(t, dir), found: map[string]int{}, did: map[string]int{}}
	w := &together{round: r, gone: map[int]string{}, again: map[int]bool{}}
	r.file("shared.txt", "first\n")
	var all, editor sync.WaitGroup
	done := make(chan struct{})
	editor.Go(func() { w.edit(rand.New(rand.NewPCG(seed, 100)), done) })
	for i := range sessionsTogether {
		all.Go(func() { w.session(i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	all.Wait()
	close(done)
	editor.Wait()
	w.check()
	if keep := os.Getenv("CODER_SOAK_KEEP"); keep != "" && t.Failed() {
		_ = os.CopyFS(filepath.Join(keep, strconv.FormatUint(seed, 10)), os.DirFS(dir))
	}
	return r
}

// session works, and may undo what it did, and redo it.
func (w *together) session(i int, chance *rand.Rand) {
	var script strings.Builder
	for k := range stepsEach {
		line := fmt.Sprintf("echo s%[1]d-%[2]d >> side%[1]d.log; echo s >> both%[1]d_%[2]d; sleep 0.0%[3]d; echo s%[1]d-%[2]d > b%[1]d_%[2]d", i, k, 1+chance.IntN(9))
		if chance.IntN(3) == 0 {
			line += fmt.Sprintf("; echo s%d-%d >> shared.txt", i, k)
		}
		fmt.Fprintf(&script, "call bash {\"command\": %q}\n---\ncall write {\"path\": \"w%d_%d\", \"content\": \"s%d-%d\\n\"}\n---\n", line, i, k, i, k)
	}
	name := filepath.Join(filepath.Dir(w.ws), fmt.Sprintf("script%d", i))
	if err := os.WriteFile(name, []byte(script.String()+"say done\n"), 0o600); err != nil {
		w.report(stuck, "%v", err)
		return
	}
	id := fmt.Sprint("s", i)
	w.count("sessions", 1)
	if _, stderr, code := w.coder("-p", "--yolo", "--session-id", id, "--script", name, "go"); code != 0 || strings.Count(stderr, "— exit 0") != stepsEach {
		w.report(stuck, "session %s ended with %d: %s\n%s", id, code, stderr, w.outputs(id))
	}
	if chance.IntN(4) == 0 {
		return
	}
	w.count("undos", 1)
	said, stderr, code := w.coder("-p", "-r", id, "--script", name, "/undo all")
	if code != 0 {
		w.report(stuck, "undo of %s ended with %d: %s", id, code, stderr)
	}
	redone := chance.IntN(4) == 0
	if redone {
		w.count("redos", 1)
		if _, stderr, code := w.coder("-p", "-r", id, "--script", name, "/redo"); code != 0 {
			w.report(stuck, "redo of %s ended with %d: %s", id, code, stderr)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[i], w.again[i] = said, redone
}

// outputs are what the calls of a session gave.
func (w *together) outputs(id string) (all string) {
	rs, _ := readSession(w.ws, id)
	for _, r := range rs {
		if e, ok := r.Event.(event.ToolCallCompleted); ok {
			all += string(e.Output) + "\n"
		}
	}
	return all
}

// coder runs the program to its end.
func (w *together) coder(args ...string) (stdout, stderr string, code int) {
	c := w.cmd(args...)
	var out, errs safeBuffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// edit does what editors do: appends, also to a file that commands write, new files, files
// replaced by renaming, and moved.
func (w *together) edit(chance *rand.Rand, done <-chan struct{}) {
	for n := 0; passes(time.Duration(chance.IntN(20))*time.Millisecond, done); n++ {
		line := fmt.Sprintf("e-%d", n)
		ways := []string{
			"echo %[1]s >> edited.txt", "echo %[1]s > new_%[1]s", "cp edited.txt .swap; echo %[1]s >> .swap; mv .swap edited.txt",
			"echo %[1]s > x_%[1]s; mv x_%[1]s moved_%[1]s",
			"f=$(ls -t both* 2>/dev/null | head -1); echo %[1]s >> ${f:-edited.txt}",
		}
		c := exec.Command("/bin/sh", "-c", "test -e edited.txt || : > edited.txt; "+fmt.Sprintf(ways[chance.IntN(len(ways))], line)+"; echo "+line+" >> ../edits")
		c.Dir = w.ws
		if err := c.Run(); err != nil {
			w.report(lost, "the editor: %v", err)
		}
		w.count("edits", 1)
	}
}

// read is a file of the folder, "" if it does not exist.
func (w *together) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.ws, name))
	return string(text)
}

// check holds the folder against what everyone did.
func (w *together) check() {
	here := w.read("edited.txt")
	entries, _ := os.ReadDir(w.ws)
	for _, e := range entries {
		here += e.Name() + "\n"
		if strings.HasPrefix(e.Name(), "both") {
			here += w.read(e.Name())
		}
	}
	edits, _ := os.ReadFile(filepath.Join(filepath.Dir(w.ws), "edits"))
	for line := range strings.Lines(string(edits)) {
		if !strings.Contains(here, strings.TrimSpace(line)+"\n") {
			w.report(taken, "the editor's %s is gone", strings.TrimSpace(line))
		}
	}
	for i := range sessionsTogether {
		said, undone := w.gone[i]
		undone = undone && !w.again[i]
		for k := range stepsEach {
			w.checkStep(i, k, said, undone)
		}
		if n := strings.Count(w.read(fmt.Sprintf("side%d.log", i)), "\n"); !undone && n > stepsEach {
			w.report(twice, "session s%d left %d lines", i, n)
		}
		w.checkEnds(fmt.Sprint("s", i))
	}
}

// checkStep looks for what one step of a session left.
func (w *together) checkStep(i, k int, said string, undone bool) {
	token := fmt.Sprintf("s%d-%d\n", i, k)
	for _, name := range []string{fmt.Sprintf("b%d_%d", i, k), fmt.Sprintf("w%d_%d", i, k), fmt.Sprintf("side%d.log", i)} {
		there, named := strings.Contains(w.read(name), token), strings.Contains(said, "unchanged: "+name+" (")
		switch {
		case undone && there && !named:
			w.report(unspoken, "session s%d left %s and said:\n%s", i, name, said)
		case undone && there:
			w.count("left", 1)
		case !undone && !there && w.gone[i] == "":
			w.report(taken, "%s of session s%d is gone", name, i)
		case !undone && !there:
			w.report(lost, "%s of session s%d did not come back; it said:\n%s", name, i, said)
		}
	}
}

// checkEnds sees that every request of a session has an end on record, once.
func (w *together) checkEnds(id string) {
	rs, err := readSession(w.ws, id)
	if err != nil {
		w.report(lost, "session %s: %v", id, err)
	}
	open := map[string]int{}
	for _, r := range rs {
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			open[e.CallID]++
		case event.ToolCallCompleted:
			open[e.CallID]--
		}
	}
	for call, n := range open {
		if n != 0 {
			w.report(unended, "session %s: call %s: %d", id, call, n)
		}
	}
}
