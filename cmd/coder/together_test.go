package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"coder/internal/core/event"
)

// Several of us, and somebody who adds lines in place, work on one file: whoever
// was told that it is done finds it in the file.
func TestManyEditOneFile(t *testing.T) {
	const coders, edits = 4, 6
	p := newProgram(t)
	var marks strings.Builder
	for i := range coders {
		fmt.Fprintf(&marks, "mark %d.\n", i)
	}
	file := p.file("shared.txt", marks.String())
	var crew sync.WaitGroup
	for i := range coders {
		script := p.file(fmt.Sprintf("model%d", i), editScript(i, edits))
		crew.Go(func() {
			if out, err := p.cmd("-p", "--mode", "auto-edit", "--session-id", fmt.Sprint("s", i), "--script", script, "go").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	done := make(chan struct{})
	var appended []string
	var other sync.WaitGroup
	other.Go(func() { appended = appendLines(t, file, done) })
	crew.Wait()
	close(done)
	other.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := appended
	for i := range coders {
		told = append(told, doneEdits(t, p.ws, i)...)
	}
	for _, line := range told {
		if n := strings.Count(string(text), line); n != 1 {
			t.Errorf("%q is there %d times", line, n)
		}
	}
	if len(told) == len(appended) || len(appended) == 0 {
		t.Error("no edit was ever made")
	}
	if left, _ := filepath.Glob(filepath.Join(p.ws, ".coder-*")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

// editScript has a model read the file and add a line to it, again and again.
func editScript(coder, edits int) string {
	var b strings.Builder
	for i := range edits {
		fmt.Fprintf(&b, "call read {\"path\": \"shared.txt\"}\n---\n")
		fmt.Fprintf(&b, "call edit {\"path\": \"shared.txt\", \"old_string\": \"mark %d.\", \"new_string\": \"line %d of %d.\\nmark %d.\"}\n---\n", coder, i, coder, coder)
	}
	return b.String() + "say done\n"
}

// doneEdits lists the lines that a session was told are in the file.
func doneEdits(t *testing.T, ws string, coder int) (lines []string) {
	t.Helper()
	records, err := readSession(ws, fmt.Sprint("s", coder))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range records {
		e, ok := r.Event.(event.ToolCallCompleted)
		if !ok || e.Tool != "edit" {
			continue
		}
		if !e.IsError {
			lines = append(lines, fmt.Sprintf("line %d of %d.\n", n, coder))
		}
		n++
	}
	return lines
}

// appendLines writes to the end of a file, as a shell does, whenever somebody
// else has changed it, until it is done.
func appendLines(t *testing.T, file string, done <-chan struct{}) (lines []string) {
	last := int64(0)
	for {
		select {
		case <-done:
			return lines
		default:
		}
		if info, err := os.Stat(file); err != nil || info.Size() == last {
			continue
		}
		line := fmt.Sprintf("added %d.\n", len(lines))
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return lines
		}
		_, err = f.WriteString(line)
		info, also := f.Stat()
		if err := errors.Join(err, also, f.Close()); err != nil {
			t.Error(err)
			return lines
		}
		lines, last = append(lines, line), info.Size()
	}
}

// TestManyChangeTheSameSettings has processes change one file of settings, and the list of trusted folders, at
// the same time. What a process said it saved is there.
func TestManyChangeTheSameSettings(t *testing.T) {
	const each = 6
	p := newProgram(t)
	var all sync.WaitGroup
	run := func(dir string, args ...string) {
		all.Go(func() {
			c := p.cmd(args...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("coder %q: %v: %s", args, err, out)
			}
		})
	}
	for i := range each {
		dir := filepath.Join(p.ws, fmt.Sprint("d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		run(p.ws, "mcp", "add", fmt.Sprint("server", i), "http://127.0.0.1:1/")
		run(dir, "trust", ".")
	}
	run(p.ws, "config", "set", "ui.theme", "dark")
	run(p.ws, "config", "set", "ui.vim", "true")
	all.Wait()
	home := filepath.Join(filepath.Dir(p.ws), ".coder")
	settings, err := os.ReadFile(filepath.Join(home, "config.json"))
	trusted, bad := os.ReadFile(filepath.Join(home, "trust.json"))
	if err := errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"theme", "vim"} {
		if !strings.Contains(string(settings), word) {
			t.Errorf("%s is not saved:\n%s", word, settings)
		}
	}
	for i := range each {
		if !strings.Contains(string(settings), fmt.Sprintf("%q", fmt.Sprint("server", i))) {
			t.Errorf("server %d is not saved:\n%s", i, settings)
		}
		if !strings.Contains(string(trusted), fmt.Sprintf("/d%d\"", i)) {
			t.Errorf("folder %d is not trusted:\n%s", i, trusted)
		}
	}
}
