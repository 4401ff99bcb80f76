// Package judge decides about every call of a session. It weighs the mode, the
// user's rules and the risks together, so that the user is asked at most once.
// Everything that shows or tests permissions uses the same judge.
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

// Options configures a Judge.
type Options struct {
	State    *mode.State      // the current mode
	Root     string           // the workspace, absolute
	Added    []string         // additional folders where file tools write, absolute
	Home     string           // the user's home, absolute; may be empty
	Bash     bool             // bash runs the commands
	Launcher program.Launcher // to git
	// Visible are folders of the home, absolute, that commands see although their names begin with a dot.
	Visible []string
	// UserRules are the user's rules; Allow and Deny are those of this run.
	UserRules   map[string]risk.Patterns
	Lines       []string // command patterns that the user's own settings allow, not a project's
	Allow, Deny []rule.Spec
	Exact       bool // remember whole command lines, not shapes
	// Settings are settings files for programs that the user's environment names.
	Settings []string
	// Ignored, which may be nil, returns the ignore file of the workspace that hides a file from every tool.
	Ignored func(file string) (by string, ok bool)
	// Hosts are the hosts in the user's settings.
	Hosts []string
	Now   func() time.Time

	// Frozen are patterns of unwritable files. Freezes reports whether commands are kept
	// from writing them, Hidden whether secret files that a command does not name are
	// hidden from it; Tracked lists the ones that git tracks. Each may be nil.
	Frozen                       []string
	EnforcesFrozen, HidesSecrets func() bool
	Tracked                      func() []string

	// Network describes what commands may reach. Bounds, which may be nil, reports whether this is enforced.
	Network     string
	LimitsHosts func() bool

	// IsCheck, which may be nil, reports whether a command line is the check of a trusted folder: it runs
	// without approval, except in plan mode or if a written rule asks.
	IsCheck func(line string) bool

	// AutoApprove allows what would only need approval; Fearless also allows risks.
	AutoApprove, AutoApproveRisks bool
}

// Judge decides about calls. It is safe for concurrent use.
type Judge struct {
	state    *mode.State
	book     *rule.Book
	facts    risk.Facts
	memory   *Memory // nil: no memory
	hosts    *hostLog
	runRules *runRules     // rules added during the run
	logDir   *atomic.Value // a string: where this session stores output
	o        Options
}

// runRules are rules added during this run.
type runRules struct {
	mu          sync.Mutex // guards the fields below
	allow, deny []rule.Spec
}

// apply returns b with the later rules.
func (l *runRules) apply(b *rule.Book) *rule.Book {
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
	w := newFileView(o.Root, o.Home, o.Added)
	facts := risk.Facts{
		Exists: func(path string) bool { _, err := os.Lstat(w.abs(path)); return err == nil },
		IsInside: func(path string) bool {
			rel, err := filepath.Rel(w.root, w.abs(path))
			return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		},
		ReadGit: func(dir string) ([]program.Setting, error) { return o.Launcher.Inspect(context.Background(), dir) },
		Real:    w.realPath, IsLinked: w.newLinkTest(o.Settings), Home: w.home, Cwd: w.root, Bash: o.Bash,
	}
	book := &rule.Book{
		UserRules: o.UserRules, Lines: o.Lines, Allow: o.Allow, Deny: o.Deny, Exact: o.Exact,
		Root: o.Root, Home: o.Home, Visible: o.Visible,
		Analyse: func(line string) risk.Report { return risk.Analyse(line, facts) },
		Glob:    w.glob, Walk: w.walk, Real: w.realPath, Ignored: o.Ignored,
		Frozen: o.Frozen, EnforcesFrozen: o.EnforcesFrozen, HidesSecrets: o.HidesSecrets, Tracked: o.Tracked,
	}
	j := &Judge{
		state: o.State, book: book, facts: facts, hosts: newHostLog(), runRules: new(runRules),
		logDir: new(atomic.Value), o: o,
	}
	book.Logs = func() string { dir, _ := j.logDir.Load().(string); return dir }
	book.IsNamed = func(host string) bool {
		return slices.ContainsFunc(o.Hosts, func(pattern string) bool {
			above, wild := strings.CutPrefix(strings.ToLower(pattern), "*")
			return host == above || wild && strings.HasPrefix(above, ".") && strings.HasSuffix(host, above)
		})
	}
	book.IsTyped, book.DescribeOrigin = j.hosts.isTyped, j.hosts.describeOrigin
	book.ExceedsLimits = j.hosts.exceedsLimits
	return j
}

// SetLogDir sets the folder below the workspace where the session stores output, which its tools may open.
func (j *Judge) SetLogDir(dir string) { j.logDir.Store(dir) }

// AddRules adds rules to those of this run.
func (j *Judge) AddRules(allow, deny []rule.Spec) {
	j.runRules.mu.Lock()
	defer j.runRules.mu.Unlock()
	j.runRules.allow, j.runRules.deny = append(j.runRules.allow, allow...), append(j.runRules.deny, deny...)
}

// AllowRedirect reports whether a redirect may lead to an address without approval, and counts it.
func (j *Judge) AllowRedirect(address string) bool {
	_, preset := j.state.Current()
	p, ok := rule.LookupPreset(preset)
	reaches := ok && j.runRules.apply(j.book).AllowsFetch(p, address)
	if reaches {
		j.hosts.recordRedirect(address)
	}
	return reaches
}

// WithAllowed returns a Judge that also allows specs.
func (j *Judge) WithAllowed(specs []rule.Spec) *Judge {
	book, more := *j.book, *j
	book.Allow = slices.Concat(book.Allow, specs)
	more.book = &book
	return &more
}

// Judge judges one case in the current mode.
func (j *Judge) Judge(ctx context.Context, c policy.Case) (policy.Opinion, error) {
	return j.PolicyFor(j.state.Current()).Judge(ctx, c)
}

// Mode returns the current mode and preset.
func (j *Judge) Mode() (m mode.Mode, preset string) { return j.state.Current() }

// PolicyFor returns the policy for a mode and a preset.
func (j *Judge) PolicyFor(m mode.Mode, preset string) policy.Policy {
	p, ok := rule.LookupPreset(preset)
	if !ok {
		return policy.All() // denies
	}
	if j.memory != nil {
		_ = j.memory.refresh() // an unreadable memory adds nothing
	}
	book := j.runRules.apply(j.book)
	danger := risk.New(j.facts, book.WaivedRisks)
	if p.Unchecked {
		danger = risk.Unchecked(j.facts)
	}
	all := policy.All(m, book.PolicyFor(p), danger, policy.Func(j.askUnbounded))
	switch {
	case j.o.AutoApproveRisks && !m.ReadOnly:
		return policy.AutoApproveRisks(all)
	case j.o.AutoApprove:
		return policy.AutoApprove(all)
	case j.o.IsCheck != nil && !m.ReadOnly && m.Name != mode.Plan:
		return j.allowTrustedCheck(all)
	}
	return all
}

// allowTrustedCheck wraps p to allow the check of a trusted folder where p would only ask.
func (j *Judge) allowTrustedCheck(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := policy.Judge(ctx, p, c)
		written := slices.ContainsFunc(o.Reasons, func(r policy.Reason) bool {
			return r.Rule != "" &&
				!strings.HasPrefix(r.Rule, "preset ")
		})
		if err != nil || o.Verdict != policy.Ask || !o.IsWaivable() || written || len(c.Plan.Effects) != 1 {
			return o, err
		}
		if e := c.Plan.Effects[0]; e.Kind == tool.Exec && j.o.IsCheck(e.Target) {
			o.Verdict = policy.Allow
			o.Reasons = append(slices.Clip(o.Reasons), policy.Reason{By: "trust",
				Text: "checks run unasked in a folder that you trust", Lasting: true})
		}
		return o, nil
	})
}

// askUnbounded asks about commands that could reach hosts not in the settings.
func (j *Judge) askUnbounded(_ context.Context, c policy.Case) (policy.Opinion, error) {
	for _, e := range c.Plan.Effects {
		if e.Kind != tool.Exec || j.o.LimitsHosts == nil || j.o.LimitsHosts() {
			continue
		}
		if r, read := c.Plan.Line.(risk.Report); !read && !j.Analyse(e.Target).ReadOnly || read && !r.ReadOnly {
			text := fmt.Sprintf("could reach any host: nothing here limits commands to %s (safety.network)", j.o.Network)
			return policy.Opinion{Verdict: policy.Ask, Reasons: []policy.Reason{{By: "sandbox", Text: text}}}, nil
		}
	}
	return policy.Opinion{Verdict: policy.Allow}, nil
}

// Analyse returns what a command line would do here.
func (j *Judge) Analyse(command string) risk.Report { return risk.Analyse(command, j.facts) }

// Offers returns what "always" would remember about a call. The error says why it cannot be remembered.
func (j *Judge) Offers(c policy.Case) ([]policy.Offer, error) { return j.book.Offers(c) }

// SkipsInSearch reports whether searches skip a file that they were not given by name.
func (j *Judge) SkipsInSearch(file string) bool {
	_, preset := j.state.Current()
	p, ok := rule.LookupPreset(preset)
	return !ok || j.runRules.apply(j.book).SkipsInSearch(p, file)
}

// NamedFiles returns the full paths of the files that a command line
// names and was judged by. It omits files that a rule denies.
func (j *Judge) NamedFiles(r risk.Report) []string {
	return slices.DeleteFunc(j.book.NamedFiles(r), func(file string) bool { return j.IsDenied(rule.ClassRead, file) })
}

// IsDenied reports whether a rule denies every use of a file in
// a class, read or write. It applies in every mode.
func (j *Judge) IsDenied(class, file string) bool {
	return j.runRules.apply(j.book).IsDenied(class, file)
}

// DeniedPaths returns the files and folders whose use in a class
// rules deny by name alone, and the visible exceptions inside.
func (j *Judge) DeniedPaths(class string) (denied, shown []string) {
	return j.runRules.apply(j.book).DeniedPaths(class)
}

// HasFrozen reports whether anything may be frozen.
func (j *Judge) HasFrozen() bool {
	return len(j.o.Frozen) > 0 || j.runRules.apply(j.book).HasDenials(rule.ClassWrite)
}

// IsVouched reports whether one of the user's own rules names the whole line and allows it.
func (j *Judge) IsVouched(r risk.Report) bool { return j.runRules.apply(j.book).IsVouched(r) }

// IsConcealed reports whether commands that do not name a file may not see it: it usually contains
// secrets, or a user's rule asks about it or denies it. It applies in every mode.
func (j *Judge) IsConcealed(file string) bool {
	p, _ := rule.LookupPreset("build")
	return j.runRules.apply(j.book).SkipsInSearch(p, file)
}

// IsFrozen reports whether a file, or everything in a folder, is unwritable for all.
func (j *Judge) IsFrozen(file string, dir bool) bool {
	return j.runRules.apply(j.book).IsFrozen(file, dir)
}

// Permissions returns a table of what is in force: the verdict for each sort of call, and the user's rules.
func (j *Judge) Permissions() display.Table {
	judge := j.PolicyFor(j.state.Current())
	t := display.Table{Header: display.TextCells("what", "verdict", "why")}
	for _, s := range sampleCalls {
		o, err := judge.Judge(context.Background(), policy.Case{Tool: s.tool,
			Plan: tool.Plan{Effects: []tool.Effect{s.effect}}})
		why := o.String()
		if err != nil {
			why = err.Error()
		}
		t.Rows = append(t.Rows, display.TextCells(s.what, o.Verdict.String(), why))
	}
	switch m, _ := j.state.Current(); {
	case m.ReadOnly:
		t.Rows = append(t.Rows, display.TextCells("network access of commands", policy.Deny.String(),
			"commands have no network in plan mode"))
	case j.o.Network != "":
		t.Rows = append(t.Rows, display.TextCells("commands reaching "+j.o.Network, policy.Allow.String(), "safety.network"))
	}
	// These are the user's rules, the rules of this run, and the "always" answers.
	for _, name := range slices.Sorted(maps.Keys(j.book.UserRules)) {
		for _, pattern := range slices.Sorted(maps.Keys(j.book.UserRules[name])) {
			t.Rows = append(t.Rows, display.TextCells(fmt.Sprintf("your rule %s(%s)", name, pattern),
				j.book.UserRules[name][pattern].String(), ""))
		}
	}
	for _, s := range j.book.Allow {
		t.Rows = append(t.Rows, display.TextCells("this run: "+s.String(), policy.Allow.String(), ""))
	}
	for _, s := range j.book.Deny {
		t.Rows = append(t.Rows, display.TextCells("this run: "+s.String(), policy.Deny.String(), ""))
	}
	_, preset := j.state.Current()
	if p, _ := rule.LookupPreset(preset); j.memory != nil && !p.OnlyStricter {
		t.Rows = append(t.Rows, j.memory.rows()...)
	}
	return t
}

// sampleCalls has one call of each sort.
var sampleCalls = []struct {
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
