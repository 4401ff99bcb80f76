package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const killedSubtask = `
call task {"agent": "general", "objective": "Do the work"}
---
to Do the work
call read {"path": "a.txt"}
call bash {"command": "echo ran >> ran.txt"}
---
to Do the work
say did it
---
say done
`

// TestKillAtEveryRecordOfASubtask kills the process at each record of a turn
// that hands work to another agent. The session goes on, with the turn or with
// something else, and what ran ran once.
func TestKillAtEveryRecordOfASubtask(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, next := range [][]string{{"and now"}, {}} {
		for n := 1; ; n++ {
			finished := false
			t.Run(fmt.Sprintf("%d/%d", n, len(next)), func(t *testing.T) { finished = killSubtaskAt(t, n, next) })
			if finished || t.Failed() {
				break
			}
		}
	}
}

// killSubtaskAt reports whether the turn was over before it could be killed.
func killSubtaskAt(t *testing.T, n int, next []string) (finished bool) {
	p := newProgram(t)
	p.file("a.txt", "x\n")
	alive := p.env
	p.env = append(alive, "CODER_TEST_DIE="+strconv.Itoa(n)+"+")
	_, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", p.file("model", killedSubtask), "go")
	if code == 0 {
		return true
	}
	if code != -1 {
		t.Fatalf("it ended by itself with code %d: %s", code, stderr)
	}
	p.env = alive
	more := p.file("more", "to Do the work\nsay went on\nrepeat\n---\nsay went on\nrepeat\n")
	out, stderr, code := p.run(append([]string{"-p", "--auto-approve", "-r", "s1", "--script", more}, next...)...)
	if len(next) == 0 && code == 42 && strings.Contains(stderr, "no unfinished turn") {
		return false // it was killed between the end of the turn and the end of the process
	}
	answered := len(next) == 0 && out == "done\n" // the answer was on record, and the model is not asked again
	if code != 0 || out != "went on\n" && !answered {
		t.Fatalf("going on gave %q, code %d: %s", out, code, stderr)
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
	if ran, _ := os.ReadFile(filepath.Join(p.ws, "ran.txt")); len(ran) > len("ran\n") {
		t.Errorf("the command ran more than once: %q", ran)
	}
	checkSnapshot(t, p.ws, strings.TrimSpace(out))
	return false
}
