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

// durableRow is a row of the table in docs/FAULTS.md of what is on the disk, and when.
type durableRow struct{ where, synced string }

func durableRows(t *testing.T) (rows []durableRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## On the disk when promised\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/FAULTS.md has no section about what is on the disk")
	}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		for i, where := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				rows = append(rows, durableRow{where, strings.TrimSpace(cells[2])})
			}
		}
	}
	return rows
}

// TestWhatIsOnTheDisk holds the table in docs/FAULTS.md against a session: every file
// that the session leaves has a row, and reaches the disk as its row says.
func TestWhatIsOnTheDisk(t *testing.T) {
	p, trace := durableSession(t)
	root := filepath.Dir(p.ws)
	rows := durableRows(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(path) == root {
			return err
		}
		name := strings.Replace(strings.TrimPrefix(path, root+"/"), "home/", "~/", 1)
		name = strings.TrimPrefix(name, "ws/")
		at := slices.IndexFunc(rows, func(r durableRow) bool {
			matches, err := filepath.Match(r.where, name)
			return err == nil && matches || r.where == "*" && !strings.HasPrefix(name, ".coder/") && !strings.HasPrefix(name, "~/")
		})
		switch {
		case name == "asked": // what a command writes is not ours to sync
		case at < 0:
			t.Errorf("%s has no row in the table", name)
		case rows[at].synced != syncedAs(trace, path):
			t.Errorf("%s: the table says %q, the trace %q", name, rows[at].synced, syncedAs(trace, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// syncedAs says how a file reached the disk: its newest content, and its name.
func syncedAs(trace []string, path string) string {
	folder, named := "sync "+filepath.Dir(path), lastIndex(trace, "name "+path)
	file, name := lastIndex(trace, "sync "+path) >= 0, lastIndex(trace, folder) >= 0 && lastIndex(trace, folder) > named
	if named > 0 { // it was written under another name, and synced before it had its own
		before := slices.Clone(trace[:named])
		slices.Reverse(before)
		at := slices.IndexFunc(before, func(l string) bool {
			base := filepath.Base(l)
			return strings.HasPrefix(l, "sync ") && (strings.HasPrefix(base, ".new-") || base == "draft") &&
				(!strings.Contains(path, "/starts/") || filepath.Dir(l) == folder)
		})
		other := slices.IndexFunc(before, func(l string) bool { return strings.HasPrefix(l, "name ") })
		file = at >= 0 && (other < 0 || at < other || strings.Contains(path, "/undo/"))
	}
	switch {
	case file && name:
		return "file, folder"
	case file:
		return "file"
	case name && named < 0 && strings.HasSuffix(path, "/audit.jsonl"):
		return "folder"
	}
	return "no"
}

func lastIndex(lines []string, line string) int {
	for i, l := range slices.Backward(lines) {
		if strings.ReplaceAll(l, "/./", "/") == line {
			return i
		}
	}
	return -1
}

// TestOrderOnTheDisk holds the order: what a call needs to be undone or found again is on
// the disk before it runs, and what it did before the record says so.
func TestOrderOnTheDisk(t *testing.T) {
	p, trace := durableSession(t)
	log := filepath.Join(p.ws, ".coder/log/w")
	object := "name " + filepath.Join(p.ws, ".coder/undo/objects")
	from := slices.Index(trace, "sync "+log+"/events.jsonl")
	if from < 0 {
		t.Fatalf("the log of the second session never reached the disk: %q", trace)
	}
	for _, o := range [][]string{
		{"name " + filepath.Join(filepath.Dir(p.ws), "home/.coder/key"), "sync " + filepath.Join(filepath.Dir(p.ws), "home/.coder"), "sync " + filepath.Join(filepath.Dir(p.ws), "home"), "sync " + p.ws + "/.coder/log/s/events.jsonl"},
		{"sync " + log + "/audit.2.jsonl", "sync " + log, "sync " + filepath.Dir(log), "sync " + p.ws + "/.coder", "sync " + p.ws, "name " + p.ws + "/old.txt"},
		{"name " + p.ws + "/old.txt", "sync " + p.ws, "sync " + log + "/audit.2.jsonl"},
		{"name " + p.ws + "/a/b/new.txt", "sync " + p.ws, "sync " + p.ws + "/a", "sync " + p.ws + "/a/b", "sync " + log + "/audit.2.jsonl", "run it"},
		{object, "sync " + p.ws + "/.coder/undo/objects", "sync " + log + "/audit.2.jsonl", "run it"},
	} {
		rest := trace
		if strings.Contains(o[0], log) {
			rest = trace[from:]
		}
		for _, step := range o {
			at := slices.IndexFunc(rest, func(l string) bool {
				l = strings.ReplaceAll(l, "/./", "/")
				return l == step || step == object && strings.HasPrefix(l, object)
			})
			if at < 0 {
				t.Errorf("%q does not come in its turn in %q:\n%s", step, o, strings.Join(trace, "\n"))
				break
			}
			rest = rest[at+1:]
		}
	}
	if last := lastIndex(trace, "name "+p.ws+"/old.txt"); lastIndex(trace, "sync "+p.ws) < last {
		t.Error("what /undo brought back has no synced name")
	}
}
