package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"coder/internal/tool"
)

func named(name string, aliases ...tool.Alias) tool.Tool {
	f := echo()
	f.Name, f.Aliases = name, aliases
	return f
}

func TestSet(t *testing.T) {
	s, err := tool.NewSet(
		named("read", tool.Alias{Dialect: tool.Sema, Name: "Read"}, tool.Alias{Dialect: tool.CoAuthor, Name: "readFile"}, tool.Alias{Name: "open"}),
		named("open"),
		named("list", tool.Alias{Name: "readFile"}, tool.Alias{Name: "ls"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"read": "read", "READ": "read", "readFile": "read", "read_file": "read", // an earlier alias beats a later
		"open": "open", // a name beats an alias
		"LS":   "list", "nope": "",
	} {
		got := ""
		if tl, ok := s.Lookup(name); ok {
			got = tl.Spec().Name
		}
		if got != want {
			t.Errorf("Lookup(%q) = %q, want %q", name, got, want)
		}
	}
	for dialect, want := range map[string]string{
		"": "read open list", tool.Sema: "Read open list", tool.CoAuthor: "readFile open list", "unknown": "read open list",
	} {
		var names []string
		for spec := range s.InDialect(dialect).Specs() {
			names = append(names, spec.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("in %q: %s, want %s", dialect, got, want)
		}
	}
	for range s.Specs() {
		break // must not panic
	}
	if s.Len() != 3 {
		t.Errorf("Len() = %d", s.Len())
	}
}

func TestSetRefuses(t *testing.T) {
	if _, err := tool.NewSet(named("")); err == nil {
		t.Error("a tool without a name was taken")
	}
	if _, err := tool.NewSet(named("read_file"), named("readFile")); err == nil {
		t.Error("two tools of one name were taken")
	}
	if _, ok := (tool.Set{}).Lookup("x"); ok {
		t.Error("the empty set has a tool")
	}
}

func TestReadOnly(t *testing.T) {
	for _, tc := range []struct {
		effects []tool.Effect
		want    bool
	}{
		{nil, false},
		{[]tool.Effect{{}}, false},
		{[]tool.Effect{{Kind: tool.Read}}, true},
		{[]tool.Effect{{Kind: tool.Read}, {Kind: tool.Net}}, false},
		{[]tool.Effect{{Kind: tool.Exec}}, false},
		{[]tool.Effect{{Kind: tool.Note}}, false},
		{[]tool.Effect{{Kind: tool.Read}, {Kind: tool.Note}}, false},
	} {
		if got := (tool.Plan{Effects: tc.effects}).ReadOnly(); got != tc.want {
			t.Errorf("ReadOnly(%v) = %v", tc.effects, got)
		}
	}
	for k, want := range map[tool.Kind]string{
		tool.Unknown: "unknown x", tool.Exec: "exec x", tool.Write: "write x",
		tool.Net: "net x", tool.Note: "note x", tool.Read: "read x",
	} {
		if got := (tool.Effect{Kind: k, Target: "x"}).String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestFatal(t *testing.T) {
	err := fmt.Errorf("outer: %w", tool.Fatal(context.DeadlineExceeded))
	if !tool.IsFatal(err) || !errors.Is(err, context.DeadlineExceeded) || tool.IsFatal(context.Canceled) {
		t.Errorf("IsFatal(%v) = %v", err, tool.IsFatal(err))
	}
}

func TestToolsThatComeLaterStandBesideTheOthers(t *testing.T) {
	s, err := tool.NewSet(named("read"), named("write"))
	if err != nil {
		t.Fatal(err)
	}
	narrow := s.Without(func(name string) bool { return name == "write" || name == "mcp__a__drop" })
	narrower := narrow.Without(func(name string) bool { return narrow.IsOff(name) || name == "mcp__a__x" })
	set := narrower.WithTools(1, named("mcp__a__old")).WithTools(2, named("mcp__a__b"), named("mcp__a__drop"), named("mcp__a__x"), named("Read"), named("mcp__A__b"))
	var names []string
	for spec := range set.Specs() {
		names = append(names, spec.Name)
	}
	if got := strings.Join(names, " "); got != "read mcp__a__b" || set.Generation() != 2 || s.Generation() != 0 {
		t.Errorf("there are %s, generation %d", got, set.Generation())
	}
	if _, there := set.Lookup("mcp__a__old"); there || !set.IsOff("mcp__a__drop") || set.IsOff("mcp__a__b") {
		t.Error("what was there before is there still, or what is off is not")
	}
}
