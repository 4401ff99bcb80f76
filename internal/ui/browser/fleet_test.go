package browser_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"coder/internal/core/uip"
	"coder/internal/ui/browser"
)

// fleet is a site with a fleet of one worker and three tasks, one of which asks.
func fleetSite(t *testing.T) (*site, *browser.Fleet) {
	s := newSite(t)
	f := &browser.Fleet{Time: noon, Counts: map[string]int{"running": 1, "waiting": 1, "done": 7}, Slots: 4, Busy: 1, CostUSD: 1.25, OldestWait: 90}
	f.Queue.Waiting = 3
	f.Workers = []browser.FleetWorker{{Name: "<b>worker</b>", Slots: 4, Busy: 1, State: "ready", Seen: noon}}
	ask := edit("ui_1").Request
	for id, status := range map[string]string{"task_1": "running", "task_2": "waiting", "task_3": "done"} {
		one := browser.FleetTask{ID: id, Status: status, Created: noon, Reason: "<script>why</script>"}
		one.Spec.Prompt, one.Spec.Repo = "<script>do</script>", "/repo"
		if status == "waiting" {
			one.Question = &ask
		}
		f.Tasks = append(f.Tasks, one)
	}
	s.fleet = browser.FleetBackend{
		Configured: func() bool { return true },
		State:      func(context.Context) (browser.Fleet, error) { return *f, s.fails },
		Answer:     func(_ context.Context, a uip.Response) error { return s.did("answer " + a.ID + " " + a.Option) },
		Cancel:     func(_ context.Context, task string) error { return s.did("cancel " + task) },
	}
	return s, f
}

// TestAFleetIsShown where there is one, and nowhere else.
func TestAFleetIsShown(t *testing.T) {
	s, _ := fleetSite(t)
	status, page := s.get("/place/fleet")
	for _, want := range []string{"3 waiting for a worker", "1 of 4 slots", "$1.2500", "&lt;b&gt;worker", "&lt;script&gt;do", "/fleet/answer/ui_1", "/fleet/cancel/task_1", "longest wait for a person: ", "<title>(1) "} {
		if status != 200 || !strings.Contains(page, want) {
			t.Errorf("%d: no %s in\n%s", status, want, page)
		}
	}
	for _, not := range []string{"<script>d", "<script>w", "<b>", "/fleet/cancel/task_3"} {
		if strings.Contains(page, not) {
			t.Errorf("%s in\n%s", not, page)
		}
	}
	if _, home := s.get("/place/"); !strings.Contains(home, `href="/place/fleet"`) {
		t.Error("nothing leads there")
	}
	without := newSite(t)
	if _, home := without.get("/place/"); strings.Contains(home, "fleet") {
		t.Errorf("what leads there:\n%s", home)
	}
	for _, path := range []string{"/place/fleet"} {
		if status, page := without.get(path); status != 404 || !strings.Contains(page, "no fleet here") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if status, _ := without.post("/place/fleet/cancel/task_1", url.Values{}); status != 404 || without.done() != "" {
		t.Errorf("%d %s", status, without.done())
	}
}

// TestAFleetIsAnsweredAndStopped by what was shown, and by nothing else.
func TestAFleetIsAnsweredAndStopped(t *testing.T) {
	s, f := fleetSite(t)
	_, page := s.get("/place/fleet")
	digest := shown.FindStringSubmatch(page)[1]
	for path, form := range map[string]url.Values{
		"/answer/ui_1":   {"option": {"approve"}, "shown": {"another"}},
		"/answer/ui_2":   {"option": {"approve"}, "shown": {digest}},
		"/answer/task_1": {"option": {"approve"}, "shown": {digest}},
		"/cancel/--all":  {},
		"/cancel/task_9": {},
	} {
		if status, _ := s.post("/place/fleet"+path, form); status < 400 || s.done() != "" {
			t.Errorf("%s: %d %s", path, status, s.done())
		}
	}
	s.post("/place/fleet/answer/ui_1", url.Values{"option": {"approve"}, "shown": {digest}})
	s.post("/place/fleet/cancel/task_1", url.Values{})
	if want := "answer ui_1 approve, cancel task_1"; s.done() != want {
		t.Errorf("%q, not %q", s.done(), want)
	}
	for i := range f.Tasks {
		f.Tasks[i].Question = nil
	}
	if status, page := s.post("/place/fleet/answer/ui_1", url.Values{"option": {"reject"}, "shown": {digest}}); status != 409 || !strings.Contains(page, "already answered") {
		t.Errorf("%d\n%s", status, page)
	}
	s.mu.Lock()
	s.fails = &browser.UserError{Status: 502, Text: "the fleet cannot be reached"}
	s.mu.Unlock()
	if status, page := s.get("/place/fleet"); status != 502 || !strings.Contains(page, "cannot be reached") {
		t.Errorf("%d\n%s", status, page)
	}
}
