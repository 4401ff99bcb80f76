package judge_test

import (
	"testing"
	"time"

	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
)

// memoryOf opens the memory of a project for a session at a time.
func memoryOf(t *testing.T, dir, root, session string, at time.Time) (*judge.Judge, *judge.Memory) {
	t.Helper()
	j := newJudge(t, "build", func(o *judge.Options) { o.Root, o.Now = root, func() time.Time { return at } })
	m, err := j.OpenMemory(dir, session, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j, m
}

func allow(t *testing.T, m *judge.Memory, command string, s policy.Scope) {
	t.Helper()
	if err := m.Add(t.Context(), run(command), s); err != nil {
		t.Fatal(err)
	}
}

// TestANewSessionDoesNotInheritTheGrantsOfItsName, nor does it lose those of the project.
func TestANewSessionDoesNotInheritTheGrantsOfItsName(t *testing.T) {
	dir, root, now := t.TempDir(), t.TempDir(), time.Unix(1e9, 0)
	_, old := memoryOf(t, dir, root, "s", now)
	allow(t, old, "go vet", policy.ThisSession)
	allow(t, old, "npm run lint", policy.ThisProject)
	_, other := memoryOf(t, dir, root, "", now)
	if err := other.ClearSession(); err != nil {
		t.Error(err)
	}
	fresh, m := memoryOf(t, dir, root, "s", now)
	if verdict(t, fresh, run("go vet")).Verdict != policy.Allow {
		t.Error("a memory without a session cleared one")
	}
	if err := m.ClearSession(); err != nil {
		t.Fatal(err)
	}
	later, _ := memoryOf(t, dir, root, "s", now)
	for _, j := range []*judge.Judge{fresh, later} {
		if o := verdict(t, j, run("go vet")); o.Verdict != policy.Ask {
			t.Errorf("an earlier session's grant holds: %v", o)
		}
		if o := verdict(t, j, run("npm run lint")); o.Verdict != policy.Allow {
			t.Errorf("the project's grant is gone: %v", o)
		}
	}
}

func TestAHostIsAllowedForASessionOrAProject(t *testing.T) {
	dir, root, now := t.TempDir(), t.TempDir(), time.Unix(1e9, 0)
	j, _ := memoryOf(t, dir, root, "s", now)
	for host, scope := range map[string]policy.Scope{"session.org": policy.ThisSession, "project.org": policy.ThisProject} {
		if j.IsHostAllowed(host) {
			t.Errorf("%s is allowed from the start", host)
		}
		if err := j.AllowHost(host, scope, "curl"); err != nil || !j.IsHostAllowed(host) {
			t.Errorf("%s: %v", host, err)
		}
	}
	same, _ := memoryOf(t, dir, root, "s", now)
	other, _ := memoryOf(t, dir, root, "r", now)
	if !same.IsHostAllowed("session.org") || !same.IsHostAllowed("project.org") || !other.IsHostAllowed("project.org") ||
		other.IsHostAllowed("session.org") {
		t.Error("a host is allowed elsewhere, or forgotten")
	}
}

// TestGrantsAreCopiedFromBeforeATime, without those of sessions.
func TestGrantsAreCopiedFromBeforeATime(t *testing.T) {
	dir, root, toDir, toRoot := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	before, after := time.Unix(1e9, 0), time.Unix(2e9, 0)
	_, m := memoryOf(t, dir, root, "s", before)
	allow(t, m, "go vet", policy.ThisProject)
	allow(t, m, "npm run lint", policy.ThisSession)
	_, m = memoryOf(t, dir, root, "s", after)
	allow(t, m, "go build", policy.ThisProject)
	if err := judge.CopyGrants(dir, root, toDir, toRoot, after); err != nil {
		t.Fatal(err)
	}
	j, _ := memoryOf(t, toDir, toRoot, "s", after)
	for command, want := range map[string]policy.Verdict{
		"go vet": policy.Allow, "npm run lint": policy.Ask, "go build": policy.Ask,
	} {
		if o := verdict(t, j, run(command)); o.Verdict != want {
			t.Errorf("%s: %v", command, o)
		}
	}
	if err := judge.CopyGrants(dir, toRoot, toDir, t.TempDir(), after); err != nil {
		t.Errorf("a project without grants: %v", err)
	}
}

func TestTheCheckOfATrustedFolderRunsUnasked(t *testing.T) {
	for name, tt := range map[string]struct {
		mode, command string
		rules         map[string]risk.Patterns
		want          policy.Verdict
	}{
		"the check":            {"build", "make check", nil, policy.Allow},
		"another command":      {"build", "make all", nil, policy.Ask},
		"in plan mode":         {"plan", "make check", nil, policy.Ask},
		"the user's rule asks": {"build", "make check", map[string]risk.Patterns{"bash": {"make *": policy.Ask}}, policy.Ask},
		"the rule denies":      {"build", "make check", map[string]risk.Patterns{"bash": {"make *": policy.Deny}}, policy.Deny},
	} {
		j := newJudge(t, tt.mode, func(o *judge.Options) {
			o.UserRules = tt.rules
			o.IsCheck = func(line string) bool { return line == "make check" }
		})
		if o := verdict(t, j, run(tt.command)); o.Verdict != tt.want {
			t.Errorf("%s: %v, want %v", name, o, tt.want)
		}
	}
}

func TestFrozenFilesAreKnownFromSettingsAndRules(t *testing.T) {
	deny, err := rule.ParseSpecs("write(gen/**)")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*judge.Options)
		want   bool
	}{
		"nothing": {nil, false},
		"setting": {func(o *judge.Options) { o.Frozen = []string{"tests/**"} }, true},
		"rule":    {func(o *judge.Options) { o.Deny = deny }, true},
	} {
		if got := newJudge(t, "build", tt.change).HasFrozen(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
