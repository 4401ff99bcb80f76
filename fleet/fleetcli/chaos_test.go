//go:build linux

package fleetcli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/fleet/queue"
)

// chaos is a cluster and its workers, which die and sleep at random.
type chaos struct {
	*fleet
	rnd     *rand.Rand
	urls    string
	nodes   []*exec.Cmd
	upArgs  [][]string
	workers []*exec.Cmd

	kills, nodeKills, pauses int
}

// steps is how many calls with an effect on the world each task makes.
const steps = 3

// TestChaos hands tasks with effects to six workers of a cluster of three, kills
// workers and servers, one of these at a time, and lets workers sleep beyond their
// leases. In the end every task is done, each effect is there once, or a task says
// of one call that its outcome is unknown; every log is whole, nothing is left.
func TestChaos(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CODER_CHAOS"))
	if err != nil {
		t.Skip("make chaos N=300 runs it")
	}
	seed, err := strconv.ParseUint(os.Getenv("CODER_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	c := &chaos{fleet: bare(t), rnd: rand.New(rand.NewPCG(seed, 0))}
	c.cluster()
	effects := t.TempDir()
	script := c.script(chaosScript(effects))
	begun := time.Now()
	ids := strings.Fields(c.must("submit", "chaos", "--repo", c.repo, "--mode", "yolo", "--script", script, "--count", strconv.Itoa(n), "--max-attempts", "100", "--url", c.urls))
	if len(ids) != n {
		t.Fatalf("%d tasks were handed in, want %d", len(ids), n)
	}
	for i := range 6 {
		c.workers = append(c.workers, nil)
		c.hire(i)
	}
	tasks := c.rage(n)
	took := time.Since(begun)
	for i := range c.workers {
		_ = c.workers[i].Process.Signal(syscall.SIGINT)
	}
	for _, w := range c.workers {
		_ = w.Wait()
	}
	c.judge(tasks, effects)
	if out := c.must("verify", "--url", c.urls); !strings.Contains(out, fmt.Sprintf("logs checked: %d, incomplete: 0", n)) {
		t.Error(out)
	}
	c.nothingLeft()
	takeovers, unknown := 0, 0
	for _, task := range tasks {
		takeovers += task.Taken - 1
		if task.Result != nil {
			unknown += task.Result.Unknown
		}
	}
	t.Logf("%d tasks in %v; workers killed %d times, put to sleep %d times, servers killed %d times; tasks taken up again %d times; calls of unknown outcome %d",
		n, took.Round(time.Second), c.kills, c.pauses, c.nodeKills, takeovers, unknown)
}

// chaosScript plays a model that knows from what it last heard where it is.
func chaosScript(effects string) string {
	step := func(i int) string {
		return fmt.Sprintf("call bash {\"command\":\"D=${PWD%%/in/repo/work}; echo %[1]d >> %[2]s/${D##*/}; echo %[1]d >> step-%[1]d.txt; sleep 0.%[1]d; echo did-%[1]d\"}\n", i, effects)
	}
	text := "want outcome is unknown\nsay one step is unknown\nrepeat\n"
	for i := range steps {
		heard := "want chaos\n"
		if i > 0 {
			heard = fmt.Sprintf("want did-%d\n", i)
		}
		text += "else\n" + heard + step(i+1)
	}
	return text + "else\nsay all steps are done\n" // also to a worker that died after it heard so
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *chaos) cluster() {
	var urls, routes []string
	for range 3 {
		urls = append(urls, fmt.Sprintf("127.0.0.1:%d", freePort(c.t)))
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", freePort(c.t)))
	}
	c.urls = "nats://" + strings.Join(urls, ",nats://")
	for i := range 3 {
		c.upArgs = append(c.upArgs, []string{"up", "--slots", "0", "--node", fmt.Sprintf("n%d", i), "--listen", urls[i], "--cluster", routes[i], "--peers", strings.Join(routes, ","), "--replicas", "3", "--lease", "4s"})
		c.nodes = append(c.nodes, nil)
		c.begin(i)
		if i == 0 { // it makes the tokens
			for !c.has("route.token") {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if _, code := c.run("ps", "--url", c.urls); code == 0 {
			return
		}
		if time.Now().After(end) {
			c.t.Fatal("the cluster does not come up")
		}
	}
}

func (c *chaos) has(name string) bool {
	_, err := os.Stat(filepath.Join(c.home, ".coder", "fleet", name))
	return err == nil
}

// begin starts a server without waiting for it: it waits for the others.
func (c *chaos) begin(i int) {
	cmd := c.command(c.upArgs[i]...)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.nodes[i] = cmd
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func (c *chaos) hire(i int) {
	cmd := c.command("worker", "--slots", "2", "--name", fmt.Sprintf("w%d", i), "--url", c.urls, "--min-free-mb", "64", "--allow-yolo")
	log, err := os.OpenFile(filepath.Join(c.home, fmt.Sprintf("w%d.log", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.workers[i] = cmd
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// rage disturbs the fleet until all tasks have ended.
func (c *chaos) rage(n int) []queue.Task {
	var nodeDown = -1
	nodeNext := time.Now().Add(5 * time.Second)
	sleeping := make(map[int]time.Time)
	limit := time.Now().Add(time.Duration(n)*20*time.Second + 5*time.Minute)
	for looked := time.Now(); ; time.Sleep(time.Duration(300+c.rnd.IntN(900)) * time.Millisecond) {
		if time.Since(looked) > 3*time.Second {
			tasks, ended := c.look()
			if looked = time.Now(); ended == n {
				c.calm(sleeping, nodeDown)
				return tasks
			}
			c.t.Logf("%d of %d have ended", ended, n)
		}
		if time.Now().After(limit) {
			tasks, ended := c.look()
			for _, task := range tasks {
				if !task.Status.Ended() {
					c.t.Logf("%s is %s: %s", task.ID, task.Status, task.Reason)
				}
			}
			c.t.Fatalf("only %d of %d tasks have ended", ended, n)
		}
		for i, until := range sleeping {
			if time.Now().After(until) {
				c.signal(i, syscall.SIGCONT)
				delete(sleeping, i)
			}
		}
		i := c.rnd.IntN(len(c.workers))
		_, asleep := sleeping[i]
		switch dice := c.rnd.IntN(10); {
		case dice < 4 && !asleep:
			_ = c.workers[i].Process.Kill()
			_ = c.workers[i].Wait()
			c.kills++
			c.hire(i)
		case dice < 6 && !asleep && len(sleeping) < 3:
			c.signal(i, syscall.SIGSTOP)
			sleeping[i] = time.Now().Add(time.Duration(2+c.rnd.IntN(6)) * time.Second)
			c.pauses++
		case nodeDown >= 0 && time.Now().After(nodeNext):
			c.begin(nodeDown)
			nodeDown, nodeNext = -1, time.Now().Add(10*time.Second)
		case dice < 8 && nodeDown < 0 && time.Now().After(nodeNext):
			nodeDown = c.rnd.IntN(len(c.nodes))
			_ = c.nodes[nodeDown].Process.Kill()
			_ = c.nodes[nodeDown].Wait()
			c.nodeKills++
			nodeNext = time.Now().Add(3 * time.Second)
		}
	}
}

// calm lets everybody wake up.
func (c *chaos) calm(sleeping map[int]time.Time, nodeDown int) {
	for i := range sleeping {
		c.signal(i, syscall.SIGCONT)
	}
	if nodeDown >= 0 {
		c.begin(nodeDown)
	}
}

// signal reaches a worker and the tasks that it runs.
func (c *chaos) signal(i int, s syscall.Signal) {
	pid := c.workers[i].Process.Pid
	_ = syscall.Kill(pid, s)
	for child, parent := range processes() {
		if parent == pid {
			_ = syscall.Kill(child, s)
		}
	}
}

// processes are all there are, with their parents.
func processes() map[int]int {
	all := make(map[int]int)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		if fields := strings.Fields(rest); len(fields) > 1 {
			all[pid], _ = strconv.Atoi(fields[1])
		}
	}
	return all
}

func (c *chaos) look() (tasks []queue.Task, ended int) {
	cmd := c.command("ps", "--json", "--url", c.urls)
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &tasks) != nil {
		return nil, 0 // between two servers
	}
	for _, t := range tasks {
		if t.Status.Ended() {
			ended++
		}
	}
	return tasks, ended
}

// judge holds what the tasks say against what was done.
func (c *chaos) judge(tasks []queue.Task, effects string) {
	for _, task := range tasks {
		did := make(map[string]int)
		text, _ := os.ReadFile(filepath.Join(effects, task.ID))
		for line := range strings.Lines(string(text)) {
			did[strings.TrimSpace(line)]++
		}
		if task.Status != queue.Done || task.Result == nil {
			c.t.Errorf("%s is %s: %s", task.ID, task.Status, task.Reason)
			continue
		}
		for i := range steps {
			name := strconv.Itoa(i + 1)
			if did[name] > 1 || task.Result.Unknown == 0 && did[name] != 1 {
				c.t.Errorf("%s: step %s was done %d times, and %d calls are called unknown (%q)", task.ID, name, did[name], task.Result.Unknown, task.Result.Answer)
			}
		}
		if task.Result.Unknown == 0 {
			if task.Result.Answer != "all steps are done" || task.Result.Branch == "" {
				c.t.Errorf("%s says %q, branch %q", task.ID, task.Result.Answer, task.Result.Branch)
			}
			patch := c.must("result", task.ID, "--patch", "--url", c.urls)
			for i := range steps {
				if strings.Count(patch, fmt.Sprintf("b/step-%d.txt", i+1)) == 0 {
					c.t.Errorf("%s: the patch lacks the file of step %d", task.ID, i+1)
				}
			}
		}
	}
}

// nothingLeft looks for processes, folders and jobs that nobody needs any more.
func (c *chaos) nothingLeft() {
	for pid := range processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "HOME="+c.home) && strings.Contains(string(cmd), "__task") {
			c.t.Errorf("process %d is left: %q", pid, cmd)
		}
	}
	if out := c.must("metrics", "--url", c.urls); !strings.Contains(out, "jobs_waiting 0\n") || !strings.Contains(out, "jobs_taken 0\n") {
		c.t.Errorf("jobs are left: %s", out)
	}
	c.start("worker", "--slots", "1", "--name", "broom", "--url", c.urls) // sweeps as it starts
	work := filepath.Join(c.home, ".cache", "coder-fleet")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		entries, err := os.ReadDir(work)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(entries) == 1 { // the logs
			return
		}
		if time.Now().After(end) {
			for _, e := range entries {
				c.t.Errorf("left in the folder of the tasks: %s", e.Name())
			}
			return
		}
	}
}
