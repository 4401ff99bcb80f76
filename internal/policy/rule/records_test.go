package rule_test

import (
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

// The records of sessions are closed to tools in every mode, however they are
// named, but for the output that the session itself kept.
func TestRecordsOfSessionsAreClosedToTools(t *testing.T) {
	b := &rule.Book{
		Root: "/w", Home: "/home/u",
		Logs: func() string { return ".coder/runs/s1" },
		Real: func(file string) string {
			if rest, ok := strings.CutPrefix(file, "/w/link"); ok {
				return "/w/.coder/undo" + rest
			}
			if file == "/w/.coder/runs/s1/out" {
				return "/w/.coder/log/s1/audit.jsonl"
			}
			return file
		},
	}
	for _, c := range []struct {
		tool, target string
		kind         tool.Kind
		open         bool
	}{
		{"read", ".coder/undo/objects/ab/cd", tool.Read, false},
		{"read", "/w/.coder/log/s1/audit.jsonl", tool.Read, false},
		{"read", "sub/../.coder/cache/code.index", tool.Read, false},
		{"read", "sub/.coder/runs/s1/x.log", tool.Read, false},
		{"read", "/added/.coder/sessions/s.json", tool.Read, false},
		{"read", ".CODER/Undo/x", tool.Read, false},
		{"read", "link/objects/x", tool.Read, false},
		{"grep", ".coder/log", tool.Read, false},
		{"list", ".coder/undo", tool.Read, false},
		{"glob", ".coder/undo", tool.Read, false},
		{"search_code", ".coder/cache", tool.Read, false},
		{"write", ".coder/log/s1/audit.jsonl", tool.Write, false},
		{"edit", ".coder/runs/s1/x.log", tool.Write, false},
		{"read", ".coder/runs/s2/x.log", tool.Read, false},
		{"read", ".coder/runs/s1/../s2/x.log", tool.Read, false},
		{"read", ".coder/runs/s1/out", tool.Read, false}, // a link that leads elsewhere
		{"list", ".coder/runs/s1", tool.Read, false},
		{"read", ".coder/runs/s1/x.log", tool.Read, true},
		{"grep", "/w/.coder/runs/s1/x.log", tool.Read, true},
		{"read", ".coder/plans/p.md", tool.Read, true},
		{"read", ".coder/commands/log/x.md", tool.Read, true},
		{"read", "coder/log/x", tool.Read, true},
		{"list", ".coder", tool.Read, true},
	} {
		for _, preset := range []string{"plan", "build", "yolo"} {
			p, _ := rule.LookupPreset(preset)
			plan := tool.Plan{Effects: []tool.Effect{{Kind: c.kind, Target: c.target}}}
			o, err := b.PolicyFor(p).Judge(t.Context(), policy.Case{Tool: c.tool, Plan: plan})
			if err != nil || (o.Verdict == policy.Allow) != c.open {
				t.Errorf("%s: %s %s: %v, %v", preset, c.tool, c.target, o, err)
			}
			if !c.open && !strings.Contains(o.String(), "session records") {
				t.Errorf("%s %s: %s", c.tool, c.target, o)
			}
			if c.tool == "read" && b.SkipsInSearch(p, c.target) == c.open {
				t.Errorf("searches: %s: hidden is %v", c.target, !c.open)
			}
		}
	}
}

// Where a file leads is looked up once for a call, whatever rules ask about it.
func TestLinksAreFollowedOnce(t *testing.T) {
	lookups := 0
	b := &rule.Book{
		Root: "/w", Home: "/home/u", Logs: func() string { return ".coder/runs/s1" },
		Deny: []rule.Spec{{Tool: "read", On: "*.pem"}},
		Real: func(file string) string { lookups++; return file },
	}
	p, _ := rule.LookupPreset("balanced")
	c := policy.Case{Tool: "read", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Read, Target: "a.go"}}}}
	if o, err := b.PolicyFor(p).Judge(t.Context(), c); err != nil || o.Verdict != policy.Allow || lookups != 1 {
		t.Errorf("%v, %v after %d lookups", o.Verdict, err, lookups)
	}
}
