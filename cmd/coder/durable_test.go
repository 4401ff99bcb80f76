package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	_, section, found := strings.Cut(string(text), "\n## Durable files\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/FAULTS.md has no section about durable files")
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

// durableRest plays what a session does not write: settings, a plugin, a marketplace, a login, a choice of
// model, a plan, memory, a name, another agent's settings, an answer to who waits, and at a terminal what an editor, a page and an unsent line leave.
func durableRest(t *testing.T, p *program) {
	t.Helper()
	root := filepath.Dir(p.ws)
	must := func(args ...string) {
		t.Helper()
		if out, errs, code := p.run(args...); code != 0 {
			t.Fatalf("coder %q: code %d: %s%s", args, code, out, errs)
		}
	}
	plugin := filepath.Join(root, "plugin")
	if err := errors.Join(os.MkdirAll(filepath.Join(plugin, ".claude-plugin"), 0o700), os.Symlink(p.self, filepath.Join(root, "fetchpage")),
		os.WriteFile(filepath.Join(plugin, ".claude-plugin/plugin.json"), []byte(`{"name": "demo"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	must("plugin", "add", "--yes", plugin)
	must("mcp", "add", "s", loginServer(t)+"/mcp")
	p.env = append(p.env, "BROWSER="+filepath.Join(root, "fetchpage"), "EDITOR="+editor(t, "echo edited > $1\n"))
	must("mcp", "login", "s")
	must("mcp", "remove", "s")
	script := filepath.Join(root, "rest")
	if err := os.WriteFile(script, []byte("call bash {\"command\": \"seq 100000; cp old.txt waited\"}\n---\nsay done\nrepeat\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	waits := &held{program: p}
	waits.Cmd = p.cmd("-p", "--on-ask", "wait", "--session-id", "s1", "--script", script, "go")
	waits.Stderr, waits.Stdin = &waits.said, strings.NewReader("")
	waits.start()
	must("respond", waits.question(), "--option", "approve")
	waits.over(0)
	types := &held{program: p}
	types.Cmd = p.cmd("--session-id", "s2", "--yolo", "--script", script)
	types.at("xterm", false).until("> ").write("\x07").until("edited").write("\r").until("done")
	page := newSite(p, "--script", script)
	page.stream("s2", 0, "messages you send here go there")
	if status, text, _ := page.post(page.of("s2", "/say"), "prompt", "from the page"); status != 303 {
		t.Fatalf("%d: %s", status, text)
	}
	types.until("from the page").write("not sent").until("not sent")
	if err := types.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-types.ended
	must("search", "done")
	must("trust", "--yes", ".")
	must("-p", "-r", "s2", "--script", script, "/remember Use tabs")
	must("-p", "-r", "s2", "--script", script, "/remember --user Answer in French")
	must("sessions", "rename", "s2", "a name")
	must("audit", "ship", "--to", filepath.Join(root, "shipped"))
	market, foreign := filepath.Join(plugin, ".claude-plugin/marketplace.json"), filepath.Join(root, "home/.claude")
	if err := errors.Join(os.WriteFile(market, []byte(`{"name": "shop", "plugins": []}`), 0o600), os.Mkdir(foreign, 0o700),
		os.WriteFile(filepath.Join(foreign, "settings.json"), []byte(`{"permissions": {"deny": ["Bash(git push:*)"]}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	must("plugin", "marketplace", "add", plugin)
	must("setup", "--from", "claude", "--yes")
	must("-p", "-r", "s2", "--script", script, "/model other force")
	plan := filepath.Join(root, "plan")
	if err := os.WriteFile(plan, []byte("call exit_plan_mode {\"plan\": \"do it\"}\n---\nsay done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must("-p", "--mode", "plan", "--script", plan, "go")
	killed := &held{program: p}
	killed.Cmd = p.cmd("-r", "s2", "--script", script)
	killed.Env = append(slices.Clip(p.env), "EDITOR="+editor(t, "kill -9 $PPID\n"))
	killed.at("xterm", false).until("> ").write("\x07")
	<-killed.ended
}

// loginServer is an MCP server that only logs in.
func loginServer(t *testing.T) (url string) {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	answer := func(pattern string, status int, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", s.URL+"/meta"))
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	answer("/mcp", http.StatusUnauthorized, nil)
	answer("/meta", http.StatusOK, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	answer("/.well-known/oauth-authorization-server", http.StatusOK, map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
	})
	answer("/register", http.StatusCreated, map[string]any{"client_id": "c", "token_endpoint_auth_method": "none"})
	answer("/token", http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 3600})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?code=x&state="+r.FormValue("state"), http.StatusFound)
	})
	return s.URL
}

// TestWhatIsOnTheDisk holds the table in docs/FAULTS.md against a session and what people do
// beside it: every file that is written has a row and reaches the disk as its row says, and
// every row has a file.
func TestWhatIsOnTheDisk(t *testing.T) {
	p, _ := durableSession(t)
	root := filepath.Dir(p.ws)
	durableRest(t, p)
	text, err := os.ReadFile(filepath.Join(root, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	trace := strings.Split(strings.TrimSpace(string(text)), "\n")
	files := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[path] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range trace { // what is removed again
		if path, ok := strings.CutPrefix(l, "name "); ok {
			files[path] = true
		}
	}
	met := make(map[string]bool)
	rows := durableRows(t)
	for path := range files {
		inside, ok := strings.CutPrefix(path, root+"/")
		if !ok || !strings.Contains(inside, "/") || strings.HasPrefix(inside, "plugin/") || strings.HasPrefix(inside, "home/.claude/") {
			continue
		}
		name := strings.TrimPrefix(strings.Replace(inside, "home/", "~/", 1), "ws/")
		at := slices.IndexFunc(rows, func(r durableRow) bool {
			matches, err := filepath.Match(r.where, name)
			return err == nil && matches || r.where == "*" && !strings.HasPrefix(name, ".coder/") && !strings.HasPrefix(name, "~/")
		})
		switch {
		case name == "asked" || name == "waited": // what a command writes is not ours to sync
		case at < 0:
			t.Errorf("%s has no row in the table", name)
		case rows[at].synced != syncedAs(trace, path):
			t.Errorf("%s: the table says %q, the trace %q", name, rows[at].synced, syncedAs(trace, path))
		default:
			met[rows[at].where] = true
		}
	}
	for _, r := range rows {
		if !met[r.where] {
			t.Errorf("nothing was written to %s", r.where)
		}
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
			return strings.HasPrefix(l, "sync ") && (base == "draft" || strings.HasPrefix(base, ".new-")) &&
				(strings.Contains(path, "/objects/") || filepath.Dir(l) == folder) // other processes sync, too
		})
		other := slices.IndexFunc(before, func(l string) bool { return strings.HasPrefix(l, "name "+filepath.Dir(path)+"/") })
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
	from := slices.Index(trace, "sync "+log) // its folders begin to reach the disk beside the first request
	if from < 0 || !slices.Contains(trace, "sync "+log+"/events.jsonl") {
		t.Fatalf("the log of the second session never reached the disk: %q", trace)
	}
	for _, o := range [][]string{
		{"name " + filepath.Join(filepath.Dir(p.ws), "home/.coder/key"), "sync " + filepath.Join(filepath.Dir(p.ws), "home/.coder"), "sync " + filepath.Join(filepath.Dir(p.ws), "home"), "sync " + p.ws + "/.coder/log/s/events.jsonl"},
		{"sync " + log + "/audit.2.jsonl", "sync " + log, "name " + p.ws + "/old.txt"},
		{"sync " + log, "sync " + filepath.Dir(log), "sync " + p.ws + "/.coder", "sync " + p.ws, "name " + p.ws + "/old.txt"},
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
