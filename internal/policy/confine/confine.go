// Package confine decides within which bounds each command of a session runs: where it may write, what it may
// not touch, whether it may use the network. It probes the machine's abilities when the first command comes.
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

	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy/risk"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// These values say how much confinement is required of the machine.
const (
	Auto    = "auto"    // as far as the machine can
	Require = "require" // everything, or nothing runs
	Off     = "off"
)

// Options configures the confinement of a session's commands.
type Options struct {
	Demand   string
	Exe      string // coder's executable, which confines commands by running itself
	Launcher program.Launcher

	Root, Home string
	Write      []string // additional writable folders
	// NeededWrite, which may be nil, lists the folders of Write that tools on this machine require. Missing ones
	// are created before the first command that may write.
	NeededWrite func() []string
	Protect     []string    // additional paths that commands may not write
	Network     func() bool // may commands use it now?
	AnyNetwork  bool        // may they in any mode?
	// HostPolicy, which may be nil, returns what decides which hosts commands may
	// reach while the network is off, or nil while they may reach none.
	HostPolicy func() *HostPolicy

	// ToolChains are folders in the home with programs; commands see them.
	ToolChains []string
	// StateDirs are coder's own folders, which no command sees.
	StateDirs []string
	// Sockets, which may be nil, lists the sockets named in the environment. Agent is the socket that acts
	// for the user on other machines, and Runtime the folder of the user's sockets; both may be empty.
	Sockets        func() []string
	Agent, Runtime string
	// Secrets, which may be nil, lists the secret files of the workspace
	// by full path, and reports whether the list is complete.
	Secrets func(ctx context.Context) (files []string, all bool)
	// NamedFiles, which may be nil, lists the full paths of the files that a line names, which it was allowed to read.
	NamedFiles func(r risk.Report) []string
	// Tracked, which may be nil, returns those of files that git tracks.
	Tracked func(files []string) []string
	// FrozenPaths, which may be nil, lists by full path what no command may write.
	FrozenPaths func(ctx context.Context) ([]string, error)
	// Repositories, which may be nil, lists the folders below the workspace that are repositories of their own.
	Repositories func(ctx context.Context) []string
	// DeniedPaths, which may be nil, lists files and folders outside the workspace that no command may read,
	// even if it names them, and exceptions inside. Denies reports whether a file is denied.
	DeniedPaths func() (hide, show []string)
	IsDenied    func(file string) bool
	// Projects, which may be nil, lists the folders below the workspace
	// with a .coder folder. No command sees its session records.
	Projects func(ctx context.Context) []string

	// MemoryMB and Processes limit commands without the user's approval; zero means no limit. A negative
	// MemoryMB means half of the machine's memory.
	MemoryMB, Processes int

	// WithheldEnv, which may be nil, lists the variables, as NAME=value, that commands get only if their programs
	// need them. Vouches, which may be nil, reports whether a user's rule names a whole line and allows it.
	WithheldEnv func() []string
	IsVouched   func(r risk.Report) bool

	// Rerun is set if no user is present: approvals come from a record and
	// count for nothing else. Secrets outside the workspace stay hidden.
	Rerun bool

	Warn func(string) // warns the user, once, about what is not enforced
	// Backend, if not empty, is the only sandbox to try.
	Backend string
	// LooksIncomplete, which may be nil, replaces [sandbox.LooksIncomplete].
	LooksIncomplete func() bool
	// OnUnconfined, which may be nil, is called before anything runs unconfined.
	OnUnconfined func()
	// Journal, which may be nil, records the files that commands and helpers touch.
	Journal *sandbox.Journal
}

// ErrUnavailable means that the machine cannot enforce everything required.
var ErrUnavailable = errors.New("commands cannot be confined as required")

// Confiner confines the commands of one session.
type Confiner struct {
	o          Options
	once       sync.Once
	sandbox    *sandbox.Sandbox
	warnOnce   sync.Once
	cachesOnce sync.Once
	// links and profiles, computed once, are paths behind links of the
	// home: what commands see there, and what they may not change.
	links, profiles func() []string
}

// New returns a Confiner. It does not probe the machine yet.
func New(o Options) *Confiner {
	if o.LooksIncomplete == nil {
		o.LooksIncomplete = sandbox.LooksIncomplete
	}
	c := &Confiner{o: o}
	c.links = sync.OnceValue(c.linkTargets)
	c.profiles = sync.OnceValue(func() []string { return sandbox.ProtectedLinkTargets(o.Home) })
	return c
}

func (c *Confiner) findSandbox(ctx context.Context) *sandbox.Sandbox {
	c.once.Do(func() {
		c.sandbox = sandbox.Find(context.WithoutCancel(ctx),
			sandbox.Options{Exe: c.o.Exe, Launcher: c.o.Launcher, Backend: c.o.Backend})
	})
	return c.sandbox
}

// Close removes what the sandbox put in place for the session.
func (c *Confiner) Close() error { return c.sandbox.Close() }

// Command returns the confinement of one command line, from the analysis that was judged.
func (c *Confiner) Command(ctx context.Context, read tool.Line) (bash.Confinement, error) {
	confined, err := c.confinement(ctx, read)
	confined.Env, confined.MissingVariables = c.lineVariables(ctx, read)
	confined.Env = append(confined.Env, c.tempEnv(ctx)...)
	return confined, err
}

// confinement returns where a command may write, what it sees and whether it has the network.
func (c *Confiner) confinement(ctx context.Context, read tool.Line) (bash.Confinement, error) {
	if r, ok := read.(risk.Report); !ok || !r.ReadOnly {
		c.makeCaches()
	}
	limits, err := c.limits(ctx, read, tool.IsApproved(ctx))
	if err != nil {
		return bash.Confinement{}, err
	}
	if !tool.IsApproved(ctx) || c.o.Rerun {
		limits.Bounds = c.bounds()
	}
	reach := c.hostPolicy()
	if reach == nil { // the mode may have changed
		limits.Hosts = nil
	}
	line, report, err := c.wrap(ctx, limits)
	if err != nil || report.Backend == sandbox.None {
		bare := c.withJournal(c.unconfinedWrapper(limits.Bounds))
		bare.CheckAfter = c.watchLine(ctx, read)
		return bare, err
	}
	confined := newConfinement(line)
	if r, _ := read.(risk.Report); !r.ReadOnly { // else it cannot write in the workspace
		confined = c.withJournal(line)
	}
	confined.Summary, confined.CheckAfter = summarize(report), c.watchLine(ctx, read)
	if len(limits.Hosts) > 0 && c.findSandbox(ctx).CanOpenOutlets() {
		confined.OpenNetwork = func(ctx context.Context) (bash.NetworkAccess,
			error) {
			return reach.openProxy(ctx, read.Original())
		}
	}
	confined.ExplainFailure = func(code int, stderr string) string {
		if why, failed := sandbox.SetupFailed(code, stderr); failed {
			return "the sandbox could not be set up (" + why + ")"
		}
		return sandbox.BlockedReason(code, stderr, limits)
	}
	return confined, nil
}

// bounds returns the limits for a command without the user's approval.
func (c *Confiner) bounds() sandbox.Bounds {
	b := sandbox.Bounds{Memory: int64(c.o.MemoryMB) << 20, Processes: c.o.Processes}
	if b.Memory < 0 {
		b.Memory = max(sandbox.MachineMemory()/2, minMemory)
	}
	return b
}

// minMemory is what builds and tests need on a small machine.
const minMemory = 2 << 30

// Describe describes what a command will be confined to, or returns "" if it will not be.
func (c *Confiner) Describe(ctx context.Context, read tool.Line) (string, error) {
	if c.o.Demand == Off {
		return "", nil
	}
	limits, err := c.outlineLimits(ctx, read)
	if err != nil {
		return "", err
	}
	report, err := c.report(ctx, limits)
	if err != nil || report.Backend == sandbox.None {
		return "", err
	}
	return summarize(report), nil
}

// outlineLimits returns the limits of a line as far as a report needs them: where it
// may write, and one folder that it does not see. The rest of what is hidden
// is determined when the line runs, unless the report depends on it.
func (c *Confiner) outlineLimits(ctx context.Context, line tool.Line) (sandbox.Limits, error) {
	state := c.stateDirs()
	if _, foreign := line.(bash.ForeignLine); foreign || len(state) == 0 || !c.findSandbox(ctx).CanProtect() {
		return c.limits(ctx, line, false)
	}
	l, err := c.writeLimits(ctx, line, false)
	l.Hide = state
	return l, err
}

// report returns which limits will be enforced. It warns the user, once, about the others.
func (c *Confiner) report(ctx context.Context, limits sandbox.Limits) (sandbox.Report, error) {
	report := c.findSandbox(ctx).Report(limits)
	if c.o.Demand == Require && !report.Complete {
		return report, unavailableError(report)
	}
	c.warn(report)
	return report, nil
}

// wrap returns the command line that enforces limits on a command, and what it enforces.
func (c *Confiner) wrap(ctx context.Context, limits sandbox.Limits) (sandbox.Wrapper, sandbox.Report, error) {
	if c.o.Demand == Off {
		return c.unconfinedWrapper(limits.Bounds), sandbox.Report{Backend: sandbox.None}, nil
	}
	report, err := c.report(ctx, limits)
	if err != nil {
		return sandbox.Wrapper{}, report, err
	}
	if report.Backend == sandbox.None {
		return c.unconfinedWrapper(limits.Bounds), report, nil
	}
	line, err := c.findSandbox(ctx).Wrap(limits)
	return line, report, err
}

// Supervised returns how to run a command unconfined: none of its processes outlives it, or coder.
func (c *Confiner) Supervised(ctx context.Context, read tool.Line) bash.Confinement {
	free := c.withJournal(c.unconfinedWrapper(sandbox.Bounds{}))
	free.CheckAfter = c.watchLine(ctx, read)
	return free
}

func (c *Confiner) unconfinedWrapper(b sandbox.Bounds) sandbox.Wrapper {
	if c.o.OnUnconfined != nil {
		c.o.OnUnconfined()
	}
	return sandbox.Supervised(c.o.Exe, b)
}

func (c *Confiner) withJournal(l sandbox.Wrapper) bash.Confinement {
	return newConfinement(c.o.Journal.Attach(l))
}

// newConfinement returns the confinement of a line without a journal.
func newConfinement(l sandbox.Wrapper) bash.Confinement {
	l = l.WithReport()
	return bash.Confinement{Wrapper: l.Argv, Attr: l.Attr, Init: l.Init, Journal: l.Journal, TightenWrapper: l.UseGroup}
}

// Helper describes the bounds of a program that works for coder beside the commands, such as a language
// server. The zero Helper may write where commands may and has no network.
type Helper struct {
	ReadOnly  bool     // only caches and temporary folders are writable, not the workspace
	Network   bool     // it may use the network if commands may
	AnyMode   bool     // in any mode: it outlives the mode, and each of its calls is judged
	Write     []string // additional writable folders, absolute
	OnlyWrite bool     // only Write is writable
	Hide      []string // hidden paths, absolute; if they cannot be hidden, it does not run
	Required  bool     // it runs only in a sandbox, unless the user switched that off
}

// Helper confines a program that has not started yet, as far as this machine can, and reports whether the
// bounds are enforced. The program keeps its environment, directory and streams, which may be pipes to coder.
// When its process or coder ends, for any reason, everything it started ends too. If everything is required
// and cannot be enforced, Helper returns an error, and the program must not be started.
func (c *Confiner) Helper(ctx context.Context, cmd *program.Cmd, h Helper) (confined bool, err error) {
	if !h.OnlyWrite && !h.ReadOnly {
		c.makeCaches()
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return false, err
	}
	limits.Network = h.Network && (limits.Network || h.AnyMode && c.o.AnyNetwork)
	limits.Hosts = nil
	if h.ReadOnly {
		limits.Write = slices.DeleteFunc(limits.Write, func(dir string) bool {
			return contains(dir, c.o.Root) ||
				contains(c.o.Root, dir)
		})
	}
	if h.OnlyWrite {
		limits.Write = nil
	}
	limits.Write = existingPaths(append(limits.Write, h.Write...))
	if err := c.hide(ctx, &limits, h.Hide); err != nil {
		return false, err
	}
	line, report, err := c.wrap(ctx, limits)
	switch {
	case err != nil:
		return false, err
	case h.Required && report.Backend == sandbox.None && c.o.Demand != Off:
		return false, unavailableError(report)
	}
	if !h.ReadOnly {
		line = c.o.Journal.Attach(line)
	}
	line.Apply(cmd)
	return report.Complete && report.Backend != sandbox.None, nil
}

// Git confines a git of coder's own, not started yet, to write only in the folders
// of a repository's own files and in temporary folders: a command's link cannot
// lead it elsewhere. The git settings in these folders still apply.
func (c *Confiner) Git(ctx context.Context, cmd *program.Cmd, dirs ...string) error {
	limits := sandbox.Limits{Write: existingPaths(slices.Concat(TempDirs(), dirs))}
	for _, dir := range dirs {
		limits.Protect = append(limits.Protect, sandbox.ProtectedInGit(dir)...)
	}
	line, _, err := c.wrap(ctx, limits)
	line.Apply(cmd)
	return err
}

// RunUnconfined lets a program that has not started yet run without
// bounds. None of its processes outlives it, or coder.
func (c *Confiner) RunUnconfined(cmd *program.Cmd) {
	c.o.Journal.Attach(c.unconfinedWrapper(sandbox.Bounds{})).Apply(cmd)
}

// Summary describes in one line how a command would be confined.
func (c *Confiner) Summary(ctx context.Context) string {
	if c.o.Demand == Off {
		return Off
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return err.Error()
	}
	return summarize(c.findSandbox(ctx).Report(limits))
}

func summarize(r sandbox.Report) string {
	text := r.Backend + ": " + strings.Join(r.Enforced, "; ")
	if !r.Complete {
		text += "; not enforced: " + strings.Join(r.NotEnforced, "; ")
	}
	return text
}

// Check reports, before anything runs, whether the required confinement is available. If there are
// signs that part of it is not, Check warns the user; otherwise the first command finds out.
func (c *Confiner) Check(ctx context.Context) error {
	if c.o.Demand == Auto && c.o.LooksIncomplete() {
		// These are typical limits, without a scan of the workspace.
		in := func(name string) string { return filepath.Join(c.o.Root, name) }
		c.warn(c.findSandbox(ctx).Report(sandbox.Limits{
			Write: []string{c.o.Root}, Protect: []string{in(".git"), in(".coder")}, Hide: []string{in(".env")},
			Network: c.o.Network(), Hosts: c.allowedHosts(),
		}))
	}
	if c.o.Demand != Require {
		return nil
	}
	limits, err := c.limits(ctx, nil, false)
	if err != nil {
		return err
	}
	if report := c.findSandbox(ctx).Report(limits); !report.Complete {
		return unavailableError(report)
	}
	return nil
}

func (c *Confiner) warn(r sandbox.Report) {
	if !r.Complete && c.o.Warn != nil {
		c.warnOnce.Do(func() { c.o.Warn("the sandbox does not enforce: " + strings.Join(r.NotEnforced, "; ")) })
	}
}

func unavailableError(r sandbox.Report) error {
	return message.Errorf("%w; this machine does not enforce: %s", ErrUnavailable, strings.Join(r.NotEnforced, "; "))
}

// limits returns what a command may do: write in the workspace, in temporary folders and in other named
// folders, and use the network if it is on. A line that runs git may write what git needs, but not
// git's other files; a line judged read-only may only read. Nothing frozen is writable, and secrets are
// hidden. Only a line that the user approved, unchanged, may trace its processes and use the sockets of
// other programs: through them it can act outside the sandbox.
func (c *Confiner) limits(ctx context.Context, line tool.Line, approved bool) (l sandbox.Limits, err error) {
	foreign, isForeign := line.(bash.ForeignLine)
	if isForeign {
		line = foreign.Line
	}
	approved = approved && !isForeign && !c.o.Rerun
	if l, err = c.writeLimits(ctx, line, approved); err != nil {
		return l, err
	}
	l.Trace = approved
	// The hidden paths are secrets that the line does not name and
	// none of its programs needs, and always coder's own folder.
	r, _ := line.(risk.Report)
	var named []string
	if isForeign { // its named files were not allowed
		r = risk.Report{}
	} else if c.o.NamedFiles != nil {
		named = c.o.NamedFiles(r)
	}
	needy := c.allowedPrograms(r)
	if c.o.Rerun {
		needy = nil
		outside := func(file string) bool { return !contains(c.o.Root, file) }
		for _, file := range existingPaths(named) {
			if outside(file) && secret.IsSecretFile(file) {
				l.Hide = append(l.Hide, file)
			}
		}
		named = slices.DeleteFunc(slices.Clone(named), outside)
	}
	state := c.stateDirs()
	for _, dir := range state {
		l.Hide = append(l.Hide, dir)
		for _, name := range readableParts {
			l.Show = append(l.Show, filepath.Join(dir, name))
		}
	}
	records := c.recordDirs(ctx, !r.ReadOnly)
	l.Hide = append(l.Hide, records...)
	for _, dir := range records { // under another name than .coder, they would be ordinary files
		l.Pin = append(l.Pin, filepath.Dir(strings.TrimSuffix(dir, "/")))
	}
	home, sockets := c.readHome(), c.hiddenSockets()
	if approved {
		agents := c.agentSockets(c.allowedPrograms(r))
		l.Show = append(l.Show, agents...)
		sockets = slices.DeleteFunc(sockets, func(place string) bool {
			return slices.ContainsFunc(agents, func(agent string) bool { return contains(agent, place) })
		})
	} else {
		named = slices.DeleteFunc(slices.Clone(named), func(name string) bool {
			return isSocket(name) || slices.ContainsFunc(sockets, func(place string) bool { return contains(place, name) })
		})
	}
	hidden, needed := c.secretPlaces(home, needy)
	l.Show = append(l.Show, needed...)
	if line != nil && !approved {
		dotfiles, visible := c.dotfiles(home)
		hidden, l.Show = append(hidden, dotfiles...), append(l.Show, visible...)
	}
	inside, inTree := insideTest(state), c.workspaceSecrets(ctx, r)
	for _, file := range inTree {
		l.Pin = append(l.Pin, c.pinnedDirs(file)...)
	}
	for _, place := range slices.Concat(hidden, inTree, sockets) {
		if inside(place) || slices.Contains(named, place) || slices.Contains(l.Show, place) || contains(place, c.o.Root) {
			continue
		}
		l.Hide = append(l.Hide, place)
		for _, name := range named {
			if contains(place, name) && !inside(name) {
				l.Show = append(l.Show, name)
			}
		}
	}
	if c.o.DeniedPaths != nil {
		hide, show := c.o.DeniedPaths()
		l.Hide, l.Show = append(l.Hide, existingPaths(hide)...), append(l.Show, existingPaths(show)...)
	}
	return l, c.hide(ctx, &l, foreign.Hide)
}

// writeLimits returns the limits of a line for writing and for the network.
func (c *Confiner) writeLimits(ctx context.Context, line tool.Line, approved bool) (l sandbox.Limits, err error) {
	if r, ok := line.(risk.Report); ok && r.ReadOnly {
		l = c.readingLimits()
	} else {
		l = sandbox.Limits{Network: c.o.Network(), Hosts: c.allowedHosts(), Write: c.grantedDirs(ctx)}
		protect := slices.Clone(c.o.Protect)
		for _, dir := range l.Write { // the home may be in any of them, even in a temporary one
			if dir == c.o.Root || c.o.Home != "" && contains(dir, c.o.Home) {
				protect = append(protect, sandbox.ProtectedIn(dir, c.o.Home)...)
			}
		}
		if !approved {
			protect = append(protect, slices.DeleteFunc(slices.Clone(c.profiles()),
				func(p string) bool { return contains(p, c.o.Root) })...)
		}
		if runsGit(line) {
			protect = slices.DeleteFunc(protect, func(p string) bool { return p == filepath.Join(c.o.Root, ".git")+"/" })
		}
		l.Protect = append(existingPaths(protect), c.repositories(ctx, runsGit(line))...)
	}
	if c.o.FrozenPaths != nil {
		frozen, err := c.o.FrozenPaths(ctx)
		if err != nil {
			return l, message.Errorf("find the frozen files: %w", err)
		}
		l.Protect = append(l.Protect, frozen...)
	}
	return l, nil
}

// stateDirs returns coder's own folders, which no command sees, except one that contains the workspace.
func (c *Confiner) stateDirs() []string {
	return slices.DeleteFunc(existingPaths(c.o.StateDirs), func(dir string) bool { return contains(dir, c.o.Root) })
}

// insideTest returns a function that reports whether a path is in one of
// the folders, through any links. Its answers are soon out of date.
func insideTest(dirs []string) func(path string) bool {
	var resolved []string
	for _, dir := range dirs {
		resolved = append(resolved, realPath(dir))
	}
	return func(path string) bool {
		for i, dir := range dirs {
			if contains(dir, path) || contains(resolved[i], realPath(path)) {
				return true
			}
		}
		return false
	}
}

// hide adds paths to the hidden ones, or fails if they cannot be hidden.
func (c *Confiner) hide(ctx context.Context, l *sandbox.Limits, paths []string) error {
	paths = existingPaths(paths)
	if len(paths) > 0 && (c.o.Demand == Off || !c.findSandbox(ctx).CanHide(sandbox.Limits{Write: l.Write, Hide: paths})) {
		return message.Errorf("%s cannot be hidden here, and may have unapproved content", strings.Join(paths, ", "))
	}
	l.Hide = append(l.Hide, paths...)
	return nil
}

// repositories returns what is not writable in the repositories of the workspace and below it. Commands
// may not create files there that git would obey, either.
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
			protect = append(protect, slices.DeleteFunc(sandbox.ProtectedInForGit(dir),
				func(p string) bool { return !contains(at, p) })...)
		default:
			protect = append(protect, at)
		}
	}
	return protect
}

// watchLine returns [Confiner.Watch] for a line that may write.
func (c *Confiner) watchLine(ctx context.Context, line tool.Line) func(context.Context) string {
	if foreign, ok := line.(bash.ForeignLine); ok {
		line = foreign.Line
	}
	if r, _ := line.(risk.Report); r.ReadOnly {
		return nil
	}
	return c.Watch(ctx)
}

// Watch records the files here that git obeys, and the profiles in a writable home. It returns a function to
// call after something may have written: that returns what is new or changed, and warns the user.
func (c *Confiner) Watch(ctx context.Context) func(context.Context) string {
	if c.o.Repositories == nil {
		return func(context.Context) string { return "" }
	}
	look := func(ctx context.Context) (found [3]map[string]string) {
		writable := c.writable()
		found[0], found[1] = sandbox.FindPlanted(c.o.Root, c.o.Home, append(c.o.Repositories(ctx), writable...))
		if c.o.Home != "" && slices.ContainsFunc(writable, func(dir string) bool { return contains(dir, c.o.Home) }) {
			found[2] = sandbox.FindPlantedHome(c.o.Home)
		}
		return found
	}
	before := look(ctx)
	return func(ctx context.Context) (said string) {
		for i, after := range look(ctx) {
			now := changedPaths(before[i], after)
			if now == "" {
				continue
			}
			text := fmt.Sprintf(leftoverWarnings[i], now)
			if said = tool.JoinNotes(said, text); c.o.Warn != nil {
				c.o.Warn(text)
			}
		}
		return said
	}
}

// leftoverWarnings are the warnings about what a command left behind.
var leftoverWarnings = [...]string{
	"git would run programs because of this command's changes in %s; check them before you use git there",
	"git would use files elsewhere because of this command's changes in %s; check them before you use git there",
	"a shell or login would run what this command wrote to %s; check it before you open one",
}

// changedPaths lists the paths in after that are new or changed.
func changedPaths(before, after map[string]string) string {
	var now []string
	for path, state := range after {
		if before[path] != state {
			now = append(now, path)
		}
	}
	slices.Sort(now)
	return strings.Join(now, ", ")
}

// TempDirs returns the folders for temporary files, which commands may write to.
func TempDirs() []string { return []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} }

// hostPolicy returns what decides which hosts commands may reach now, or nil if they may reach none.
func (c *Confiner) hostPolicy() *HostPolicy {
	if c.o.HostPolicy == nil {
		return nil
	}
	return c.o.HostPolicy()
}

// allowedHosts returns the hosts in the settings, if commands may reach them now.
func (c *Confiner) allowedHosts() (list []string) {
	if r := c.hostPolicy(); r != nil {
		for _, p := range r.Allowed {
			list = append(list, p.String())
		}
	}
	return list
}

// LimitsHosts reports whether commands can reach only the listed hosts, if there is a list.
func (c *Confiner) LimitsHosts(ctx context.Context) bool {
	return len(c.allowedHosts()) == 0 || c.o.Demand != Off && c.findSandbox(ctx).Backend() != sandbox.None
}

// writable returns the existing folders that commands may write to.
func (c *Confiner) writable() []string {
	return existingPaths(slices.Concat([]string{c.o.Root}, TempDirs(), c.o.Write))
}

// readingLimits allow only what reading programs write while they work: temporary files, and the files
// of the user's own filter for large files.
func (c *Confiner) readingLimits() sandbox.Limits {
	temporary := slices.DeleteFunc(TempDirs(), func(dir string) bool {
		return contains(dir, c.o.Root) || c.o.Home != "" && contains(dir, c.o.Home)
	})
	return sandbox.Limits{Write: existingPaths(append(temporary, filepath.Join(c.o.Root, ".git", "lfs"))),
		Protect: existingPaths(c.o.Protect)}
}

func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// runsGit reports whether a command line runs git itself. It returns false for a line without analysis.
func runsGit(line tool.Line) bool {
	r, _ := line.(risk.Report)
	return slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name == "git" })
}

// existingPaths returns the paths that exist, each once.
func existingPaths(paths []string) (all []string) {
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
