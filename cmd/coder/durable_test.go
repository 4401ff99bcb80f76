package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// durableSession plays what writes durable state: a first start, a question that is
// left and answered with always, edits, a command, a subagent, an undo, trust. It
// returns what reached the disk, in order.
func durableSession(t *testing.T) (p *program, traced []string) {
	t.Helper()
	p = programIn(t, t.TempDir())
	home := filepath.Join(filepath.Dir(p.ws), "home")
	trace := filepath.Join(filepath.Dir(p.ws), "trace")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "HOME="+home, "CODER_TEST_TRACE="+trace)
	p.file("old.txt", "old\n")
	script := func(text string) string {
		path := filepath.Join(filepath.Dir(p.ws), "script")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	must := func(code int, args ...string) {
		t.Helper()
		if out, errs, got := p.run(args...); got != code {
			t.Fatalf("coder %q: code %d, want %d: %s%s", args, got, code, out, errs)
		}
	}
	must(31, "-p", "--on-ask", "park", "--session-id", "s", "--script", script("call bash {\"command\": \"touch asked\"}"), "go")
	p.respond("s", "--option", "always", "--record-only")
	must(0, "-p", "-r", "s", "--script", script("say taken"))
	must(0, "-p", "--auto-approve", "--session-id", "w", "--script", script(
		"call read {\"path\": \"old.txt\"}\n---\ncall edit {\"path\": \"old.txt\", \"old\": \"old\", \"new\": \"new\"}\n---\n"+
			"call write {\"path\": \"a/b/new.txt\", \"content\": \"new\\n\"}\n---\n"+
			"call bash {\"command\": \"echo run it >> "+trace+"\"}\n---\nsay done"), "go")
	must(0, "-p", "-r", "w", "--script", script("say fine"), "/undo")
	must(0, "trust", ".")
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestShowDurable(t *testing.T) {
	p, traced := durableSession(t)
	root := filepath.Dir(p.ws)
	for _, l := range traced {
		t.Log(strings.ReplaceAll(l, root, ""))
	}
	var files []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	})
	slices.Sort(files)
	t.Log(strings.Join(files, "\n"))
}
