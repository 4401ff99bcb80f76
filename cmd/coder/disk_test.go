package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPromptOf50MB is refused with a word of advice.
func TestAPromptOf50MB(t *testing.T) {
	p := newProgram(t)
	c := p.cmd("-p", "--script", p.file("model", "say hi"))
	c.Stdin = strings.NewReader(strings.Repeat("all work and no play\n", 50<<20/21))
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 42 || !strings.Contains(string(out), "save it as a file") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("code %d, %v: %s", c.ProcessState.ExitCode(), err, out)
	}
}

// asNobody runs the program as a user who may not write to the workspace.
func asNobody(t *testing.T, p *program, args ...string) (out string, code int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	self, err := os.ReadFile(p.self)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(p.self), "for-all") // the test binary lies where others cannot reach it
	p.self = filepath.Join(dir, "coder")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(p.self, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	c := p.cmd(args...)
	runAs(c, 65534)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

// TestADataFolderThatCannotBeWritten answers all the same, says once that it is
// not saved, and ends with the code for that.
func TestADataFolderThatCannotBeWritten(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "say done")
	for _, dir := range []string{filepath.Dir(filepath.Dir(p.ws)), filepath.Dir(p.ws)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, code := asNobody(t, p, "-p", "--script", script, "go")
	if code != 56 || !strings.Contains(out, "done\n") || strings.Count(out, "this session is not being saved") != 1 {
		t.Errorf("code %d: %s", code, out)
	}
}

// TestAFullDisk fills the workspace's file system in the middle of a turn: what
// cannot be brought back is not overwritten.
func TestAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	p := newProgram(t)
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", p.ws).Run(); err != nil {
		t.Skip("cannot mount a small file system here")
	}
	t.Cleanup(func() { _ = exec.Command("umount", p.ws).Run() })
	big := strings.Repeat("x", 70_000)
	script := filepath.Join(filepath.Dir(p.ws), "model")
	text := "call write {\"path\":\"small.txt\",\"content\":\"old\"}\n---\ncall write {\"path\":\"small.txt\",\"content\":\"" + big +
		"\"}\n---\nwant error\nsay no room\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go")
	if code != 30 || out != "no room\n" || strings.Count(stderr, "this session is not being saved") != 1 {
		t.Errorf("%q, code %d: %s", out, code, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(p.ws, "small.txt")); err != nil || string(got) != "old" {
		t.Errorf("the file holds %d bytes, %v; want what it held before", len(got), err)
	}
	if _, err := readSession(p.ws, "s1"); err != nil {
		t.Errorf("the log on the full disk: %v", err)
	}
}

// TestADiskThatFailsWhileKeeping fails whatever is done to keep what a call would
// overwrite, in every way: the call is refused, and what was there is there. Once
// the disk works again the same call is done, and can be undone.
func TestADiskThatFailsWhileKeeping(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	calls := []string{
		`call read {"path":"a.txt"}` + "\n---\n" + `call write {"path":"a.txt","content":"new\n"}`,
		`call read {"path":"a.txt"}` + "\n---\n" + `call edit {"path":"a.txt","old_string":"old","new_string":"new"}`,
		`call read {"path":"a.txt"}` + "\n---\n" + `call patch {"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"}`,
		`call bash {"command":"sed -i s/old/new/ a.txt"}`,
	}
	for i, operation := range []string{"open", "mkdir", "write", "sync", "rename"} {
		for j, how := range []string{"EIO", "ENOSPC", "EMFILE", "EROFS"} {
			t.Run(operation+"/"+how, func(t *testing.T) { keepOn(t, "keep-"+operation+" "+how, calls[(i+j)%len(calls)]) })
		}
	}
}

// keepOn runs a call that makes "old" in a.txt "new" on a disk that fails, and
// then on one that does not.
func keepOn(t *testing.T, disk, call string) {
	p := newProgram(t)
	file := p.file("a.txt", "old\n")
	script := filepath.Join(filepath.Dir(p.ws), "model")
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Fatalf("the file holds %q, %v; want %q", got, err, want)
		}
	}
	run := func(want int, text string, args ...string) {
		t.Helper()
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, stderr, code := p.run(append([]string{"-p", "--auto-approve", "--script", script}, args...)...); code != want {
			t.Fatalf("%q, code %d, want %d: %s", out, code, want, stderr)
		}
	}
	works := p.env
	p.env = append(slices.Clip(works), "CODER_TEST_DISK="+disk)
	run(30, call+"\n---\nwant error\nsay no\n", "--session-id", "s1", "go")
	holds("old\n")
	p.env = works
	run(0, call+"\n---\nsay yes\n", "-r", "s1", "again")
	holds("new\n")
	run(0, "say nothing", "-r", "s1", "/undo all")
	holds("old\n")
}

// TestTheSessionFileIsAStrictChatRequest holds the session file against what a
// strict server accepts.
func TestTheSessionFileIsAStrictChatRequest(t *testing.T) {
	p := newProgram(t)
	p.file("a.txt", "x")
	script := p.file("model", "reason hmm\nsay look\ncall read {\"path\":\"a.txt\"}\ncall nope {bad\n---\nsay done\n")
	if _, stderr, code := p.run("-p", "--session-id", "s1", "--script", script, "go"); code != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(p.ws, ".coder/sessions/s1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var snap struct {
		Model    string
		Messages []map[string]any
		Tools    []struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        map[string]any
			}
		}
	}
	if err := json.Unmarshal(text, &snap); err != nil {
		t.Fatal(err)
	}
	if snap.Model == "" || len(snap.Tools) < 7 {
		t.Errorf("model %q, %d tools", snap.Model, len(snap.Tools))
	}
	for _, tool := range snap.Tools {
		if tool.Type != "function" || tool.Function.Name == "" || tool.Function.Description == "" || tool.Function.Parameters["type"] != "object" {
			t.Errorf("tool %+v", tool)
		}
	}
	open := map[string]bool{}
	for i, m := range snap.Messages {
		for k := range m {
			if !slices.Contains([]string{"role", "content", "tool_calls", "tool_call_id", "name", "reasoning"}, k) {
				t.Errorf("message %d has the key %q", i, k)
			}
		}
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			c := c.(map[string]any)
			f := c["function"].(map[string]any)
			if c["type"] != "function" || len(c) != 3 || !json.Valid([]byte(f["arguments"].(string))) {
				t.Errorf("message %d has the call %v", i, c)
			}
			open[c["id"].(string)] = true
		}
		if m["role"] == "tool" {
			id := m["tool_call_id"].(string)
			if !open[id] || m["name"] == "" {
				t.Errorf("message %d answers %q", i, id)
			}
			delete(open, id)
		}
	}
	if len(open) > 0 || snap.Messages[0]["role"] != "system" {
		t.Errorf("unanswered: %v; first: %v", open, snap.Messages[0]["role"])
	}
}

// TestASnapshotTheCrashPreventedIsMadeByTheNextRun lets a process die before it
// could write its session file, and another session be started after it.
func TestASnapshotTheCrashPreventedIsMadeByTheNextRun(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "say hello\n")
	alive := p.env
	p.env = append(alive, "CODER_TEST_DIE=5+")
	if _, _, code := p.run("-p", "--session-id", "s1", "--script", script, "first"); code != -1 {
		t.Fatalf("it ended with code %d", code)
	}
	snapshot := filepath.Join(p.ws, ".coder/sessions/s1.json")
	if _, err := os.Stat(snapshot); err == nil {
		t.Fatal("the snapshot was written before the crash")
	}
	p.env = alive
	if _, stderr, code := p.run("-p", "--session-id", "s2", "--script", script, "second"); code != 0 {
		t.Fatal(stderr)
	}
	if text, err := os.ReadFile(snapshot); err != nil || !strings.Contains(string(text), "first") {
		t.Errorf("the snapshot was not made: %v", err)
	}
}

// TestKeysStayOutOfCommands looks at the environment of a command.
func TestKeysStayOutOfCommands(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "call bash {\"command\":\"env\"}\n---\nsay done\n")
	p.env = append(p.env, "OPENAI_API_KEY="+secret, "CODER_API_KEY="+secret+"2", "MY_COPY="+secret+"2", "HARMLESS=yes")
	if _, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go"); code != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(p.ws, ".coder/log/s1/audit.jsonl"))
	if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), "HARMLESS=yes") {
		t.Errorf("the command saw a key, or nothing at all: %v", err)
	}
}

// TestADiskWithoutInodes names the reason for what it cannot write: there is no
// room, whatever else the system says of the attempts after the first.
func TestADiskWithoutInodes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	p := newProgram(t)
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=60", "tmpfs", p.ws).Run(); err != nil {
		t.Skip("cannot mount a small file system here")
	}
	t.Cleanup(func() { _ = exec.Command("umount", p.ws).Run() })
	script := filepath.Join(filepath.Dir(p.ws), "model")
	var names strings.Builder
	for i := range 60 {
		fmt.Fprintf(&names, " f%d", i)
	}
	text := "call bash {\"command\":\"touch" + names.String() + "\"}\n---\ncall write {\"path\":\"n.txt\",\"content\":\"x\"}\n---\nwant no space left on device\nsay no room\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, stderr, _ := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go")
	if out != "no room\n" || strings.Contains(stderr, "permission denied") {
		t.Errorf("%q: %s", out, stderr)
	}
}
