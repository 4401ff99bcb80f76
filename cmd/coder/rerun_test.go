package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/patch"
	"coder/internal/model/scripted"
	"coder/internal/policy/confine"
	"coder/internal/report/provenance"
)

// TestRandomSessionsComeToTheSameAgain: of sessions made by chance, in which files
// are written, edited, appended to and read, people edit in between, go back and
// take that back, every moment is what a model of it says, and running them again,
// whole or up to any record, comes to the same. CODER_TEST_SESSIONS says how many.
func TestRandomSessionsComeToTheSameAgain(t *testing.T) {
	sessions := 6
	if n, err := strconv.Atoi(os.Getenv("CODER_TEST_SESSIONS")); err == nil {
		sessions = n
	}
	for seed := range sessions {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			c := newChance(t, uint64(seed))
			c.live()
			c.checkMoments()
			c.checkAgain()
		})
	}
}

// chance is a session made by chance, and the model of it: what the files are,
// what calls left in them, and what was said.
type chance struct {
	t    *testing.T
	r    *rand.Rand
	app  *app.Workspace
	ws   string
	goes bool // back, rather than people editing in between

	files  map[string]string // what is there
	known  map[string]bool   // to the model, as it is
	left   map[string]*string
	byHand map[string]bool // edited by a person
	made   int
	turns  []past               // in force
	gone   []past               // by the last return
	queue  []map[string]*string // what each call that is to come leaves
	script scripted.Script

	moments map[uint64]map[string]*string // what calls had left, by the record of the last
	records uint64
}

// past is a turn that was.
type past struct {
	said          string
	before, after map[string]string
}

func newChance(t *testing.T, seed uint64) *chance {
	p := newProgram(t)
	c := &chance{
		t: t, r: rand.New(rand.NewPCG(seed, 7)), ws: p.ws, files: make(map[string]string), known: make(map[string]bool),
		left: make(map[string]*string), byHand: make(map[string]bool), moments: make(map[uint64]map[string]*string),
	}
	c.goes = c.r.IntN(2) == 0
	for i := range 2 {
		name := fmt.Sprintf("old%d.txt", i)
		c.files[name] = fmt.Sprintf("line one of %d\nline two\n", i)
		p.file(name, c.files[name])
	}
	c.app = p.app(app.Options{Overrides: app.Overrides{AutoApprove: true}})
	c.app.Config.Storage.Fsync = "never"
	return c
}

// live lets the session happen, in one process or two.
func (c *chance) live() {
	turns := 2 + c.r.IntN(4)
	inputs := make([]func() (string, func()), 0, 2*turns)
	for range turns {
		inputs = append(inputs, c.turn)
		if c.goes && c.r.IntN(2) == 0 {
			inputs = append(inputs, c.back)
			if c.r.IntN(2) == 0 {
				inputs = append(inputs, c.forth)
			}
		}
	}
	half := c.r.IntN(len(inputs) + 1)
	for i, part := range [][]func() (string, func()){inputs[:half], inputs[half:]} {
		if len(part) > 0 {
			c.process(part, i > 0 && half > 0)
		}
	}
}

func (c *chance) process(inputs []func() (string, func()), resume bool) {
	c.t.Helper()
	ctx := context.Background()
	which := app.SessionChoice{NewID: "s"}
	if resume {
		which = app.SessionChoice{ResumeID: "s"}
	}
	play := &scripts{}
	c.app.ScriptedProvider = play
	sup := c.app.NewSupervisor(uip.NoInteractor, app.Screen{})
	sink := event.SinkFunc(func(_ context.Context, r event.Record) error { c.watch(r); return nil })
	s, err := c.app.OpenSession(ctx, sup, which, sink)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, input := range inputs {
		c.script = nil
		words, done := input()
		if words == "" {
			continue
		}
		play.Provider = scripted.New(c.script, scripted.Options{})
		if _, err := s.RunText(ctx, words, sink); err != nil {
			c.t.Fatalf("%s: %v", words, err)
		}
		done()
		if len(c.queue) > 0 {
			c.t.Fatalf("%s: %d calls were not made", words, len(c.queue))
		}
		if !c.goes && c.r.IntN(2) == 0 {
			c.human()
		}
		for name, text := range c.files {
			if got, err := os.ReadFile(filepath.Join(c.ws, name)); err != nil || string(got) != text {
				c.t.Fatalf("after %q %s holds %q (%v), and the model says %q", words, name, got, err, text)
			}
		}
	}
	if err := s.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// scripts plays one script after the other.
type scripts struct{ *scripted.Provider }

// watch takes down what a call that is over left.
func (c *chance) watch(r event.Record) {
	if r.Seq == 0 {
		return
	}
	c.records = r.Seq
	if e, ok := r.Event.(event.ToolCallCompleted); ok && e.Tool != "read" {
		if len(c.queue) == 0 {
			c.t.Errorf("record %d: a call of %s that nobody asked for", r.Seq, e.Tool)
			return
		}
		maps.Copy(c.left, c.queue[0])
		c.queue = c.queue[1:]
	}
	c.moments[r.Seq] = maps.Clone(c.left)
}

// turn is a prompt, and what the model does for it.
func (c *chance) turn() (string, func()) {
	before := maps.Clone(c.files)
	for range 1 + c.r.IntN(3) {
		var steps []scripted.Step
		seen := maps.Clone(c.known) // by the model, before it says more
		for range 1 + c.r.IntN(2) {
			steps = append(steps, c.call(seen))
		}
		c.script = append(c.script, scripted.Reply{Steps: steps})
	}
	c.script = append(c.script, scripted.Reply{Steps: []scripted.Step{scripted.Say("That is done.")}})
	c.made++
	said := fmt.Sprintf("do what is to be done, number %d", c.made)
	return said, func() {
		c.turns, c.gone = append(c.turns, past{said, before, maps.Clone(c.files)}), nil
	}
}

// call is a call, and what it does to the model of the files.
func (c *chance) call(seen map[string]bool) scripted.Step {
	c.made++
	leaves := func(name, text string) {
		c.files[name] = text
		c.queue = append(c.queue, map[string]*string{name: &text})
	}
	id := fmt.Sprintf("call_of_%d", c.made)
	step := func(tool, args string) scripted.Step {
		return scripted.Call{Name: tool, ID: id, HasID: true, Args: args}
	}
	name := c.some(func(string) bool { return true })
	switch c.r.IntN(5) {
	case 0:
		c.known[name] = true
		return step("read", fmt.Sprintf(`{"path": %q}`, name))
	case 1, 2:
		leaves(name, c.files[name]+fmt.Sprintf("appended %d\n", c.made))
		c.known[name] = false
		return step("bash", fmt.Sprintf(`{"command": "echo appended %d >> %s"}`, c.made, name))
	case 3:
		if known := c.some(func(name string) bool { return seen[name] && c.known[name] && strings.Contains(c.files[name], "\n") }); known != "" {
			first, rest, _ := strings.Cut(c.files[known], "\n")
			whole := first + "\n" + rest
			leaves(known, fmt.Sprintf("edited %d\n", c.made)+whole)
			return step("write", fmt.Sprintf(`{"path": %q, "content": %q}`, known, c.files[known]))
		}
	}
	fresh := fmt.Sprintf("dir%d/new%d.txt", c.r.IntN(2), c.made)
	leaves(fresh, fmt.Sprintf("new %d\n", c.made))
	c.known[fresh] = true
	return step("write", fmt.Sprintf(`{"path": %q, "content": %q}`, fresh, c.files[fresh]))
}

// some is one of the files that fit, or "".
func (c *chance) some(fits func(string) bool) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.files)), func(name string) bool { return !fits(name) })
	if len(names) == 0 {
		return ""
	}
	return names[c.r.IntN(len(names))]
}

// back goes back to before one of the prompts.
func (c *chance) back() (string, func()) {
	if len(c.turns) == 0 {
		return "", nil
	}
	n := 1 + c.r.IntN(len(c.turns))
	at := len(c.turns) - n
	for _, turn := range slices.Backward(c.turns[at:]) {
		c.expect(turn.after, turn.before)
	}
	c.gone = slices.Clone(c.turns[at:])
	c.files, c.turns, c.known = maps.Clone(c.turns[at].before), c.turns[:at], make(map[string]bool)
	return fmt.Sprintf("/rewind %d", n), func() {}
}

// forth takes the return back.
func (c *chance) forth() (string, func()) {
	if len(c.gone) == 0 {
		return "", nil
	}
	for _, turn := range c.gone {
		c.expect(turn.before, turn.after)
	}
	c.files, c.turns, c.gone, c.known = maps.Clone(c.gone[len(c.gone)-1].after), append(c.turns, c.gone...), nil, make(map[string]bool)
	return "/rewind undo", func() {}
}

// expect waits for a call that takes files from one state to another.
func (c *chance) expect(from, to map[string]string) {
	leaves := make(map[string]*string)
	for name, text := range to {
		if was, there := from[name]; !there || was != text {
			leaves[name] = &text
		}
	}
	for name := range from {
		if _, there := to[name]; !there {
			leaves[name] = nil
		}
	}
	if len(leaves) > 0 {
		c.queue = append(c.queue, leaves)
	}
}

// human edits a file, or makes one.
func (c *chance) human() {
	c.made++
	name := c.some(func(string) bool { return true })
	if c.r.IntN(3) == 0 {
		name = fmt.Sprintf("mine%d.txt", c.made)
	}
	c.files[name] += fmt.Sprintf("by hand %d\n", c.made)
	c.known[name], c.byHand[name] = false, true
	if err := os.WriteFile(filepath.Join(c.ws, name), []byte(c.files[name]), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// checkMoments holds every moment of the session against the model.
func (c *chance) checkMoments() {
	c.t.Helper()
	ctx := context.Background()
	for seq := uint64(1); seq <= c.records; seq++ {
		err := c.app.ReadStates(ctx, "s", []uint64{seq}, func(states []app.PastState, kept provenance.ContentReader) error {
			found := make(map[string]bool)
			for _, f := range states[0].Files {
				want, known := c.moments[seq][f.Path]
				if found[f.Path] = true; !known {
					c.t.Errorf("record %d: %s is said to have been changed", seq, f.Path)
					continue
				}
				hash := ""
				if want != nil {
					sum := sha256.Sum256([]byte(*want))
					hash = hex.EncodeToString(sum[:])
				}
				if f.After.Hash != hash {
					c.t.Errorf("record %d: %s was %s, and the model says %s", seq, f.Path, f.After.Hash, hash)
				}
				// What a command left is kept as soon as something else would overwrite it, but
				// nobody asks us before a person does.
				if text, err := f.Content(ctx, kept); err == nil && want != nil && string(text) != *want || err != nil && c.goes {
					c.t.Errorf("record %d: %s held %q (%v), and the model says %q", seq, f.Path, text, err, *want)
				}
			}
			for name := range c.moments[seq] {
				if !found[name] {
					c.t.Errorf("record %d: %s is missing", seq, name)
				}
			}
			if seq == c.records {
				c.checkSaid(states[0])
			}
			return nil
		})
		if err != nil {
			c.t.Fatalf("record %d: %v", seq, err)
		}
	}
}

// checkSaid holds what the model sees against what was said and is in force.
func (c *chance) checkSaid(s app.PastState) {
	c.t.Helper()
	var said []string
	for _, m := range s.Conversation.View() {
		if m.Role == chat.User {
			text, _, _ := strings.Cut(m.Text(), "\n")
			said = append(said, text)
		}
	}
	var want []string
	for _, turn := range c.turns {
		want = append(want, turn.said)
	}
	if !slices.Equal(said, want) {
		c.t.Errorf("the model sees %q, and %q is in force", said, want)
	}
}

// checkAgain runs the session again, whole and up to some record.
func (c *chance) checkAgain() {
	c.t.Helper()
	ctx := context.Background()
	var records []event.Record
	for r, err := range c.app.Store().Logs.Read(ctx, "s", 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		records = append(records, r)
	}
	for _, n := range []int{len(records), 1 + c.r.IntN(len(records))} {
		report, err := c.app.Verify(ctx, "s", records, n)
		if err != nil && !c.goes && strings.Contains(err.Error(), "cannot be had: what ") {
			_, named, _ := strings.Cut(err.Error(), "cannot be had: what ")
			named, _, _ = strings.Cut(named, " held was not kept")
			for name := range strings.SplitSeq(named, ", ") {
				if !c.byHand[name] { // what calls left is kept, and what nobody touched is there
					c.t.Errorf("up to record %d: %s is missing, and no person changed it", n, name)
				}
			}
			continue
		}
		if err != nil {
			skipWithoutSandbox(c.t, err)
			c.t.Fatalf("up to record %d: %v", n, err)
		}
		if d := report.Difference; d != nil {
			c.t.Errorf("up to record %d: record %d, %s of %s:\n%s\nis now\n%s", n, d.Record, d.Kind, d.Subject, d.Recorded, d.Rerun)
		}
	}
	for name, text := range c.files {
		if got, err := os.ReadFile(filepath.Join(c.ws, name)); err != nil || string(got) != text {
			c.t.Errorf("running it again left %s as %q (%v)", name, got, err)
		}
	}
}

// TestAModeChangedInTheMiddleOfATurnComesToTheSameAgain changes it while a call
// runs, so that the turn goes on in another between two of its steps.
func TestAModeChangedInTheMiddleOfATurnComesToTheSameAgain(t *testing.T) {
	for _, modes := range [][2]string{{"default", "plan"}, {"plan", "auto-edit"}, {"build", "yolo"}} {
		t.Run(modes[0]+" to "+modes[1], func(t *testing.T) {
			c := newChance(t, 1)
			if err := c.app.ModeState.Switch(modes[0]); err != nil {
				t.Fatal(err)
			}
			script, err := scripted.Parse("call read {\"path\": \"old0.txt\"}\n---\ncall write {\"path\": \"new.txt\", \"content\": \"x\\n\"}\n---\nsay done\n")
			if err != nil {
				t.Fatal(err)
			}
			c.app.ScriptedProvider = &scripts{scripted.New(script, scripted.Options{})}
			ctx := context.Background()
			s, err := c.app.OpenSession(ctx, c.app.NewSupervisor(uip.NoInteractor, app.Screen{}), app.SessionChoice{NewID: "s"}, event.Discard)
			if err != nil {
				t.Fatal(err)
			}
			changed := false
			_, err = s.RunText(ctx, "go", event.SinkFunc(func(ctx context.Context, r event.Record) error {
				if e, ok := r.Event.(event.ToolCallCompleted); ok && e.Tool == "read" {
					changed = true
					return s.ChangeSettings(ctx, modes[1], event.Discard)
				}
				return nil
			}))
			if err = errors.Join(err, s.Close()); err != nil || !changed {
				t.Fatal(changed, err)
			}
			c.files = nil
			c.checkAgain()
		})
	}
}

// skipWithoutSandbox skips a test of what only runs confined.
func skipWithoutSandbox(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, confine.ErrUnavailable) {
		t.Skip("nothing here confines commands")
	}
}

// TestGoldenSessionsAgree runs the golden sessions of this program again, as CI
// does it for those of a project. What they show after a change that is meant is
// taken over by -update.
func TestGoldenSessionsAgree(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil || len(dirs) < 12 {
		t.Fatalf("%d golden sessions: %v", len(dirs), err)
	}
	p := newProgram(t)
	a := p.app(app.Options{})
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			report, err := a.RunGolden(context.Background(), dir, *update)
			if err != nil {
				skipWithoutSandbox(t, err)
				t.Fatal(err)
			}
			if d := report.Difference; d != nil {
				diff, _, _ := patch.Unified("record "+strconv.FormatUint(d.Record, 10), []byte(d.Recorded), []byte(d.Rerun))
				t.Errorf("step %d, record %d: %s of %s differs; go test ./cmd/coder -run TestGolden -update takes it over\n%s", d.Step, d.Record, d.Kind, d.Subject, diff)
			}
		})
	}
}
