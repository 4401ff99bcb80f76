package risk_test

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/gitsafe"
	"coder/internal/policy/risk"
)

const (
	cellVariable  = "CODER_SHELL_CELL"  // where the cell is made; we are to be in it
	seedVariable  = "CODER_SHELL_SEED"  // of the lines
	linesVariable = "CODER_SHELL_LINES" // how many are judged
	fewLines      = 1500                // unless told otherwise
	batchLines    = 200
	realEvery     = 8 // batches, of which one runs real programs
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(cellVariable); dir != "" {
		inCell(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestShellsDoNoMoreThanWasJudged makes up command lines and runs them in real
// shells, in a root of their own. A line that was judged to only read must have
// written nothing and run no stand-in of a program that writes; one in which
// every command was told must have run no other.
func TestShellsDoNoMoreThanWasJudged(t *testing.T) {
	seed, count, refuse := os.Getenv(seedVariable), os.Getenv(linesVariable), t.Fatalf
	if count == "" {
		seed, count, refuse = "7", strconv.Itoa(fewLines), t.Skipf
	}
	cmd := imprison(cellVariable+"="+t.TempDir(), seedVariable+"="+seed, linesVariable+"="+count)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		refuse("no namespaces can be made here, so no shell is run: %v", err)
	}
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 16<<20)
	for _, said := range hear(scan) {
		switch {
		case said.Failed != "":
			refuse("no root of its own can be made here, so no shell is run: %s", said.Failed)
		case said.Broke != "":
			t.Errorf("the cell broke: %s", said.Broke)
		case said.Judged > 0:
			t.Logf("%d lines judged, %v run", said.Judged, said.Ran)
		}
		for _, d := range said.Unlawful {
			t.Errorf("%s: %q was judged to only read, and ran %v, wrote %v", d.Shell, d.Line, d.Marks, d.Wrote)
		}
		for _, d := range said.Unseen {
			t.Errorf("%s: %q ran %v, which was not told", d.Shell, d.Line, d.Marks)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the cell: %v", err)
	}
}

func TestNoShellIsRunOnTheMachineItself(t *testing.T) {
	for _, outside := range []string{"", namespaces(), "user:[1] mnt:[1]"} {
		t.Setenv(outsideVariable, outside)
		if c, err := enter(t.TempDir()); err == nil || c != nil {
			t.Fatal("the machine was taken for a cell")
		}
	}
	t.Setenv(outsideVariable, namespaces())
	if apart() {
		t.Error("the namespaces of the machine count as others")
	}
}

// inCell judges and runs lines.
func inCell(dir string) {
	c, err := enter(dir)
	if err != nil {
		tell(told{Failed: err.Error()})
		return
	}
	seed, _ := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	count, _ := strconv.Atoi(os.Getenv(linesVariable))
	f := &fuzzer{cell: c, lines: newLines(seed, commands(nil)), waiting: make(map[string][]string), told: make(map[string][]risk.Report), ran: make(map[string]int)}
	for n := range count {
		if f.judge(f.lines.next()); n%100_000 == 99_999 {
			fmt.Fprintf(os.Stderr, "%d lines judged, %v run\n", n+1, f.ran)
		}
	}
	f.flush(1)
	tell(told{Judged: count, Ran: f.ran})
}

// fuzzer judges lines and has shells run those that must be checked.
type fuzzer struct {
	cell    *cell
	lines   *lines
	waiting map[string][]string      // lines that only read, by shell
	told    map[string][]risk.Report // lines whose commands were all told, by shell
	ran     map[string]int
	batches int
}

func cellFacts(bash bool) risk.Facts {
	return risk.Facts{
		Exists:   func(p string) bool { return p == "/" || p == cellWork || path.Dir(p) == "/bin" },
		IsInside: func(p string) bool { return p == cellWork || strings.HasPrefix(p, cellWork+"/") },
		ReadGit:  func(string) ([]gitsafe.Setting, error) { return nil, nil }, Home: cellWork, Cwd: cellWork, Bash: bash,
	}
}

// runsFiles reports whether a shell is given files to run, which it also looks
// for where programs are; here those are scripts.
func runsFiles(r risk.Report) bool {
	return slices.ContainsFunc(r.Simple, func(c risk.Command) bool { return strings.HasSuffix(c.Name, "sh") && len(c.Args) > 0 })
}

// multiplies reports whether a line could start itself over and over.
func multiplies(line string) bool {
	return strings.Contains(line, "()") || strings.Contains(line, "function") || strings.Contains(line, "$0") || strings.Contains(line, "script") || strings.Contains(line, "while")
}

func (f *fuzzer) judge(line string) {
	if strings.ContainsRune(line, 0) || len(line) > 4096 {
		return
	}
	any, bash := risk.Analyse(line, cellFacts(false)), risk.Analyse(line, cellFacts(true))
	for _, s := range f.cell.shells {
		r := any
		if s.name == "bash" {
			r = bash
		}
		switch {
		case r.ReadOnly:
			f.waiting[s.name] = append(f.waiting[s.name], r.Runs())
		case !r.Unknown && !multiplies(line) && !runsFiles(r) && (strings.Contains(line, "touch") || strings.Contains(line, "rm")) && f.lines.chance(30):
			f.told[s.name] = append(f.told[s.name], r)
		}
	}
	f.flush(batchLines)
}

// flush runs what is waiting once there is enough of it.
func (f *fuzzer) flush(enough int) {
	for _, s := range f.cell.shells {
		if lines := f.waiting[s.name]; len(lines) >= enough {
			f.waiting[s.name] = nil
			f.ran[s.name] += len(lines)
			f.batches++
			deeds, err := f.cell.run(s, lines, f.batches%realEvery == 0)
			if err != nil {
				tell(told{Broke: err.Error()})
				os.Exit(1)
			}
			tell(told{Unlawful: deeds})
		}
		if reports := f.told[s.name]; len(reports) >= enough {
			f.told[s.name] = nil
			f.unseen(s, reports)
		}
	}
}

// unseen finds lines that ran a command which their report does not name.
func (f *fuzzer) unseen(s shellIn, reports []risk.Report) {
	names := make(map[string][]risk.Command)
	var lines []string
	for _, r := range reports {
		lines = append(lines, r.Runs())
		names[r.Runs()] = append(names[r.Runs()], r.Simple...)
	}
	f.ran[s.name+", told"] += len(lines)
	deeds, err := f.cell.run(s, lines, false)
	if err != nil {
		tell(told{Broke: err.Error()})
		os.Exit(1)
	}
	for _, d := range deeds {
		d.Marks = slices.DeleteFunc(d.Marks, func(m string) bool {
			return slices.ContainsFunc(names[d.Line], func(c risk.Command) bool { return path.Base(c.Name) == m })
		})
		if len(d.Marks) > 0 {
			tell(told{Unseen: []deed{d}})
		}
	}
}
