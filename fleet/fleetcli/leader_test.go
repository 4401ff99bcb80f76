//go:build linux

package fleetcli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/fleet/engine"
	"coder/fleet/queue"
)

// TestANodeThatLeadsDies kills the node of a cluster of three that leads the tasks, while a
// task runs. Who starts right then waits for the next leader: status, a task that is handed
// in, a worker. Both tasks are done, and the call under way once. Three times another node leads.
func TestANodeThatLeadsDies(t *testing.T) {
	if os.Getenv("CODER_CHAOS") == "" {
		t.Skip("make chaos runs it")
	}
	c := &chaos{fleet: bare(t)}
	c.cluster()
	url := []string{"--url", c.urls}
	c.hireAnother("w1")
	for round := range 3 {
		dir := t.TempDir()
		effects, goOn := filepath.Join(dir, "effects"), filepath.Join(dir, "go")
		script := c.script(fmt.Sprintf("want work on\ncall bash {\"command\":\"echo one >> %s; while ! test -e %s; do sleep 0.05; done\"}\nrepeat\nelse\nsay all done\n", effects, goOn))
		submit := append([]string{"submit", "work on", "--repo", c.repo, "--mode", "yolo", "--script", script}, url...)
		first := c.must(submit...)
		c.waitFor(effects, 1)
		node := c.leader("KV_coder-task")
		_ = c.nodes[node].Process.Kill()
		_ = c.nodes[node].Wait()
		var second string
		var all sync.WaitGroup
		for _, do := range []func(){
			func() { c.noFailure(append([]string{"status"}, url...)...) },
			func() { c.noFailure(append([]string{"ps"}, url...)...) },
			func() { second = c.noFailure(submit...) },
			func() { c.hireAnother(fmt.Sprint("next", round)) },
		} {
			all.Go(do)
		}
		all.Wait()
		if t.Failed() {
			return
		}
		if err := os.WriteFile(goOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{first, second} {
			if task := c.ended(id); task.Status != queue.Done || task.Taken != 1 || task.Result.Unknown != 0 {
				t.Errorf("task %s is %s, was taken up %d times: %+v", id, task.Status, task.Taken, task.Result)
			}
		}
		if got, err := os.ReadFile(effects); err != nil || string(got) != "one\none\n" {
			t.Errorf("the effects are %q, %v", got, err)
		}
		c.begin(node)
	}
	if got := c.must(append([]string{"verify"}, url...)...); !strings.Contains(got, "incomplete: 0") {
		t.Error(got)
	}
}

// leader is the node that leads a stream.
func (c *chaos) leader(stream string) int {
	c.t.Helper()
	dir := filepath.Join(c.home, ".coder", "fleet")
	link := engine.Link{URL: c.urls, TokenFile: engine.TokenFile(dir, engine.Admin), Role: engine.Admin}
	conn, js, err := link.Dial("test")
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s, err := js.Stream(c.t.Context(), stream)
		if err != nil {
			continue
		}
		var node int
		info := s.CachedInfo()
		if _, err := fmt.Sscanf(info.Cluster.Leader, "n%d", &node); err == nil && len(info.Cluster.Replicas) == 2 && info.Cluster.Replicas[0].Current && info.Cluster.Replicas[1].Current {
			return node
		}
	}
	c.t.Fatal("nobody leads ", stream)
	return 0
}

// noFailure runs a command that must not fail.
func (c *chaos) noFailure(args ...string) string {
	out, code := c.run(args...)
	if code != 0 {
		c.t.Errorf("%v: exit code %d: %s", args, code, out)
	}
	return strings.TrimSpace(out)
}

// hireAnother starts a worker.
func (c *chaos) hireAnother(name string) {
	c.start("worker", "--slots", "1", "--name", name, "--allow-yolo", "--min-free-mb", "64", "--url", c.urls)
}

// ended waits for the end of a task.
func (c *chaos) ended(id string) (task queue.Task) {
	c.t.Helper()
	for end := time.Now().Add(patience); !task.Status.Ended(); time.Sleep(100 * time.Millisecond) {
		if err := json.Unmarshal([]byte(c.must("result", id, "--json", "--url", c.urls)), &task); err != nil || time.Now().After(end) {
			c.t.Fatalf("task %s is %s, %v", id, task.Status, err)
		}
	}
	return task
}
