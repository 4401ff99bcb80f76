// Package judge decides about every call of a session: what the mode, the
// person's rules and the risks say is weighed together, so that a person is
// asked at most once, and everything that shows or tests permissions asks the
// same judge.
package judge

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/display"
	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

// Options are what a Judge is made of.
type Options struct {
	State *mode.State  // the mode of the moment
	Root  string       // the workspace, absolute
	Added []string     // folders beside it that file tools write in, too, absolute
	Home  string       // the person's home, absolute; may be empty
	Bash  bool         // commands are run by bash
	Door  program.Door // to git
	// Visible are folders of the home, absolute, that commands see although their
	// names begin with a dot.
	Visible []string
	// Given are the rules the person wrote; Allow and Deny those of this run.
	Given       map[string]risk.Patterns
	Lines       []string // patterns of commands that they allow themselves, not a project
	Allow, Deny []rule.Spec
	Exact       bool // whole command lines are remembered rather than shapes
	// Settings are files that the person's environment names for programs to go by.
	Settings []string
	// Ignored, which may be nil, names the ignore file of the workspace that hides a
	// file from every tool.
	Ignored func(file string) (by string, ok bool)
	// Hosts are those that the person's settings name.
	Hosts []string
	Now   func() time.Time

	// Frozen are patterns of what may not be written. Freezes reports whether
	// commands are kept from that, Hidden whether secret files that a command
	// does not name are hidden from it; Tracked lists those that git keeps. Each
	// may be nil.
	Frozen          []string
	Freezes, Hidden func() bool
	Tracked         func() []string

	// Network is what commands may reach, in words. Bounds, which may be nil,
	// reports whether they are kept to that.
	Network string
	Bounds  func() bool

	// Check, which may be nil, reports whether a command line is the check of a folder that the
	// person trusts: it runs unasked, except in plan mode or where a rule that somebody wrote asks.
	Check func(line string) bool

	// Unasked lets pass what is only asked about; Fearless risks as well.
	Unasked, Fearless bool
}

// Judge decides about calls. It is safe for concurrent use.
type Judge struct {
	state  *mode.State
	book   *rule.Book
	facts  risk.Facts
	memory *Memory // nil: nothing is remembered
	heard  *heard
	later  *later        // rules that came since
	logs   *atomic.Value // a string: where this session keeps output
	o      Options
}

// later are rules of this run that came while it went on.
type later struct {
	mu          sync.Mutex // guards the fields below
	allow, deny []rule.Spec
}

// book is b with them.
func (l *later) book(b *rule.Book) *rule.Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.allow)+len(l.deny) == 0 {
		return b
	}
	more := *b
	more.Allow, more.Deny = slices.Concat(b.Allow, l.allow), slices.Concat(b.Deny, l.deny)
	return &more
}

// New returns a Judge.
func New(o Options) *Judge {
	w := newWorld(o.Root, o.Home, o.Added)
	facts := risk.Facts{
		Exists: func(path string) bool { _, err := os.Lstat(w.at(path)); return err == nil },
		IsInside: func(path string) bool {
			rel, err := filepath.Rel(w.root, w.at(path))
			return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		},
		ReadGit: func(dir string) ([]program.Setting, error) { return o.Door.Inspect(context.Background(), dir) },
		Real:    w.real, Led: w.led(o.Settings), Home: w.home, Cwd: w.root, Bash: o.Bash,
	}
	book := &rule.Book{
		Given: o.Given, Lines: o.Lines, Allow: o.Allow, Deny: o.Deny, Exact: o.Exact,
		Root: o.Root, Home: o.Home, Visible: o.Visible,
		Analyse: func(line string) risk.Report { return risk.Analyse(line, facts) },
		Glob:    w.glob, Below: w.below, Real: w.real, Ignored: o.Ignored,
		Frozen: o.Frozen, Freezes: o.Freezes, Hidden: o.Hidden, Tracked: o.Tracked,
	}
	j := &Judge{
		state: o.State, book: book, facts: facts, heard: newHeard(), later: new(later), logs: new(atomic.Value), o: o,
	}
	book.Logs = func() string { dir, _ := j.logs.Load().(string); return dir }
	book.Named = func(host string) bool {
		return slices.ContainsFunc(o.Hosts, func(pattern string) bool {
			above, wild := strings.CutPrefix(strings.ToLower(pattern), "*")
			return host == above || wild && strings.HasPrefix(above, ".") && strings.HasSuffix(host, above)
		})
	}
	book.Typed, book.Whence = j.heard.typed, j.heard.whence
	book.Exceeds = j.heard.exceeds
	return j
}

// SetLogs names the folder below the workspace where the session keeps output,
// which its tools may open.
func (j *Judge) SetLogs(dir string) { j.logs.Store(dir) }

// AddRules takes rules of this run beside those it began with.
func (j *Judge) AddRules(allow, deny []rule.Spec) {
	j.later.mu.Lock()
	defer j.later.mu.Unlock()
	j.later.allow, j.later.deny = append(j.later.allow, allow...), append(j.later.deny, deny...)
}

// Reaches reports whether a redirect may lead to an address without a question, and
// counts it.
func (j *Judge) Reaches(address string) bool {
	_, preset := j.state.Current()
	p, ok := rule.PresetNamed(preset)
	reaches := ok && j.later.book(j.book).Reaches(p, address)
	if reaches {
		j.heard.redirected(address)
	}
	return reaches
}

// Allowing returns a Judge that also lets specs pass.
func (j *Judge) Allowing(specs []rule.Spec) *Judge {
	book, more := *j.book, *j
	book.Allow = slices.Concat(book.Allow, specs)
	more.book = &book
	return &more
}

// Judge weighs one case in the mode of the moment.
func (j *Judge) Judge(ctx context.Context, c policy.Case) (policy.Opinion, error) {
	return j.In(j.state.Current()).Judge(ctx, c)
}

// Mode is the mode of the moment, and the preset in force.
func (j *Judge) Mode() (m mode.Mode, preset string) { return j.state.Current() }

// In is the policy in a mode under a preset.
func (j *Judge) In(m mode.Mode, preset string) policy.Policy {
	p, ok := rule.PresetNamed(preset)
	if !ok {
		return policy.All() // denies
	}
	if j.memory != nil {
		_ = j.memory.refresh() // what cannot be read is not remembered
	}
	book := j.later.book(j.book)
	danger := risk.New(j.facts, book.Waives)
	if p.Unchecked {
		danger = risk.Unchecked(j.facts)
	}
	all := policy.All(m, book.In(p), danger, policy.Func(j.unbounded))
	switch {
	case j.o.Fearless && !m.ReadOnly:
		return policy.Fearless(all)
	case j.o.Unasked:
		return policy.Unasked(all)
	case j.o.Check != nil && !m.ReadOnly && m.Name != mode.Plan:
		return j.checksUnasked(all)
	}
	return all
}

// checksUnasked lets the check of a trusted folder pass where p would merely ask about it.
func (j *Judge) checksUnasked(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := policy.Judge(ctx, p, c)
		written := slices.ContainsFunc(o.Reasons, func(r policy.Reason) bool { return r.Rule != "" && !strings.HasPrefix(r.Rule, "preset ") })
		if err != nil || o.Verdict != policy.Ask || !o.Waivable() || written || len(c.Plan.Effects) != 1 {
			return o, err
		}
		if e := c.Plan.Effects[0]; e.Kind == tool.Exec && j.o.Check(e.Target) {
			o.Verdict = policy.Allow
			o.Reasons = append(slices.Clip(o.Reasons), policy.Reason{By: "trust", Text: "checks run unasked in a folder that you trust", Lasting: true})
		}
		return o, nil
	})
}

// unbounded asks about commands that could reach more hosts than the settings name.
func (j *Judge) unbounded(_ context.Context, c policy.Case) (policy.Opinion, error) {
	for _, e := range c.Plan.Effects {
		if e.Kind != tool.Exec || j.o.Bounds == nil || j.o.Bounds() {
			continue
		}
		if r, read := c.Plan.Line.(risk.Report); !read && !j.Analyse(e.Target).ReadOnly || read && !r.ReadOnly {
			text := fmt.Sprintf("could reach any host: nothing here limits commands to %s (safety.network)", j.o.Network)
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "sandbox", Text: text}}}, nil
		}
	}
	return policy.Opinion{Verdict: policy.Allow}, nil
}

// Analyse says what a command line would do here.
func (j *Judge) Analyse(command string) risk.Report { return risk.Analyse(command, j.facts) }

// Offers say what "always" would remember of a call. The error says why it
// cannot be remembered.
func (j *Judge) Offers(c policy.Case) ([]policy.Offer, error) { return j.book.Offers(c) }

// Hides reports whether searches pass over a file that they were not given by
// name.
func (j *Judge) Hides(file string) bool {
	_, preset := j.state.Current()
	p, ok := rule.PresetNamed(preset)
	return !ok || j.later.book(j.book).Hides(p, file)
}

// Names are the files that a command line names, by their full paths. What it
// names it was judged by.
// A file that a rule denies is not named by naming it.
func (j *Judge) Names(r risk.Report) []string {
	return slices.DeleteFunc(j.book.Names(r), func(file string) bool { return j.Denies(rule.Reads, file) })
}

// Denies reports whether a rule denies every use of a file of a class, read or
// write. That holds in every mode.
func (j *Judge) Denies(class, file string) bool { return j.later.book(j.book).Denies(class, file) }

// DeniedPaths are the files and folders that rules deny a class of use of by
// their names alone, and those inside that are to be seen.
func (j *Judge) DeniedPaths(class string) (denied, shown []string) {
	return j.later.book(j.book).DeniedPaths(class)
}

// Freezes reports whether there may be anything that nobody may write.
func (j *Judge) Freezes() bool {
	return len(j.o.Frozen) > 0 || j.later.book(j.book).HasDenials(rule.Writes)
}

// Vouches reports whether a rule of the person's own names a line whole and allows it.
func (j *Judge) Vouches(r risk.Report) bool { return j.later.book(j.book).Vouches(r) }

// Conceals reports whether commands that do not name a file are not to see it:
// it usually holds secrets, or a rule of the person asks about it or denies it.
// That holds in every mode.
func (j *Judge) Conceals(file string) bool {
	p, _ := rule.PresetNamed("build")
	return j.later.book(j.book).Hides(p, file)
}

// IsFrozen reports whether nobody may write a file, or anything in a folder.
func (j *Judge) IsFrozen(file string, dir bool) bool { return j.later.book(j.book).IsFrozen(file, dir) }

// Permissions shows what is really in force: what each sort of call meets, and
// the rules a person wrote.
func (j *Judge) Permissions() display.Table {
	judge := j.In(j.state.Current())
	t := display.Table{Head: display.Words("what", "verdict", "why")}
	for _, s := range samples {
		o, err := judge.Judge(context.Background(), policy.Case{Tool: s.tool, Plan: tool.Plan{Effects: []tool.Effect{s.effect}}})
		why := o.String()
		if err != nil {
			why = err.Error()
		}
		t.Rows = append(t.Rows, display.Words(s.what, o.Verdict.String(), why))
	}
	switch m, _ := j.state.Current(); {
	case m.ReadOnly:
		t.Rows = append(t.Rows, display.Words("network of commands", policy.Deny.String(), "commands have no network in plan mode"))
	case j.o.Network != "":
		t.Rows = append(t.Rows, display.Words("commands reaching "+j.o.Network, policy.Allow.String(), "safety.network"))
	}
	// What the person wrote, said for this run, and answered "always".
	for _, name := range slices.Sorted(maps.Keys(j.book.Given)) {
		for _, pattern := range slices.Sorted(maps.Keys(j.book.Given[name])) {
			t.Rows = append(t.Rows, display.Words(fmt.Sprintf("your rule %s(%s)", name, pattern), j.book.Given[name][pattern].String(), ""))
		}
	}
	for _, s := range j.book.Allow {
		t.Rows = append(t.Rows, display.Words("this run: "+s.String(), policy.Allow.String(), ""))
	}
	for _, s := range j.book.Deny {
		t.Rows = append(t.Rows, display.Words("this run: "+s.String(), policy.Deny.String(), ""))
	}
	_, preset := j.state.Current()
	if p, _ := rule.PresetNamed(preset); j.memory != nil && !p.Floor {
		t.Rows = append(t.Rows, j.memory.rows()...)
	}
	return t
}

// samples are one call of each sort.
var samples = []struct {
	what, tool string
	effect     tool.Effect
}{
	{"read", "read", tool.Effect{Kind: tool.Read, Target: "file.txt"}},
	{"write, edit, patch", "write", tool.Effect{Kind: tool.Write, Target: "file.txt"}},
	{"git_add, git_commit", "git_commit", tool.Effect{Kind: tool.Write, Target: "history of ."}},
	{"bash, read-only", "bash", tool.Effect{Kind: tool.Exec, Target: "ls"}},
	{"bash, other", "bash", tool.Effect{Kind: tool.Exec, Target: "any-other-command"}},
	{"bash, dangerous", "bash", tool.Effect{Kind: tool.Exec, Target: "rm file.txt"}},
	{"fetch", "fetch", tool.Effect{Kind: tool.Net, Target: "https://example.org/"}},
	{"todowrite", "todowrite", tool.Effect{Kind: tool.Note, Target: "todo list"}},
	{"other tools", "mcp__server__tool", tool.Effect{Kind: tool.Unknown}},
	{"secret files", "read", tool.Effect{Kind: tool.Read, Target: ".env"}},
}
