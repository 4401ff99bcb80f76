// Command bench measures what people feel: how soon the first request leaves, what a step costs early and late in a
// session, how soon the program ends, what a long stream costs and how much memory it takes. It runs the built program
// against a server of its own on loopback, in turn with a bare client (the floor) and, if given, an earlier build,
// because the machine may be busy. It fails on counts: bytes, requests, opened files, syncs. It also compares the tools
// with the programs people use for the same.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/host/program"
)

func main() {
	coder := flag.String("coder", "bin/coder", "the program to measure")
	base := flag.String("base", "", "an earlier build to compare it with")
	rounds := flag.Int("rounds", 7, "how often to repeat each measurement")
	onlyTable := flag.Bool("table", false, "measure only the table of the program, the earlier build and the floor")
	tools := flag.Bool("tools", false, "measure only the tools, beside ripgrep and git")
	typing := flag.Bool("typing", false, "measure only typing at a terminal")
	flag.Parse()
	if err := bench(*coder, *base, *rounds, *tools, *typing, *onlyTable); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(coder, base string, rounds int, tools, typing, onlyTable bool) error {
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
	if b.floor, err = buildBaseline(dir); err != nil {
		return err
	}
	if base != "" {
		if b.base, err = filepath.Abs(base); err != nil {
			return err
		}
	}
	if err := b.table(rounds); err != nil || onlyTable {
		return err
	}
	for _, measure := range []func(int) error{b.typing, b.watching, b.replays, b.tools} {
		if err := measure(rounds); err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	dir, coder string
	base       string // an earlier build, if given
	floor      string // the bare client
	server     *server
	n          int
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

func median(ds []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[len(sorted)/2]
}

func spread(ds []time.Duration) string {
	return fmt.Sprintf("%.2f ms (min %.2f)", ms(median(ds)), ms(slices.Min(ds)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
