package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/tool"
)

type jobArgs struct {
	ID   string `json:"id" doc:"which"`
	Wait int    `json:"wait,omitzero" doc:"how long"`
}

type noArgs struct{}

// crowd is two tools as one, beside a third.
func crowd(t *testing.T) tool.Set {
	t.Helper()
	s, err := tool.NewSet(named("read"), tool.Group{Name: "jobs", Doc: "Looks after jobs.", Members: []tool.Member{
		{Action: "list", Tool: tool.Func[noArgs]{Name: "jobs_list", Doc: "Lists."}},
		{Action: "stop", Tool: tool.Func[jobArgs]{Name: "job_stop", Doc: "Stops.", Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "KillShell"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func offered(s tool.Set) string {
	var names []string
	for spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	return strings.Join(names, " ")
}

func TestAGroupIsOfferedAsOneAndUnderstoodByEveryName(t *testing.T) {
	s := crowd(t)
	if got := offered(s); got != "read jobs" {
		t.Errorf("offered: %s", got)
	}
	if got := offered(s.InDialect(tool.Sema)); got != "read jobs_list KillShell" {
		t.Errorf("another agent has no groups, and is offered: %s", got)
	}
	found, _ := s.Lookup("jobs")
	g, ok := found.(tool.Group)
	if !ok {
		t.Fatalf("jobs is %T", found)
	}
	const want = `{"properties":{"action":{"enum":["list","stop"],"type":"string"},"id":{"description":"which","type":"string"},"wait":{"description":"how long","type":"integer"}},"required":["action"],"type":"object"}`
	if got := string(g.Spec().Schema); got != want {
		t.Errorf("schema %s\nwant   %s", got, want)
	}
	for _, tt := range []struct{ args, tool, rest string }{
		{`{"action":"stop","id":"job-1"}`, "job_stop", `{"id":"job-1"}`},
		{`{"action":"job_stop","id":"job-1"}`, "job_stop", `{"id":"job-1"}`},
		{`{"action":"List"}`, "jobs_list", `{}`},
		{``, "jobs_list", `null`}, {`{}`, "jobs_list", `{}`},
		{`{"id":"job-1"}`, "", ""}, {`{"action":"burn"}`, "", ""}, {`[]`, "", ""},
	} {
		found, rest, err := g.Select(json.RawMessage(tt.args))
		got := ""
		if err == nil {
			got = found.Spec().Name
		}
		if got != tt.tool || string(rest) != tt.rest {
			t.Errorf("%s: %s %s, %v; want %s %s", tt.args, got, rest, err, tt.tool, tt.rest)
		}
	}
	if _, err := g.Prepare(t.Context(), json.RawMessage(`{"action":"list"}`)); err == nil {
		t.Error("a group was prepared in place of its tool, and would be judged by its own name")
	}
	if _, err := tool.NewSet(g, named("job_stop")); err == nil {
		t.Error("a tool was taken twice, in a group and by itself")
	}
}

func TestToolsOfAGroupAreSwitchedOffOneByOneOrTogether(t *testing.T) {
	for _, tt := range []struct{ off, offered, actions string }{
		{"job_stop", "read jobs", `"enum":["list"]`},
		{"jobs_list job_stop", "read", ""},
		{"jobs", "read", ""},
	} {
		off := strings.Fields(tt.off)
		s := crowd(t).Without(func(name string) bool { return strings.Contains(" "+tt.off+" ", " "+name+" ") })
		if got := offered(s); got != tt.offered {
			t.Errorf("without %s: %s", tt.off, got)
		}
		for spec := range s.Specs() {
			if spec.Name == "jobs" && !strings.Contains(string(spec.Schema), tt.actions) {
				t.Errorf("without %s: %s", tt.off, spec.Schema)
			}
		}
		if !s.IsOff("job_stop") || s.IsOff("read") || s.IsOff("jobs_list") != (tt.actions == "") {
			t.Errorf("without %v: job_stop %v, jobs_list %v", off, s.IsOff("job_stop"), s.IsOff("jobs_list"))
		}
	}
}

func TestWhatIsUnspokenRuns(t *testing.T) {
	s := crowd(t).Unadvertised(func(name string) bool { return name != "read" })
	if got := offered(s); got != "read" {
		t.Errorf("offered: %s", got)
	}
	for _, name := range []string{"jobs", "job_stop", "KillShell"} {
		if _, ok := s.Lookup(name); !ok || s.IsOff(name) {
			t.Errorf("%s cannot be called", name)
		}
	}
}
