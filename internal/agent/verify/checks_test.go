package verify

import (
	"encoding/json"
	"fmt"
	"testing"

	"coder/internal/core/event"
)

func TestIsCheck(t *testing.T) {
	for _, line := range []string{
		"go test ./...", "go vet ./... && go test -race ./...", "cd sub && go test", "make test", "make -j4 check", "npm test", "npm run test:unit", "npx jest",
		"pytest -q tests", "python3 -m pytest", "uv run pytest", "timeout 60 cargo test", "FOO=1 go test ./...", "(cd a; go test)", "time make test",
		"./gradlew test", "tsc --noEmit", "echo start; go build ./...", "golangci-lint run", "go test ./... > log.txt 2>&1", "poetry run mypy .", "pytest -n 4", "go test -v", "python3 -m pytest -m slow",
		"command -v go && go test ./...", "command -v go >/dev/null 2>&1 && go test ./...", "hash go 2>/dev/null && go test", "which go; go test", "set -euo pipefail; make test", "set -o nounset; make test",
	} {
		if !IsCheck(line) {
			t.Errorf("%q is no check", line)
		}
	}
	for _, line := range []string{
		"", "ls", "go run .", "go test ./... | tail", "go test ./... || true", "go test; echo done", "! go test", "go test &", "echo go test", "npm install",
		"make", "make install", "git commit -m test", "cat test", "python3 test.py", "go 'test'$x", "rm -rf test", "npm run dev", "if true; then go test; fi", "go test ./... ; true", "((",
		"make -n test", "make --dry-run check", "make -kn test", "pytest --version", "pytest --collect-only", "npm test --help", "go test -list .", "go vet -h", "gradle test -m", "ctest -N",
		"make() { true; }; make test", "alias make=true; make test", "trap 'exit 0' EXIT; make test",
		"exit 0; make test", "true && exit; make test", "(exit 0); make test", "exec true; make test", "eval exit; make test", "set -n; make test", "kill $$; make test",
		"make -t test", "make -q test", "make -kt test", "make -i test", "make --touch test", "make --ignore-errors test", "tox -l", "dotnet test -t", "ruff rule E501", "golangci-lint linters",
		"tsc --init", "playwright install", "pytest --markers", "command -v go", "command exit 0; make test", "command -p exit; make test", "hash -p /bin/true make; make test", "hash -r; make test",
		"set -euno pipefail; make test", "set -o noexec; make test",
	} {
		if IsCheck(line) {
			t.Errorf("%q is a check", line)
		}
	}
}

// log is a session in few words: "edit a.go" and "run 0 go test".
func log(t *testing.T, steps ...any) LastCheck {
	t.Helper()
	var c CheckTracker
	for i := 0; i < len(steps); i += 2 {
		id, verdict, command, exit := fmt.Sprint(i), event.VerdictAllowed, "", 0
		switch v := steps[i+1].(type) {
		case string:
			c.Add(event.Record{Event: event.ToolCallRequested{CallID: id, Tool: "edit", Input: json.RawMessage(`{}`), Verdict: verdict}})
			c.Add(event.Record{Event: event.ToolCallCompleted{CallID: id, Output: json.RawMessage(`{}`), Changes: []event.FileChange{{After: event.FileState{Path: v}}}}})
			continue
		case int:
			command, exit = steps[i].(string), v
		}
		in, _ := json.Marshal(map[string]string{"command": command})
		c.Add(event.Record{Event: event.ToolCallRequested{CallID: id, Tool: "bash", Input: in, Verdict: verdict}})
		c.Add(event.Record{Event: event.ToolCallCompleted{CallID: id, Output: json.RawMessage(fmt.Sprintf(`{"exit_code":%d}`, exit))}})
	}
	return c.Last()
}

func TestWhatWasCheckedLast(t *testing.T) {
	for _, tt := range []struct {
		name     string
		got      LastCheck
		want     LastCheck
		verified bool
	}{
		{"nothing", log(t), LastCheck{}, true},
		{"only looked", log(t, "ls", 0), LastCheck{}, true},
		{"edited", log(t, "edit", "a.go"), LastCheck{EditsSince: 1, AnyEdits: true}, false},
		{"a text", log(t, "make test", 0, "edit", "words.txt"), LastCheck{Command: "make test", OtherChangesSince: 1}, true},
		{"a text of tests", log(t, "make test", 0, "edit", "testdata/words.txt"), LastCheck{Command: "make test", EditsSince: 1, AnyEdits: true}, false},
		{"a list of packages", log(t, "make test", 0, "edit", "requirements.txt"), LastCheck{Command: "make test", EditsSince: 1, AnyEdits: true}, false},
		{"documents", log(t, "edit", "README.md"), LastCheck{OtherChangesSince: 1}, true},
		{"checked", log(t, "edit", "a.go", "edit", "b.go", "go test", 0), LastCheck{Command: "go test", AnyEdits: true}, true},
		{"failed", log(t, "edit", "a.go", "go test", 1), LastCheck{Command: "go test", ExitCode: 1, AnyEdits: true}, false},
		{"edited after", log(t, "go test", 0, "edit", "a.go", "edit", "a.go"), LastCheck{Command: "go test", EditsSince: 2, AnyEdits: true}, false},
		{"a pipe hides it", log(t, "edit", "a.go", "go test | tail", 0), LastCheck{EditsSince: 1, AnyEdits: true}, false},
		{"ran out of time", log(t, "edit", "a.go", "go test", 124), LastCheck{Command: "go test", ExitCode: 124, InconclusiveReason: "the command ran out of time", AnyEdits: true}, false},
		{"failed without work", log(t, "go test", 1), LastCheck{Command: "go test", ExitCode: 1}, true},
	} {
		if tt.got.Command != "" && (!tt.got.IsOneOf([]string{tt.got.callID}) || tt.got.IsOneOf([]string{"another"})) {
			t.Errorf("%s: it does not know its call", tt.name)
		}
		if tt.got.callID = ""; tt.got != tt.want || tt.got.IsVerified() != tt.verified {
			t.Errorf("%s: %+v (%t), want %+v", tt.name, tt.got, tt.got.IsVerified(), tt.want)
		}
	}
}

// A line that edits and checks is both: what it changed before the check was looked at
// by it, what it changed after it was not, and what the check itself writes is no edit.
func TestALineThatEditsAndChecks(t *testing.T) {
	for _, tt := range []struct {
		line     string
		exit     int
		edits    int
		verified bool
	}{
		{"make test", 0, 0, true}, {"make test > log.go 2>&1", 1, 0, true}, {"cd sub && make test", 0, 0, true},
		{"command -v make >/dev/null 2>&1 && make test", 1, 0, true}, {"which make < list; make test", 1, 0, true}, {"which make > a.go; make test", 1, 0, false},
		{"sed -i s/a/b/ a.go && make test", 0, 0, true}, {"sed -i s/a/b/ a.go && make test", 2, 0, false}, {"echo x > a.go; make test", 1, 0, false},
		{"go vet ./... && gofmt -w . && go test ./...", 0, 0, true},
		{"make test && sed -i s/a/b/ a.go", 0, 1, false}, {"make test && echo x > a.go", 0, 1, false}, {"go test ./... && (cd sub && touch a.go)", 0, 1, false},
		{"sed -i s/a/b/ a.go && make test", -1, 1, false},
	} {
		var c CheckTracker
		in, _ := json.Marshal(map[string]string{"command": tt.line})
		c.Add(event.Record{Event: event.ToolCallRequested{CallID: "1", Input: in, Verdict: event.VerdictAllowed}})
		c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "1", Output: json.RawMessage(fmt.Sprintf(`{"exit_code":%d}`, tt.exit)), Changes: []event.FileChange{{After: event.FileState{Path: "a.go"}}}}})
		if got := c.Last(); got.EditsSince != tt.edits || got.IsVerified() != tt.verified {
			t.Errorf("%q, exit code %d: %+v", tt.line, tt.exit, got)
		}
	}
}

// Edits that were taken back do not count, and count again when they are brought back;
// what goes back behind a check is a change that was not checked.
func TestEditsThatWereTakenBack(t *testing.T) {
	change := func(path, from, to string) event.FileChange {
		return event.FileChange{Before: event.FileState{Path: path, Hash: from}, After: event.FileState{Path: path, Hash: to}}
	}
	edit := func(changes ...event.FileChange) event.ToolCallCompleted {
		return event.ToolCallCompleted{CallID: "e", Tool: "edit", Author: "main", Changes: changes}
	}
	back := func(tool string, changes ...event.FileChange) event.ToolCallCompleted {
		return event.ToolCallCompleted{CallID: "u", Tool: tool, Author: event.ActorUser, Changes: changes}
	}
	check := func(c *CheckTracker) {
		c.Add(event.Record{Event: event.ToolCallRequested{CallID: "c", Input: json.RawMessage(`{"command":"go test"}`), Verdict: event.VerdictAllowed}})
		c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "c", Output: json.RawMessage(`{"exit_code":0}`)}})
	}
	a1, a2, b1 := change("a.go", "0", "1"), change("a.go", "1", "2"), change("b.go", "", "1")
	for _, tt := range []struct {
		name   string
		checks int // after how many a check is run; -1 never
		steps  []event.ToolCallCompleted
		edits  int
		edited bool
	}{
		{"undone", -1, []event.ToolCallCompleted{edit(a1), back("undo", change("a.go", "1", "0"))}, 0, false},
		{"one of two", -1, []event.ToolCallCompleted{edit(a1), edit(a2), back("undo", change("a.go", "2", "1"))}, 1, true},
		{"both at once", -1, []event.ToolCallCompleted{edit(a1), edit(a2), back("undo", change("a.go", "2", "0"))}, 0, false},
		{"and again", -1, []event.ToolCallCompleted{edit(a1), edit(a2), back("undo", change("a.go", "2", "0")), back("redo", change("a.go", "0", "2"))}, 2, true},
		{"rewound, undone, rewound", -1, []event.ToolCallCompleted{edit(a1), edit(b1), back("undo", change("b.go", "1", "")), back("redo", change("b.go", "", "1")), back("undo", change("b.go", "1", ""))}, 1, true},
		{"one file of two", -1, []event.ToolCallCompleted{edit(a1, b1), back("undo", change("b.go", "1", ""))}, 1, true},
		{"since the check", 1, []event.ToolCallCompleted{edit(a1), edit(a2), back("undo", change("a.go", "2", "1"))}, 0, true},
		{"behind the check", 1, []event.ToolCallCompleted{edit(a1), back("undo", change("a.go", "1", "0"))}, 1, true},
		{"behind the check and back", 1, []event.ToolCallCompleted{edit(a1), back("undo", change("a.go", "1", "0")), back("redo", change("a.go", "0", "1"))}, 0, true},
		{"by the model", -1, []event.ToolCallCompleted{edit(a1), edit(change("a.go", "1", "0"))}, 2, true},
	} {
		var c CheckTracker
		for i, e := range tt.steps {
			if c.Add(event.Record{Event: e}); i+1 == tt.checks {
				check(&c)
			}
		}
		if got := c.Last(); got.EditsSince != tt.edits || got.AnyEdits != tt.edited {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// What is changed while a check runs came after what it saw.
func TestAnEditDuringACheckIsUnchecked(t *testing.T) {
	var c CheckTracker
	c.Add(event.Record{Event: event.ToolCallRequested{CallID: "1", Input: json.RawMessage(`{"command":"go test"}`), Verdict: event.VerdictAllowed}})
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "2", Output: json.RawMessage(`{}`), Changes: []event.FileChange{{Before: event.FileState{Path: "a.go"}}}}})
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "1", Output: json.RawMessage(`{"exit_code":0}`)}})
	if got := c.Last(); got.EditsSince != 1 || got.IsVerified() {
		t.Errorf("%+v", got)
	}
	// One that nobody saw the end of, was refused or took too long says nothing.
	c.Add(event.Record{Event: event.ToolCallRequested{CallID: "3", Input: json.RawMessage(`{"command":"go vet"}`), Verdict: event.VerdictDenied}})
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "3", Output: json.RawMessage(`{"exit_code":0}`)}})
	c.Add(event.Record{Event: event.ToolCallRequested{CallID: "4", Input: json.RawMessage(`{"command":"go vet"}`), Verdict: event.VerdictAllowed}})
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "4", Output: json.RawMessage(`{"exit_code":-1}`)}})
	if got := c.Last(); got.Command != "go test" {
		t.Errorf("%+v", got)
	}
}

// A folder is nothing that could be checked.
func TestAFolderIsNoEdit(t *testing.T) {
	var c CheckTracker
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "1", Output: json.RawMessage(`{}`), Changes: []event.FileChange{{Before: event.FileState{Path: "d"}, After: event.FileState{Path: "d", Hash: "dir"}}}}})
	if last := c.Last(); last.AnyEdits || last.EditsSince+last.OtherChangesSince > 0 {
		t.Errorf("got %+v", last)
	}
}

func TestACheckThatThePersonStopped(t *testing.T) {
	var c CheckTracker
	c.Add(event.Record{Event: event.ToolCallRequested{CallID: "1", Tool: "bash", Input: json.RawMessage(`{"command":"go test"}`), Verdict: event.VerdictAllowed}})
	c.Add(event.Record{Event: event.ToolCallCompleted{CallID: "1", Output: json.RawMessage(`{"exit_code":143,"cancelled":true}`)}})
	if got := c.Last(); got.InconclusiveReason != "you stopped it" {
		t.Errorf("%+v", got)
	}
}
