package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"coder/internal/host/program"
)

// agent is one of the programs in the table.
type agent struct {
	name, path string
	bare       bool // the floor: it takes an address and a prompt
}

// played is one run of an agent.
type played struct {
	started, ended time.Time
	usage          *syscall.Rusage
	begun, said    []time.Time // first byte of each request, last byte of each reply
	gaps           []time.Duration
	bytes, others  int
	tree           int64 // the most memory of all its processes, if it was watched
}

// scene is what an agent is run for: the replies, and coder's flags.
type scene struct {
	replies []reply
	flags   []string
	watched bool // measure the memory of all processes
}

// play runs an agent once in a new workspace. trace, if set, is the file for the system calls.
func (b *runner) play(a agent, s scene, trace string) (p played, err error) {
	ws, err := b.workspace()
	if err != nil {
		return p, err
	}
	b.server.play(s.replies...)
	args := []string{a.path, b.server.url(), "go"}
	if !a.bare {
		args = slices.Concat([]string{a.path, "-p"}, s.flags, []string{"go"})
	}
	if trace != "" {
		args = append([]string{installed("strace"), "-f", "-qq", "-e", "trace=" + tracedCalls, "-o", trace, "--"}, args...)
	}
	cmd := program.ConfinedCommand(args[0], args[1:]...)
	cmd.Dir = ws
	cmd.Env = []string{
		"HOME=" + filepath.Join(b.dir, a.name), "PATH=" + os.Getenv("PATH"), // a build may not know another's files
		"CODER_BASE_URL=" + b.server.url(), "CODER_API_KEY=k", "CODER_MODEL=m",
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return p, err
	}
	stop := func() int64 { return 0 }
	if s.watched {
		stop = watchMemory(cmd.Process.Pid)
	}
	err = cmd.Wait()
	p.ended, p.tree = time.Now(), stop()
	if err != nil {
		return p, fmt.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out.String())
	}
	p.usage = cmd.ProcessState.SysUsage().(*syscall.Rusage)
	p.gaps = b.server.gaps()
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	p.begun, p.said, p.bytes, p.others = b.server.begun, b.server.ended, b.server.bytes, b.server.others
	if len(b.server.replies) > 0 {
		return p, fmt.Errorf("%s took %d replies too few", a.name, len(b.server.replies))
	}
	return p, nil
}

// figure is a row of the table: what is read off one run.
type figure struct {
	name string
	unit string
	aim  float64 // of the row, for the reader
	of   func(played) float64
	most float64 // if not zero, the bench fails above it: for counts, which are the same on every machine
}

// measurement is one scene and its rows.
type measurement struct {
	scene
	rounds  int // at most
	noFloor bool
	figures []figure
}

// at returns the median gap around a step.
func at(step int) func(played) float64 {
	return func(p played) float64 {
		from, to := max(0, step-10), min(len(p.gaps), step+10)
		return ms(median(p.gaps[from:to]))
	}
}

func lastGap(p played) float64 { return ms(p.gaps[len(p.gaps)-1]) }

func processorTime(p played) float64 {
	return ms(time.Duration(p.usage.Utime.Nano() + p.usage.Stime.Nano()))
}

func peak(p played) float64 { return float64(p.usage.Maxrss) / 1024 }

// reads is n steps, each of one read, and an answer.
func reads(n int) []reply {
	replies := make([]reply, 0, n+1)
	for i := range n {
		replies = append(replies, read(i))
	}
	return append(replies, text("done"))
}

// shells is n steps, each of one command, and an answer.
func shells(n int) []reply {
	replies := make([]reply, 0, n+1)
	for i := range n {
		replies = append(replies, calls(i, 1, "bash", `{"command":"true %d"}`))
	}
	return append(replies, text("done"))
}

// measurements are the rows of the table, in its order.
func measurements(settings func(string) string) []measurement {
	unconfined := []string{"--auto-approve", "--config", settings(`{"safety": {"sandbox": "off"}}`)}
	confined := []string{"--auto-approve"}
	return []measurement{
		{scene: scene{replies: []reply{text("hi")}}, rounds: 50, figures: []figure{
			{name: "start to first request", unit: "ms", aim: 7,
				of: func(p played) float64 { return ms(p.begun[0].Sub(p.started)) }},
			{name: "one-step turn", unit: "ms", aim: 13, of: func(p played) float64 { return ms(p.ended.Sub(p.started)) }},
			{name: "last byte to exit", unit: "ms", aim: 3, of: func(p played) float64 { return ms(p.ended.Sub(p.said[0])) }},
			{name: "processor time of it", unit: "ms", of: processorTime},
			{name: "first request", unit: "bytes", aim: 12_000, most: 12_000,
				of: func(p played) float64 { return float64(p.bytes) }},
			{name: "requests beside it", most: mostProbes, of: func(p played) float64 { return float64(p.others) }},
		}},
		{scene: scene{replies: []reply{text("hi")}, flags: []string{"--config", settings(`{"runtime": {"tools": "lean"}}`)}},
			rounds: 1, noFloor: true, figures: []figure{
				{name: "first request, lean", unit: "bytes", aim: 4_000, most: 5_000,
					of: func(p played) float64 { return float64(p.bytes) }},
			}},
		{scene: scene{replies: reads(320), flags: []string{"--max-steps", "400"}}, figures: []figure{
			{name: "gap per read, step 10", unit: "ms", aim: 0.45, of: at(10)},
			{name: "gap per read, step 50", unit: "ms", aim: 0.45, of: at(50)},
			{name: "gap per read, step 300", unit: "ms", aim: 0.6, of: at(300)},
			{name: "processor time, 320 reads", unit: "ms", of: processorTime},
			{name: "peak memory, 320 reads", unit: "MB", of: peak},
		}},
		{scene: scene{replies: reads(50), flags: []string{"--max-steps", "60"}}, figures: []figure{
			{name: "peak memory, 50 reads", unit: "MB", aim: 20, of: peak},
		}},
		{scene: scene{replies: shells(40), flags: confined}, figures: []figure{
			{name: "gap per true, confined", unit: "ms", aim: 4.5, of: at(25)},
			{name: "processor time, 40 of them", unit: "ms", of: processorTime},
		}},
		{scene: scene{replies: shells(40), flags: unconfined}, figures: []figure{
			{name: "gap per true, unconfined", unit: "ms", aim: 3, of: at(25)},
			{name: "processor time, 40 of them", unit: "ms", of: processorTime},
		}},
		{scene: scene{replies: []reply{read(0), calls(1, 8, "read", `{"path":"a.txt","limit":%d}`), text("done")}},
			rounds:  20,
			figures: []figure{{name: "8 reads", unit: "ms", aim: 2, of: lastGap}}},
		{scene: scene{replies: []reply{calls(0, 1, "bash", `{"command":"true %d"}`),
			calls(1, 8, "bash", `{"command":"sleep 0.5 # %d"}`), text("done")}, flags: confined, watched: true},
			figures: []figure{
				{name: "8 times sleep 0.5", unit: "ms", aim: 535, of: lastGap},
				{name: "memory of all processes, 8 of them", unit: "MB", aim: 60,
					of: func(p played) float64 { return float64(p.tree) / (1 << 20) }},
			}},
		{scene: scene{replies: []reply{many(20_000)}}, figures: []figure{
			{name: "processor time, 20,000 chunks", unit: "ms", aim: 100, of: processorTime},
		}},
	}
}

// mostProbes allows no request beside the first in a run after another: what a server is and takes is asked once.
const mostProbes = 0.5

// table compares the program with the earlier build and the floor, and fails if a count is over its bound.
func (b *runner) table(rounds int) error {
	agents := []agent{{name: "floor", path: b.floor, bare: true}, {name: "coder", path: b.coder}}
	if b.base != "" {
		agents = slices.Insert(agents, 1, agent{name: "base", path: b.base})
	}
	n := 0
	settings := func(text string) string {
		n++
		path := filepath.Join(b.dir, fmt.Sprint("settings", n, ".json"))
		_ = os.WriteFile(path, []byte(text), 0o600) // without it, the first run says so
		return path
	}
	fmt.Printf("%-36s", "least (median) of interleaved runs")
	for _, a := range agents {
		fmt.Printf(" %20s", a.name)
	}
	fmt.Println("   × floor  × base      aim")
	var failed error
	for _, m := range measurements(settings) {
		failed = errors.Join(failed, b.measure(m, agents, rounds))
	}
	return errors.Join(failed, b.counts(agents))
}

// measure runs a scene with each agent in turn, and prints its rows.
func (b *runner) measure(m measurement, agents []agent, rounds int) (failed error) {
	runs := make([][]played, len(agents))
	for range min(rounds, cmp.Or(m.rounds, rounds)) {
		for i, a := range agents {
			if a.bare && m.noFloor {
				continue
			}
			p, err := b.play(a, m.scene, "")
			if err != nil {
				return err
			}
			runs[i] = append(runs[i], p)
		}
	}
	for _, f := range m.figures {
		least, middle := make([]float64, len(agents)), make([]float64, len(agents))
		for i := range agents {
			values := make([]float64, 0, len(runs[i]))
			for _, p := range runs[i] {
				values = append(values, f.of(p))
			}
			if slices.Sort(values); len(values) > 0 {
				least[i], middle[i] = values[0], values[len(values)/2]
			}
		}
		failed = errors.Join(failed, f.print(least, middle))
	}
	return failed
}

// print prints a row. The last of the values are coder's, the first the floor's.
func (f figure) print(least, middle []float64) error {
	fmt.Printf("%-36s", f.name+" "+f.unit)
	for i := range least {
		fmt.Printf(" %20s", fmt.Sprintf("%.2f (%.2f)", least[i], middle[i]))
	}
	ours := least[len(least)-1]
	ratio := func(to float64) string {
		if to == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", ours/to)
	}
	base := "-"
	if len(least) == 3 {
		base = ratio(least[1])
	}
	fmt.Printf("   %7s %7s  %7g\n", ratio(least[0]), base, f.aim)
	if f.most > 0 && ours > f.most {
		return fmt.Errorf("%s: %g, at most %g", f.name, ours, f.most)
	}
	return nil
}

// tracedCalls are the system calls that are counted.
const tracedCalls = "open,openat,fsync,fdatasync,execve,inotify_init1"

// counts counts system calls of a one-step turn, and of one more read or command. They are the same on every machine.
func (b *runner) counts(agents []agent) (failed error) {
	if installed("strace") == "" {
		fmt.Println("files opened, syncs, programs: strace is not installed")
		return nil
	}
	of := func(a agent, s scene, call string) (float64, error) {
		trace := filepath.Join(b.dir, "trace")
		if _, err := b.play(a, s, trace); err != nil {
			return 0, err
		}
		text, err := os.ReadFile(trace)
		n := 0
		for line := range strings.Lines(string(text)) {
			_, rest, _ := strings.Cut(line, " ") // the process
			if name, _, isCall := strings.Cut(strings.TrimSpace(rest), "("); isCall && strings.HasPrefix(name, call) {
				n++
			}
		}
		return float64(n), err
	}
	one := scene{replies: []reply{text("hi")}}
	steps := func(make func(int) []reply, flags ...string) [2]scene {
		return [2]scene{{replies: make(5), flags: flags}, {replies: make(15), flags: flags}}
	}
	read, shell := steps(reads), steps(shells, "--auto-approve")
	for _, row := range []struct {
		name string
		most float64
		few  scene
		many scene // if set, a tenth of the difference is counted
		call string
	}{
		{"files opened, one-step turn", mostOpened, one, scene{}, "open"},
		{"syncs, one-step turn", mostSyncs, one, scene{}, "f"},
		{"programs started, one-step turn", 1, one, scene{}, "execve"},
		{"files opened, one more read", 3, read[0], read[1], "open"},
		{"syncs, one more read", 0.1, read[0], read[1], "f"},
		{"syncs, one more command", mostSyncsOfACommand, shell[0], shell[1], "f"},
		{"files opened, one more command", mostOpenedByACommand, shell[0], shell[1], "open"},
		{"programs started, one more command", 2, shell[0], shell[1], "execve"},
	} {
		values := make([]float64, len(agents))
		for i, a := range agents {
			n, err := of(a, row.few, row.call)
			if err == nil && row.many.replies != nil {
				var more float64
				more, err = of(a, row.many, row.call)
				n = (more - n) / 10
			}
			if err != nil {
				return err
			}
			values[i] = n
		}
		failed = errors.Join(failed, figure{name: row.name, aim: row.most, most: row.most}.print(values, values))
	}
	return failed
}

// The most that coder may do. They are what it does, and a little more.
const (
	mostOpened           = 60
	mostSyncs            = 8
	mostSyncsOfACommand  = 0.5 // one that only reads
	mostOpenedByACommand = 40
)

// watchMemory watches a process and all below it until the returned function is called, which returns the most memory
// they had together: what each has for itself, and the largest part that can be shared.
func watchMemory(pid int) (stop func() int64) {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, memoryOf(pid))
			select {
			case <-done:
				result <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(done); return <-result }
}

func memoryOf(pid int) (sum int64) {
	shared := int64(0)
	for _, p := range append(below(pid), pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p)) // it may have ended
		fields := strings.Fields(string(text))
		if len(fields) < 3 {
			continue
		}
		resident, _ := strconv.ParseInt(fields[1], 10, 64)
		common, _ := strconv.ParseInt(fields[2], 10, 64)
		sum += resident - common
		shared = max(shared, common)
	}
	return (sum + shared) * int64(os.Getpagesize())
}

// below returns the processes that a process started, and those that they started.
func below(pid int) (all []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // it may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), below(child)...)
			}
		}
	}
	return all
}
