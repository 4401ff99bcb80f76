package risk_test

import (
	"encoding/json"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"coder/internal/host/program"
	"coder/internal/policy/risk"
)

const (
	cellVariable  = "CODER_SHELL_CELL"  // where the cell is made; we are to be in it
	seedVariable  = "CODER_SHELL_SEED"  // of the lines
	linesVariable = "CODER_SHELL_LINES" // how many are judged
	bombsVariable = "CODER_SHELL_BOMBS" // only lines that multiply are run
	fewLines      = 1500                // unless told otherwise
	progressEvery = 10 * time.Second
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
// written nothing, run no stand-in of a program that writes and left no process;
// one in which every command was told must have run no other, nor multiplied if
// nothing spoke against it. What is found is said at once, and how far it is
// from time to time.
func TestShellsDoNoMoreThanWasJudged(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	seed, count, refuse := os.Getenv(seedVariable), os.Getenv(linesVariable), t.Fatalf
	if count == "" {
		seed, count, refuse = "7", strconv.Itoa(fewLines), t.Skipf
	}
	findings, endless, begun := 0, 0, time.Now()
	for said := range fromCell(t, refuse, seedVariable+"="+seed, linesVariable+"="+count) {
		for _, d := range said.Unlawful {
			t.Errorf("%s: %q was judged to only read, and ran %v, wrote %v, left %d processes, started %d", d.Shell, d.Line, d.Marks, d.Wrote, d.Processes, d.Begun)
		}
		for _, d := range said.Unseen {
			t.Errorf("%s: %q ran %v, left %d processes, started %d, which was not told", d.Shell, d.Line, d.Marks, d.Processes, d.Begun)
		}
		for _, d := range said.Endless {
			t.Logf("%s: %q did not end", d.Shell, d.Line)
		}
		findings, endless = findings+len(said.Unlawful)+len(said.Unseen), endless+len(said.Endless)
		if said.Judged > 0 {
			t.Logf("%d lines judged, %v run, %d findings, %d did not end, %v", said.Judged, said.Ran, findings, endless, time.Since(begun).Round(time.Second))
		}
	}
}

// TestWhatMultipliesIsHeld: the machine keeps its processes whatever a line
// does, and the line is named, among others that do nothing.
func TestWhatMultipliesIsHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	held := make(map[string][]string)
	for said := range fromCell(t, t.Skipf, bombsVariable+"=1") {
		for _, d := range said.Unlawful {
			if !d.multiplied() || d.Processes > mostProcesses {
				t.Errorf("%s: %q had %d processes at once, %d in all", d.Shell, d.Line, d.Processes, d.Begun)
			}
			held[d.Shell] = append(held[d.Shell], d.Line)
		}
	}
	for _, s := range shellsIn() {
		if !slices.Equal(held[s.name], bombs) {
			t.Errorf("%s: %q are held, want %q", s.name, held[s.name], bombs)
		}
	}
}

// bombs start processes until there are no more.
var bombs = []string{"f() { f | f & }; f", "f() { while :; do (f) & done; }; f", "f() { (f); }; f"}

// fromCell is what a cell tells that is started with these variables.
func fromCell(t *testing.T, refuse func(string, ...any), env ...string) iter.Seq[told] {
	cmd := imprison(append(env, cellVariable+"="+t.TempDir())...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		refuse("no namespaces can be made here, so no shell is run: %v", err)
	}
	return func(yield func(told) bool) {
		for said := json.NewDecoder(out); ; {
			var next told
			if said.Decode(&next) != nil {
				break
			}
			if next.Failed != "" {
				_ = cmd.Wait()
				refuse("no root of its own can be made here, so no shell is run: %s", next.Failed)
			}
			if next.Broke != "" {
				t.Errorf("the cell broke: %s", next.Broke)
			}
			yield(next)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the cell: %v", err)
		}
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
	if os.Getenv(bombsVariable) != "" {
		explode(c)
		return
	}
	seed, _ := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	count, _ := strconv.Atoi(os.Getenv(linesVariable))
	f := &fuzzer{cell: c, lines: newLines(seed, commandVars(nil)), waiting: make(map[string][]string), told: make(map[string][]risk.Report), ran: make(map[string]int), endless: make(map[string]bool)}
	said := time.Now()
	for n := range count {
		if f.judge(f.lines.next()); time.Since(said) > progressEvery {
			said = time.Now()
			tell(told{Judged: n + 1, Ran: f.ran})
		}
	}
	f.flush(1)
	tell(told{Judged: count, Ran: f.ran})
}

// explode runs the bombs among lines that do nothing.
func explode(c *cell) {
	c.patience = time.Minute
	lines := []string{"true"}
	for _, b := range bombs {
		lines = append(lines, b, "true")
	}
	for _, s := range c.shells {
		deeds, err := c.run(s, lines, manner{})
		if err != nil {
			tell(told{Broke: err.Error()})
		}
		tell(told{Unlawful: deeds})
	}
}

// fuzzer judges lines and has shells run those that must be checked.
type fuzzer struct {
	cell    *cell
	lines   *lines
	waiting map[string][]string      // lines that only read, by shell
	told    map[string][]risk.Report // lines whose commands were all told, by shell
	ran     map[string]int
	endless map[string]bool // lines that are not run again
	batches int
}

func cellFacts(bash bool) risk.Facts {
	return risk.Facts{
		Exists:   func(p string) bool { return p == "/" || p == cellWork || path.Dir(p) == "/bin" },
		IsInside: func(p string) bool { return p == cellWork || strings.HasPrefix(p, cellWork+"/") },
		ReadGit:  func(string) ([]program.Setting, error) { return nil, nil }, Home: cellWork, Cwd: cellWork, Bash: bash,
	}
}

// runsFiles reports whether a shell is given files to run, which it also looks
// for where programs are; here those are scripts.
func runsFiles(r risk.Report) bool {
	return slices.ContainsFunc(r.Simple, func(c risk.Command) bool { return strings.HasSuffix(c.Name, "sh") && len(c.Args) > 0 })
}

// repeats reports whether a line may run the whole script again, or a loop
// that does not end by itself; and whether it was told to run itself.
func repeats(line string, r risk.Report) bool {
	return strings.Contains(line, "$0") || strings.Contains(line, "script") || strings.Contains(line, "while") ||
		slices.ContainsFunc(r.Findings, func(f risk.Finding) bool { return f.Text == risk.RecursionFinding })
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
		case f.endless[r.ShellLine()]:
		case r.ReadOnly:
			f.waiting[s.name] = append(f.waiting[s.name], r.ShellLine())
		case !r.Unknown && !repeats(line, r) && !runsFiles(r) && (strings.Contains(line, "touch") || strings.Contains(line, "rm")) && f.lines.chance(30):
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
			if deeds := f.run(s, lines, manner{real: f.batches%realEvery == 0}); len(deeds) > 0 {
				tell(told{Unlawful: deeds})
			}
		}
		if reports := f.told[s.name]; len(reports) >= enough {
			f.told[s.name] = nil
			f.unseen(s, reports)
		}
	}
}

// unseen finds lines that ran a command which their report does not name.
func (f *fuzzer) unseen(s shellIn, reports []risk.Report) {
	names, risky := make(map[string][]risk.Command), make(map[string]bool)
	var lines []string
	for _, r := range reports {
		lines = append(lines, r.ShellLine())
		names[r.ShellLine()] = append(names[r.ShellLine()], r.Simple...)
		risky[r.ShellLine()] = r.Level > risk.None
	}
	f.ran[s.name+", told"] += len(lines)
	for _, d := range f.run(s, lines, manner{writes: true}) {
		d.Marks = slices.DeleteFunc(d.Marks, func(m string) bool {
			return slices.ContainsFunc(names[d.Line], func(c risk.Command) bool { return path.Base(c.Name) == m })
		})
		if len(d.Marks) > 0 || d.multiplied() && !risky[d.Line] {
			tell(told{Unseen: []deed{d}})
		}
	}
}

// run says what lines did, and apart from that which had to be ended.
func (f *fuzzer) run(s shellIn, lines []string, how manner) (did []deed) {
	deeds, err := f.cell.run(s, lines, how)
	if err != nil {
		tell(told{Broke: err.Error()})
		os.Exit(1)
	}
	for _, d := range deeds {
		if d.Endless && !f.endless[d.Line] {
			f.endless[d.Line] = true
			tell(told{Endless: []deed{d}})
		}
		if d.did() {
			did = append(did, d)
		}
	}
	return did
}
