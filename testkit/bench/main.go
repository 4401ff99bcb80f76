// Command bench measures what people feel: how soon the first request leaves,
// what a step costs early and late in a session, what a long stream costs, and
// how much memory a session takes, and what running one again costs. It runs the built program against a server
// of its own on loopback and compares with a baseline in the same run, because
// the machine it runs on may be busy. It also compares the tools with the
// programs people use for the same.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"coder/internal/host/program"
)

func main() {
	coder := flag.String("coder", "bin/coder", "the program to measure")
	rounds := flag.Int("rounds", 30, "how often to start it")
	tools := flag.Bool("tools", false, "measure only the tools, beside ripgrep and git")
	typing := flag.Bool("typing", false, "measure only typing at a terminal")
	flag.Parse()
	if err := bench(*coder, *rounds, *tools, *typing); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(coder string, rounds int, tools, typing bool) error {
	dir, err := os.MkdirTemp("", "coder-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &runner{dir: dir, server: newServer()}
	defer b.server.close()
	if tools {
		return b.tools(rounds)
	}
	if b.coder, err = filepath.Abs(coder); err != nil {
		return err
	}
	if typing {
		return errors.Join(b.typing(rounds), b.watching(rounds))
	}
	if b.baseline, err = buildBaseline(dir); err != nil {
		return err
	}
	for _, measure := range []func(int) error{b.startUp, b.steps, b.chunks, b.typing, b.watching, b.memory, b.replays,
		b.tools} {
		if err := measure(rounds); err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	dir, coder, baseline string
	server               *server
	n                    int
}

func buildBaseline(dir string) (string, error) {
	path := filepath.Join(dir, "baseline")
	cmd := program.ConfinedCommand("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./testkit/bench/baseline")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the baseline: %v\n%s", err, out)
	}
	return path, nil
}

// workspace makes a fresh folder with a file to read.
func (b *runner) workspace() (string, error) {
	b.n++
	dir := filepath.Join(b.dir, fmt.Sprint("ws", b.n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(strings.Repeat("a line of text\n", 40)), 0o644)
}

// run runs coder once and returns what it used.
func (b *runner) run(args ...string) (*syscall.Rusage, error) {
	ws, err := b.workspace()
	if err != nil {
		return nil, err
	}
	cmd := program.ConfinedCommand(b.coder, append([]string{"-p"}, args...)...)
	cmd.Dir = ws
	cmd.Env = []string{
		"HOME=" + b.dir, "PATH=" + os.Getenv("PATH"),
		"CODER_BASE_URL=" + b.server.url(), "CODER_API_KEY=k", "CODER_MODEL=m",
	}
	b.server.started = time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage), nil
}

// startUp compares process start to first request byte.
func (b *runner) startUp(rounds int) error {
	var ours, least []time.Duration
	for range rounds {
		b.server.play(text("hi"))
		if _, err := b.run("hello"); err != nil {
			return err
		}
		ours = append(ours, b.server.firstByte())
		b.server.play(text("hi"))
		b.server.started = time.Now()
		if err := program.ConfinedCommand(b.baseline, b.server.url()).Run(); err != nil {
			return err
		}
		least = append(least, b.server.firstByte())
	}
	fmt.Printf("start to first request byte   coder %s   baseline %s   difference of medians %.2f ms, of minima %.2f ms (limit 15)\n",
		spread(ours), spread(least), ms(median(ours)-median(least)), ms(slices.Min(ours)-slices.Min(least)))
	return nil
}

// steps measures the time between the last byte of a reply and the first byte
// of the next request, with one read call in between.
func (b *runner) steps(int) error {
	const n = 1010
	replies := make([]reply, 0, n+1)
	for i := range n {
		replies = append(replies, call(i))
	}
	b.server.play(append(replies, text("done"))...)
	if _, err := b.run("--max-steps", fmt.Sprint(n+1), "go"); err != nil {
		return err
	}
	gaps := b.server.gaps()
	early, late := gaps[40:60], gaps[990:1009]
	fmt.Printf("agent time per step           step 50: %s   step 1000: %s   ratio of medians %.2f (limit 1 ms)\n",
		spread(early), spread(late), float64(median(late))/float64(median(early)))
	return nil
}

// chunks measures the processor time of a reply in 20,000 pieces over that of
// a reply in one.
func (b *runner) chunks(int) error {
	var long, short []time.Duration
	for range 5 {
		b.server.play(many(20_000))
		used, err := b.run("go")
		if err != nil {
			return err
		}
		long = append(long, cpu(used))
		b.server.play(text("hi"))
		if used, err = b.run("go"); err != nil {
			return err
		}
		short = append(short, cpu(used))
	}
	fmt.Printf("processor time, 20,000 chunks %s   one chunk %s   difference of medians %.1f ms (limit 150)\n",
		spread(long), spread(short), ms(median(long)-median(short)))
	return nil
}

// memory measures the peak of a session of 300 steps.
func (b *runner) memory(int) error {
	var replies []reply
	for i := range 300 {
		replies = append(replies, call(i))
	}
	b.server.play(append(replies, text("done"))...)
	used, err := b.run("--max-steps", "400", "go")
	if err != nil {
		return err
	}
	fmt.Printf("peak memory, 300 steps        %.1f MB (limit 50)\n", float64(used.Maxrss)/1024)
	return nil
}

// replays measures what a step costs when a session is run again: that of one with
// many steps that read and write over that of one with few.
func (b *runner) replays(int) error {
	const few, many = 10, 310
	took := make(map[int][]time.Duration)
	for _, steps := range []int{few, many} {
		ws, err := b.workspace()
		if err != nil {
			return err
		}
		var script strings.Builder
		for i := range steps / 2 {
			fmt.Fprintf(&script,
				"call read {\"path\": \"a.txt\", \"offset\": %d}\n---\ncall write {\"path\": \"f%d.txt\", \"content\": \"file %d\"}\n---\n", i%40+1, i, i)
		}
		script.WriteString("say done\n")
		if err := os.WriteFile(ws+".script", []byte(script.String()), 0o644); err != nil {
			return err
		}
		coder := func(args ...string) error {
			cmd := program.ConfinedCommand(b.coder, args...)
			cmd.Dir, cmd.Env = ws, []string{"HOME=" + b.dir, "PATH=" + os.Getenv("PATH")}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
			}
			return nil
		}
		if err := coder("-p", "--auto-approve", "--max-steps", fmt.Sprint(steps+1), "--session-id", "s", "--script",
			ws+".script", "go"); err != nil {
			return err
		}
		for range 5 {
			started := time.Now()
			if err := coder("replay", "s", "--verify"); err != nil {
				return err
			}
			took[steps] = append(took[steps], time.Since(started))
		}
	}
	fmt.Printf("replay --verify               %d steps: %s   %d steps: %s   a step %.2f ms (limit 5)\n",
		few, spread(took[few]), many, spread(took[many]), ms(median(took[many])-median(took[few]))/(many-few))
	return nil
}

func cpu(u *syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(ds []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[len(sorted)/2]
}

func spread(ds []time.Duration) string {
	return fmt.Sprintf("%.2f ms (min %.2f)", ms(median(ds)), ms(slices.Min(ds)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
