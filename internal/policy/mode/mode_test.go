package mode_test

import (
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// TestTheTable is the mode table as people read it. A dash is a tool that is
// not there.
func TestTheTable(t *testing.T) {
	want := `
mode       write bash todowrite question task git_commit exit_plan_mode verify     preset
build      on    on   -         -        on   on         -              automatic  build
plan       -     on   on        on       -    -          on             never      plan
default    on    on   on        on       on   on         -              on request balanced
auto-edit  on    on   on        on       on   on         -              automatic  auto-edit
yolo       on    on   on        -        on   on         -              automatic  yolo`
	lines := strings.Split(strings.TrimSpace(want), "\n")
	tools := strings.Fields(lines[0])[1:8]
	for _, line := range lines[1:] {
		words := strings.Fields(strings.Replace(line, "on request", "on-request", 1))
		m, err := mode.Lookup(words[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, tool := range tools {
			if on := words[i+1] == "on"; m.Has(tool) != on {
				t.Errorf("%s: %s there: %v, want %v", m.Name, tool, m.Has(tool), on)
			}
		}
		verify := strings.Replace(m.Verify.String(), " ", "-", 1)
		if verify != words[8] || m.Preset != words[9] || m.Prompt == "" {
			t.Errorf("%s: verify %s, preset %s; want %s, %s", m.Name, verify, m.Preset, words[8], words[9])
		}
	}
	if len(mode.Names()) != len(lines)-1 {
		t.Errorf("modes %v, table has %d", mode.Names(), len(lines)-1)
	}
}

func TestTabGoesBetweenPlanAndTheLastWorkingModeNeverIntoYolo(t *testing.T) {
	tests := []struct {
		before []string // modes gone through
		want   string
	}{
		{[]string{"build"}, "plan"},
		{[]string{"build", "plan"}, "build"},
		{[]string{"auto-edit", "plan"}, "auto-edit"},
		{[]string{"yolo"}, "plan"},
		{[]string{"yolo", "plan"}, "build"},
		{[]string{"default", "yolo", "plan"}, "default"},
	}
	for _, tt := range tests {
		s := at(t, tt.before...)
		if got := s.ToggleTarget(); got != tt.want {
			t.Errorf("after %v: %s, want %s", tt.before, got, tt.want)
		}
	}
}

func at(t *testing.T, modes ...string) *mode.State {
	t.Helper()
	s, err := mode.NewState(modes[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modes[1:] {
		if err := s.Switch(m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestShiftTabGoesRoundWithoutYolo(t *testing.T) {
	s := at(t, "build")
	var seen []string
	for range 5 {
		now, _ := s.Current()
		seen = append(seen, mode.Next(now.Name))
		if err := s.Switch(mode.Next(now.Name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(seen, " "); got != "plan default auto-edit build plan" {
		t.Errorf("round: %s", got)
	}
	if got := mode.Next("yolo"); got == "yolo" {
		t.Error("the round leads into yolo")
	}
}

func TestAPresetThatIsAModeBringsTheModeAlong(t *testing.T) {
	s := at(t, "build")
	for _, tt := range []struct{ preset, mode, inForce string }{
		{"strict", "build", "strict"},
		{"plan", "plan", "plan"},
		{"balanced", "plan", "balanced"},
		{"auto-edit", "auto-edit", "auto-edit"},
		{"default", "default", "balanced"},
	} {
		if err := s.SetPreset(tt.preset); err != nil {
			t.Fatal(err)
		}
		if m, p := s.Current(); m.Name != tt.mode || p != tt.inForce {
			t.Errorf("after %s: mode %s, preset %s; want %s, %s", tt.preset, m.Name, p, tt.mode, tt.inForce)
		}
	}
	if err := s.SetPreset("nope"); err == nil {
		t.Error("an unknown preset was taken")
	}
	if err := s.Switch("nope"); err == nil {
		t.Error("an unknown mode was taken")
	}
}

func TestSwitchesChangeTheTableButNeverLoosenAReadOnlyMode(t *testing.T) {
	s, err := mode.NewState("build", map[string]map[string]bool{
		"build": {"question": true, "bash": false}, "plan": {"write": true, "bash": false},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := s.Current(); !m.Has("question") || m.Has("bash") {
		t.Errorf("build: off %v", m.Disabled)
	}
	if err := s.Switch("plan"); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.Current(); m.Has("write") || m.Has("bash") || !m.Has("question") {
		t.Errorf("plan: off %v", m.Disabled)
	}
	if m, _ := mode.Lookup("build"); !m.Has("bash") {
		t.Error("a switch of one session changed the table itself")
	}
}

func TestASwitchedOffToolIsRefusedAndPlanRefusesWhateverWrites(t *testing.T) {
	one := func(k tool.Kind) []tool.Effect { return []tool.Effect{{Kind: k, Target: "x"}} }
	tests := []struct {
		mode, tool string
		effects    []tool.Effect
		allowed    bool
	}{
		{"build", "todowrite", one(tool.Note), false},
		{"build", "write", one(tool.Write), true},
		{"plan", "write", one(tool.Write), false},
		{"plan", "mcp__files__put", one(tool.Unknown), false},
		{"plan", "mcp__files__save", one(tool.Write), false},
		{"plan", "odd", nil, false},
		{"plan", "todowrite", one(tool.Note), true},
		{"plan", "fetch", one(tool.Net), true},
		{"plan", "bash", one(tool.Exec), true}, // what it runs is judged by others
		{"yolo", "question", one(tool.Note), false},
		{"yolo", "odd", nil, true},
	}
	for _, tt := range tests {
		m, err := mode.Lookup(tt.mode)
		if err != nil {
			t.Fatal(err)
		}
		o, err := m.Judge(t.Context(), policy.Case{Tool: tt.tool, Plan: tool.Plan{Effects: tt.effects}})
		if err != nil || (o.Verdict == policy.Allow) != tt.allowed {
			t.Errorf("%s: %s: %v (%s), %v; want allowed %v", tt.mode, tt.tool, o.Verdict, o, err, tt.allowed)
		}
	}
}

func TestAModeIsNarrowerIfNeitherItNorItsPresetIsWider(t *testing.T) {
	for _, tt := range []struct {
		now, mode, preset string
		want              bool
	}{
		{"build", "plan", "", true},
		{"build", "default", "", true},
		{"build", "build", "", true},
		{"build", "build", "strict", true},
		{"build", "auto-edit", "", false},
		{"build", "plan", "yolo", false},
		{"auto-edit", "yolo", "", false},
		{"yolo", "yolo", "auto-edit", true},
		{"plan", "build", "strict", false},
		{"plan", "plan", "balanced", false},
		{"yolo", "nope", "", false},
		{"yolo", "plan", "nope", false},
	} {
		if got := at(t, tt.now).IsNarrower(tt.mode, tt.preset); got != tt.want {
			t.Errorf("%s with %q from %s: %v", tt.mode, tt.preset, tt.now, got)
		}
	}
}

func TestPlanRemembersThatItBeganInYolo(t *testing.T) {
	for _, tt := range []struct {
		before []string
		want   bool
	}{
		{[]string{"yolo", "plan"}, true},
		{[]string{"yolo", "plan", "plan"}, true},
		{[]string{"yolo", "plan", "build", "plan"}, false},
		{[]string{"build", "plan"}, false},
		{[]string{"yolo"}, false},
	} {
		if got := at(t, tt.before...).FromYolo(); got != tt.want {
			t.Errorf("after %v: %v", tt.before, got)
		}
	}
}

func TestAForbiddenModeStaysClosed(t *testing.T) {
	s := at(t, "build")
	s.Forbid("yolo")
	if err := s.Switch("yolo"); err == nil {
		t.Error("the session went to yolo")
	}
	if err := s.SetPreset("yolo"); err == nil {
		t.Error("a preset led to yolo")
	}
	if m, _ := s.Current(); m.Name != "build" {
		t.Errorf("now in %s", m.Name)
	}
}

func TestToolsOfEveryModeComeFirst(t *testing.T) {
	for class, want := range map[tool.Class]int{tool.ClassReadFile: 0, tool.ClassEditFile: 1, tool.ClassEndPlan: 2} {
		if got := mode.Rank(class); got != want {
			t.Errorf("%v: %d, want %d", class, got, want)
		}
	}
}

func TestOnlyYoloIsUnchecked(t *testing.T) {
	for _, name := range mode.Names() {
		if m, _ := mode.Lookup(name); m.Unchecked != (name == mode.Yolo) {
			t.Errorf("%s: %v", name, m.Unchecked)
		}
	}
}
