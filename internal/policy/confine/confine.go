// Package confine says, for each command of a session, within which bounds it
// runs: where it may write, what it may not touch, whether it may use the
// network. What the machine can enforce is found out when the first command
// comes.
package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy/risk"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// How much is demanded of the machine.
const (
	Auto    = "auto"    // as far as it can
	Require = "require" // everything, or nothing runs
	Off     = "off"
)

// Options are the bounds of a session's commands.
type Options struct {
	Demand string
	Exe    string // this program, which runs itself to confine commands
	Door   program.Door

	Root, Home string
	Write      []string // more folders that may be written to
	// Needed, which may be nil, lists those of them that tools of this machine do
	// not work without. What is missing is made before the first command that may
	// write.
	Needed     func() []string
	Protect    []string    // more paths that may not, wherever they lie
	Network    func() bool // may commands use it now?
	AnyNetwork bool        // may they in some mode?
	// Reach, which may be nil, decides which hosts commands may reach where they
	// may not use the network, and returns nil while they may reach none.
	Reach func() *Reach

	// ToolChains are folders of the home that hold programs; commands see them.
	ToolChains []string
	// State are folders of the program itself, which no command sees.
	State []string
	// Sockets, which may be nil, lists those that this environment names. Agent
	// is the one that speaks for the person to other machines, and Runtime the
	// folder of those that serve the person; both may be empty.
	Sockets        func() []string
	Agent, Runtime string
	// Secrets, which may be nil, lists the secret files of the workspace, by
	// their full paths, and says whether these are all.
	Secrets func(ctx context.Context) (files []string, all bool)
	// Named, which may be nil, lists the files that a line names, by their full
	// paths. What it names it was let read.
	Named func(r risk.Report) []string
	// Tracked, which may be nil, says which of some files git keeps.
	Tracked func(files []string) []string
	// Frozen, which may be nil, lists what no command may write, by full paths.
	Frozen func(ctx context.Context) ([]string, error)
	// Repositories, which may be nil, lists the folders below the workspace that
	// hold repositories of their own.
	Repositories func(ctx context.Context) []string
	// Denied, which may be nil, lists files and folders outside the workspace that
	// no command may read, even where it names them, and what of them it may. Denies
	// reports whether a file is such a one.
	Denied func() (hide, show []string)
	Denies func(file string) bool
	// Projects, which may be nil, lists the folders below the workspace that hold
	// a .coder folder. No command sees the records of sessions in it.
	Projects func(ctx context.Context) []string

	// MemoryMB and Processes bound what a command may use that no person approved;
	// zero is no bound. Memory below zero is half of the machine's.
	MemoryMB, Processes int

	// Withheld, which may be nil, lists the variables that commands do not get unless
	// their programs need them, NAME=value each. Vouches, which may be nil, reports
	// whether a rule of the person names a line whole and allows it.
	Withheld func() []string
	Vouches  func(r risk.Report) bool

	// Rerun is set if nobody is here: approvals are taken from a record, and count
	// for nothing beyond it. Outside of the workspace no secret is shown.
	Rerun bool

	Warn func(string) // tells the person, once, what is not enforced
	// Only, if not empty, is the one way to confine that is tried.
	Only string
	// Doubtful, which may be nil, is asked in place of [sandbox.Doubtful].
	Doubtful func() bool
	// Bare, which may be nil, is called before anything runs that nothing
	// confines.
	Bare func()
	// Journal, which may be nil, names the files that commands and helpers touch.
	Journal *sandbox.Journal
}

// ErrUnavailable reports that not everything that is demanded can be enforced.
var ErrUnavailable = errors.New("commands cannot be confined as required")

// Confiner confines the commands of one session.
type Confiner struct {
	o    Options
	once sync.Once
	box  *sandbox.Sandbox
	told sync.Once
	made sync.Once
	// links and profiles are places behind links of the home, looked for once: what
	// commands see there, and what they do not change.
	links, profiles func() []string
}

// New returns a Confiner. Nothing is looked into yet.
func New(o Options) *Confiner {
	if o.Doubtful == nil {
		o.Doubtful = sandbox.Doubtful
	}
	c := &Confiner{o: o}
	c.links = sync.OnceValue(c.linked)
	c.profiles = sync.OnceValue(func() []string { return sandbox.ProtectedBehind(o.Home) })
	return c
}

func (c *Confiner) find(ctx context.Context) *sandbox.Sandbox {
	c.once.Do(func() {
		c.box = sandbox.Find(context.WithoutCancel(ctx), sandbox.Options{Exe: c.o.Exe, Door: c.o.Door, Only: c.o.Only})
	})
	return c.box
}

// Close removes what the sandbox put in place for the session.
func (c *Confiner) Close() error { return c.box.Close() }

// Command is the confinement of one command line, by the reading of it that
// was judged.
func (c *Confiner) Command(ctx context.Context, read tool.Line) (bash.Confinement, error) {
	confined, err := c.confinement(ctx, read)
	confined.Env, confined.Missing = c.variables(ctx, read)
	confined.Env = append(confined.Env, c.temporary(ctx)...)
	return confined, err
}

// confinement is where a command may write, what it sees and whether it has the network.
func (c *Confiner) confinement(ctx context.Context, read tool.Line) (bash.Confinement, error) {
	if r, ok := read.(risk.Report); !ok || !r.ReadOnly {
		c.makeCaches()
	}
	limits, err := c.limits(ctx, read, tool.Approved(ctx))
	if err != nil {
		return bash.Confinement{}, err
	}
	if !tool.Approved(ctx) || c.o.Rerun {
		limits.Bounds = c.bounds()
	}
	reach := c.reach()
	if reach == nil { // the mode may have changed
		limits.Hosts = nil
	}
	line, report, err := c.line(ctx, limits)
	if err != nil || report.Backend == sandbox.None {
		bare := c.through(c.bare(limits.Bounds))
		bare.After = c.leaves(ctx, read)
		return bare, err
	}
	confined := through(line)
	if r, _ := read.(risk.Report); !r.ReadOnly { // else it can write no file of the workspace
		confined = c.through(line)
	}
	confined.Words, confined.After = words(report), c.leaves(ctx, read)
	if len(limits.Hosts) > 0 && c.find(ctx).HasOutlets() {
		confined.Reach = func(ctx context.Context) (bash.Way, error) { return reach.open(ctx, read.Written()) }
	}
	confined.Blocked = func(code int, stderr string) string {
		if why, failed := sandbox.SetupFailed(code, stderr); failed {
			return "the sandbox could not be set up (" + why + ")"
		}
		return sandbox.Blocked(code, stderr, limits)
	}
	return confined, nil
}

// bounds are those of a command that no person approved.
func (c *Confiner) bounds() sandbox.Bounds {
	b := sandbox.Bounds{Memory: int64(c.o.MemoryMB) << 20, Processes: c.o.Processes}
	if b.Memory < 0 {
		b.Memory = max(sandbox.Memory()/2, leastMemory)
	}
	return b
}

// leastMemory is what builds and tests need on a small machine.
const leastMemory = 2 << 30

// Holds says what a command will be confined to, or nothing if it will not.
func (c *Confiner) Holds(ctx context.Context, read tool.Line) (string, error) {
	if c.o.Demand == Off {
		return "", nil
	}
	limits, err := c.outline(ctx, read)
	if err != nil {
		return "", err
	}
	report, err := c.report(ctx, limits)
	if err != nil || report.Backend == sandbox.None {
		return "", err
	}
	return words(report), nil
}

// outline are the limits of a line as far as a report needs them: where it may write, and
// one of the folders that it does not see. What else is hidden is looked for when the
// line runs, unless the report depends on it.
func (c *Confiner) outline(ctx context.Context, line tool.Line) (sandbox.Limits, error) {
	state := c.state()
	if _, foreign := line.(bash.Foreign); foreign || len(state) == 0 || !c.find(ctx).Protects() {
		return c.limits(ctx, line, false)
	}
	l, err := c.writing(ctx, line, false)
	l.Hide = state
	return l, err
}

// report is what of the limits will be enforced. The person is told, once, what
// is not.
func (c *Confiner) report(ctx context.Context, limits sandbox.Limits) (sandbox.Report, error) {
	report := c.find(ctx).Report(limits)
	if c.o.Demand == Require && !report.Whole {
		return report, unavailable(report)
	}
	c.tell(report)
	return report, nil
}

// line is what a command has to be run through to stay within limits, and what
// that enforces.
func (c *Confiner) line(ctx context.Context, limits sandbox.Limits) (sandbox.Line, sandbox.Report, error) {
	if c.o.Demand == Off {
		return c.bare(limits.Bounds), sandbox.Report{Backend: sandbox.None}, nil
	}
	report, err := c.report(ctx, limits)
	if err != nil {
		return sandbox.Line{}, report, err
	}
	if report.Backend == sandbox.None {
		return c.bare(limits.Bounds), report, nil
	}
	line, err := c.find(ctx).Wrap(limits)
	return line, report, err
}

// Attended is how a command is run that is not confined: nothing of it outlives
// it, or us.
func (c *Confiner) Attended(ctx context.Context, read tool.Line) bash.Confinement {
	free := c.through(c.bare(sandbox.Bounds{}))
	free.After = c.leaves(ctx, read)
	return free
}

func (c *Confiner) bare(b sandbox.Bounds) sandbox.Line {
	if c.o.Bare != nil {
		c.o.Bare()
	}
	return sandbox.Attended(c.o.Exe, b)
}

func (c *Confiner) through(l sandbox.Line) bash.Confinement { return through(c.o.Journal.Keep(l)) }

// through is the confinement of a line that no journal is kept of.
func through(l sandbox.Line) bash.Confinement {
	l = l.Telling()
	return bash.Confinement{Through: l.Argv, Attr: l.Attr, Init: l.Init, Journal: l.Journal, Hold: l.Hold}
}

// Helper is the bounds of a program that works for us beside the commands, such
// as a language server. The zero Helper may write where commands may and has no
// network.
type Helper struct {
	ReadOnly bool     // nothing in the workspace may be written, only caches and temporary folders
	Network  bool     // the network may be used, if commands may
	AnyMode  bool     // whatever the mode: it outlives it, and its calls are judged one by one
	Write    []string // more folders that may be written, absolute
	Private  bool     // Write is all that may be written
	Hide     []string // what it must not see, absolute; where that cannot be hidden it does not run
	Must     bool     // where nothing at all can be confined it does not run, unless the person switched that off
}

// Helper has a program that was not started yet run within bounds, as far as
// this machine can confine anything, and reports whether they are enforced. The
// program keeps its environment, directory and streams, which may be pipes to
// us for as long as it runs. Ending the process ends all that it started; so
// does our own end, however that comes. Where everything is demanded and cannot
// be had the error says so, and the program must not be started.
func (c *Confiner) Helper(ctx context.Context, cmd *program.Cmd, h Helper) (confined bool, err error) {
	if !h.Private && !h.ReadOnly {
		c.makeCaches()
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return false, err
	}
	limits.Network = h.Network && (limits.Network || h.AnyMode && c.o.AnyNetwork)
	limits.Hosts = nil
	if h.ReadOnly {
		limits.Write = slices.DeleteFunc(limits.Write, func(dir string) bool { return holds(dir, c.o.Root) || holds(c.o.Root, dir) })
	}
	if h.Private {
		limits.Write = nil
	}
	limits.Write = existing(append(limits.Write, h.Write...))
	if err := c.hide(ctx, &limits, h.Hide); err != nil {
		return false, err
	}
	line, report, err := c.line(ctx, limits)
	switch {
	case err != nil:
		return false, err
	case h.Must && report.Backend == sandbox.None && c.o.Demand != Off:
		return false, unavailable(report)
	}
	if !h.ReadOnly {
		line = c.o.Journal.Keep(line)
	}
	line.Apply(cmd)
	return report.Whole && report.Backend != sandbox.None, nil
}

// Git has a git of coder's own, that was not started yet, write in the folders of a
// repository's own files and in temporary ones only: a link that a command put there
// leads it nowhere else. What git obeys in these folders stays.
func (c *Confiner) Git(ctx context.Context, cmd *program.Cmd, dirs ...string) error {
	limits := sandbox.Limits{Write: existing(slices.Concat(Temporary(), dirs))}
	for _, dir := range dirs {
		limits.Protect = append(limits.Protect, sandbox.ProtectedInGit(dir)...)
	}
	line, _, err := c.line(ctx, limits)
	line.Apply(cmd)
	return err
}

// Bare has a program that was not started yet run without bounds. Nothing of it
// outlives it, or us.
func (c *Confiner) Bare(cmd *program.Cmd) { c.o.Journal.Keep(c.bare(sandbox.Bounds{})).Apply(cmd) }

// Words say how a command would be confined, in one line.
func (c *Confiner) Words(ctx context.Context) string {
	if c.o.Demand == Off {
		return Off
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return err.Error()
	}
	return words(c.find(ctx).Report(limits))
}

func words(r sandbox.Report) string {
	text := r.Backend + ": " + strings.Join(r.Enforced, "; ")
	if !r.Whole {
		text += "; not enforced: " + strings.Join(r.NotEnforced, "; ")
	}
	return text
}

// Check reports, before anything runs, whether what is demanded can be had. Where
// there are signs that not all can be, the person is told what cannot; where
// there are none, that is found out when the first command comes.
func (c *Confiner) Check(ctx context.Context) error {
	if c.o.Demand == Auto && c.o.Doubtful() {
		// Limits such as commands have here, without a look at what is in the workspace.
		in := func(name string) string { return filepath.Join(c.o.Root, name) }
		c.tell(c.find(ctx).Report(sandbox.Limits{
			Write: []string{c.o.Root}, Protect: []string{in(".git"), in(".coder")}, Hide: []string{in(".env")}, Network: c.o.Network(), Hosts: c.hosts(),
		}))
	}
	if c.o.Demand != Require {
		return nil
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return err
	}
	if report := c.find(ctx).Report(limits); !report.Whole {
		return unavailable(report)
	}
	return nil
}

func (c *Confiner) tell(r sandbox.Report) {
	if !r.Whole && c.o.Warn != nil {
		c.told.Do(func() { c.o.Warn("the sandbox does not enforce: " + strings.Join(r.NotEnforced, "; ")) })
	}
}

func unavailable(r sandbox.Report) error {
	return fmt.Errorf("%w; this machine does not enforce: %s", ErrUnavailable, strings.Join(r.NotEnforced, "; "))
}

// limits are what a command may do: write below the workspace, to temporary
// folders and to what else was named, and use the network if that is on now. A
// line that runs git may write what git needs, and no more of its own files; one
// that was judged to only read is held to that. Nothing that is frozen may be
// written, and what is secret is hidden. Only a line that a person approved, as it
// is, may trace its processes and reach the sockets of other programs: through those
// it does outside what it may not do itself.
func (c *Confiner) limits(ctx context.Context, line tool.Line, approved bool) (l sandbox.Limits, err error) {
	foreign, isForeign := line.(bash.Foreign)
	if isForeign {
		line = foreign.Line
	}
	approved = approved && !isForeign && !c.o.Rerun
	if l, err = c.writing(ctx, line, approved); err != nil {
		return l, err
	}
	l.Trace = approved
	// Hidden are secrets that the line does not name and none of its programs needs, and always the program's own folder.
	r, _ := line.(risk.Report)
	var named []string
	if isForeign { // nobody let it read what it names
		r = risk.Report{}
	} else if c.o.Named != nil {
		named = c.o.Named(r)
	}
	needy := c.programs(r)
	if c.o.Rerun {
		needy = nil
		outside := func(file string) bool { return !holds(c.o.Root, file) }
		for _, file := range existing(named) {
			if outside(file) && secret.Is(file) {
				l.Hide = append(l.Hide, file)
			}
		}
		named = slices.DeleteFunc(slices.Clone(named), outside)
	}
	state := c.state()
	for _, dir := range state {
		l.Hide = append(l.Hide, dir)
		for _, name := range open {
			l.Show = append(l.Show, filepath.Join(dir, name))
		}
	}
	records := c.records(ctx, !r.ReadOnly)
	l.Hide = append(l.Hide, records...)
	for _, dir := range records { // under another name than .coder they would be files like others
		l.Pin = append(l.Pin, filepath.Dir(strings.TrimSuffix(dir, "/")))
	}
	home, sockets := c.home(), c.sockets()
	if approved {
		agents := c.agents(c.programs(r))
		l.Show = append(l.Show, agents...)
		sockets = slices.DeleteFunc(sockets, func(place string) bool {
			return slices.ContainsFunc(agents, func(agent string) bool { return holds(agent, place) })
		})
	} else {
		named = slices.DeleteFunc(slices.Clone(named), func(name string) bool {
			return isSocket(name) || slices.ContainsFunc(sockets, func(place string) bool { return holds(place, name) })
		})
	}
	hidden, needed := c.known(home, needy)
	l.Show = append(l.Show, needed...)
	if line != nil && !approved {
		dotfiles, visible := c.dotfiles(home)
		hidden, l.Show = append(hidden, dotfiles...), append(l.Show, visible...)
	}
	inside, inTree := insideOf(state), c.inTree(ctx, r)
	for _, file := range inTree {
		l.Pin = append(l.Pin, c.pins(file)...)
	}
	for _, place := range slices.Concat(hidden, inTree, sockets) {
		if inside(place) || slices.Contains(named, place) || slices.Contains(l.Show, place) || holds(place, c.o.Root) {
			continue
		}
		l.Hide = append(l.Hide, place)
		for _, name := range named {
			if holds(place, name) && !inside(name) {
				l.Show = append(l.Show, name)
			}
		}
	}
	if c.o.Denied != nil {
		hide, show := c.o.Denied()
		l.Hide, l.Show = append(l.Hide, existing(hide)...), append(l.Show, existing(show)...)
	}
	return l, c.hide(ctx, &l, foreign.Hide)
}

// writing are the limits of a line on what it writes, and on the network.
func (c *Confiner) writing(ctx context.Context, line tool.Line, approved bool) (l sandbox.Limits, err error) {
	if r, ok := line.(risk.Report); ok && r.ReadOnly {
		l = c.readingLimits()
	} else {
		l = sandbox.Limits{Network: c.o.Network(), Hosts: c.hosts(), Write: c.granted(ctx)}
		protect := slices.Clone(c.o.Protect)
		for _, dir := range l.Write { // a home may lie in any of them, in temporary ones too
			if dir == c.o.Root || c.o.Home != "" && holds(dir, c.o.Home) {
				protect = append(protect, sandbox.ProtectedIn(dir, c.o.Home)...)
			}
		}
		if !approved {
			protect = append(protect, slices.DeleteFunc(slices.Clone(c.profiles()), func(p string) bool { return holds(p, c.o.Root) })...)
		}
		if runsGit(line) {
			protect = slices.DeleteFunc(protect, func(p string) bool { return p == filepath.Join(c.o.Root, ".git")+"/" })
		}
		l.Protect = append(existing(protect), c.repositories(ctx, runsGit(line))...)
	}
	if c.o.Frozen != nil {
		frozen, err := c.o.Frozen(ctx)
		if err != nil {
			return l, fmt.Errorf("find the frozen files: %w", err)
		}
		l.Protect = append(l.Protect, frozen...)
	}
	return l, nil
}

// state are the program's own folders, which no command sees, but for one that the work
// is in.
func (c *Confiner) state() []string {
	return slices.DeleteFunc(existing(c.o.State), func(dir string) bool { return holds(dir, c.o.Root) })
}

// insideOf returns what reports whether a path lies in one of the folders, whatever links
// lead to it. It holds for a moment only.
func insideOf(dirs []string) func(path string) bool {
	var resolved []string
	for _, dir := range dirs {
		resolved = append(resolved, real(dir))
	}
	return func(path string) bool {
		for i, dir := range dirs {
			if holds(dir, path) || holds(resolved[i], real(path)) {
				return true
			}
		}
		return false
	}
}

// hide adds what must not be seen, unless it cannot be hidden.
func (c *Confiner) hide(ctx context.Context, l *sandbox.Limits, paths []string) error {
	paths = existing(paths)
	if len(paths) > 0 && (c.o.Demand == Off || !c.find(ctx).Hides(sandbox.Limits{Write: l.Write, Hide: paths})) {
		return fmt.Errorf("%s cannot be hidden here, and may hold unapproved content", strings.Join(paths, ", "))
	}
	l.Hide = append(l.Hide, paths...)
	return nil
}

// repositories are what must not be written of the repositories here: of that of
// the workspace and of those below it. What git would obey in them must not be
// made either.
func (c *Confiner) repositories(ctx context.Context, git bool) (protect []string) {
	dirs := []string{c.o.Root}
	if c.o.Repositories != nil {
		dirs = append(dirs, c.o.Repositories(ctx)...)
	}
	for _, dir := range dirs {
		at := filepath.Join(dir, ".git")
		info, err := os.Lstat(at)
		switch {
		case err != nil:
		case git && info.IsDir():
			protect = append(protect, slices.DeleteFunc(sandbox.ProtectedInForGit(dir), func(p string) bool { return !holds(at, p) })...)
		default:
			protect = append(protect, at)
		}
	}
	return protect
}

// leaves is the [Confiner.Watch] of a line that may write.
func (c *Confiner) leaves(ctx context.Context, line tool.Line) func(context.Context) string {
	if foreign, ok := line.(bash.Foreign); ok {
		line = foreign.Line
	}
	if r, _ := line.(risk.Report); r.ReadOnly {
		return nil
	}
	return c.Watch(ctx)
}

// Watch remembers what git obeys here, and which profiles there are in a home that
// may be written. It returns what finds, once something that may write is done, what
// is new or has changed of that, and tells the person.
func (c *Confiner) Watch(ctx context.Context) func(context.Context) string {
	if c.o.Repositories == nil {
		return func(context.Context) string { return "" }
	}
	look := func(ctx context.Context) (found [3]map[string]string) {
		writable := c.writable()
		found[0], found[1] = sandbox.Planted(c.o.Root, c.o.Home, append(c.o.Repositories(ctx), writable...))
		if c.o.Home != "" && slices.ContainsFunc(writable, func(dir string) bool { return holds(dir, c.o.Home) }) {
			found[2] = sandbox.PlantedIn(c.o.Home)
		}
		return found
	}
	before := look(ctx)
	return func(ctx context.Context) (said string) {
		for i, after := range look(ctx) {
			now := changed(before[i], after)
			if now == "" {
				continue
			}
			text := fmt.Sprintf(left[i], now)
			if said = tool.JoinNotes(said, text); c.o.Warn != nil {
				c.o.Warn(text)
			}
		}
		return said
	}
}

// left are the sentences about what a command left.
var left = [...]string{
	"git would run programs because of this command's changes in %s; check them before you use git there",
	"git would use files elsewhere because of this command's changes in %s; check them before you use git there",
	"a shell or login would run what this command wrote to %s; check it before you open one",
}

// changed lists what is there now and was not, or not so.
func changed(before, after map[string]string) string {
	var now []string
	for path, state := range after {
		if before[path] != state {
			now = append(now, path)
		}
	}
	slices.Sort(now)
	return strings.Join(now, ", ")
}

// Temporary are the folders for what does not last, which commands may write to.
func Temporary() []string { return []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} }

// reach decides which hosts commands may reach now; nil if they may reach none.
func (c *Confiner) reach() *Reach {
	if c.o.Reach == nil {
		return nil
	}
	return c.o.Reach()
}

// hosts are those that the settings name, while commands may reach them.
func (c *Confiner) hosts() (list []string) {
	if r := c.reach(); r != nil {
		for _, p := range r.Named {
			list = append(list, p.String())
		}
	}
	return list
}

// Bounds reports whether commands reach no other hosts than those of the list,
// where there is one.
func (c *Confiner) Bounds(ctx context.Context) bool {
	return len(c.hosts()) == 0 || c.o.Demand != Off && c.find(ctx).Backend() != sandbox.None
}

// writable are the folders that commands may write to, if they are there.
func (c *Confiner) writable() []string {
	return existing(slices.Concat([]string{c.o.Root}, Temporary(), c.o.Write))
}

// readingLimits allow no more than what programs that read put aside while they
// work: temporary files, and what the user's own filter for large files keeps.
func (c *Confiner) readingLimits() sandbox.Limits {
	temporary := slices.DeleteFunc(Temporary(), func(dir string) bool {
		return holds(dir, c.o.Root) || c.o.Home != "" && holds(dir, c.o.Home)
	})
	return sandbox.Limits{Write: existing(append(temporary, filepath.Join(c.o.Root, ".git", "lfs"))), Protect: existing(c.o.Protect)}
}

func holds(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// runsGit reports whether a command line runs git itself. Of a line that nobody
// read it is not known, so it does not.
func runsGit(line tool.Line) bool {
	r, _ := line.(risk.Report)
	return slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name == "git" })
}

// existing are the paths that are there, each once.
func existing(paths []string) (all []string) {
	for _, p := range paths {
		if p == "" || !filepath.IsAbs(p) || slices.Contains(all, p) {
			continue
		}
		if _, err := os.Lstat(strings.TrimSuffix(p, "/")); err == nil {
			all = append(all, p)
		}
	}
	return all
}
