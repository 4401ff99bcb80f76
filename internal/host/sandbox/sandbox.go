// Package sandbox confines commands by means of the kernel: they may write only where [Limits] allow,
// see what these do not hide, and use the network only if allowed.
//
// A [Sandbox] is what this machine supports, determined by testing. [Sandbox.Wrap] returns a command
// line prefix that confines the command after it, as [Sandbox.Report] describes for the user. On Linux
// that prefix is this program as a helper ([HelperName]), which confines itself and then becomes the
// command.
//
// It guarantees:
//
//  1. The helper runs a command confined or not at all. If it cannot set up
//     the limits, it exits with [SetupCode] and a message that
//     begins with [SetupPrefix].
//  2. The command cannot lift its limits: not as root, nor through namespaces,
//     links, renaming, devices, or processes outside.
//  3. The Report names every limit that is not enforced.
//  4. Exit code, environment, standard streams and working directory are those
//     of the unconfined command, and a signal that ended it can be
//     reported ([Line.WithReport]).
//  5. No process of a command outlives the one started for it, or the process
//     that started that.
//
// Backends, in order of preference:
//
//   - namespaces (Linux 5.12 or newer): a separate file system in which everything
//     is read-only except writable places, and hidden files are absent,
//     a /dev with only harmless devices, a separate process table, and,
//     without network, only a separate loopback. Places of service sockets
//     (/run, known folders in /tmp) appear empty.
//     Landlock is added where the kernel has it.
//   - bubblewrap: the same through the bwrap program, for systems that allow only
//     known programs to create namespaces. Differences: a command ended by
//     a signal has exit code 128 plus its number, and one whose group is
//     signalled is killed at once. Symbolic links cannot be protected. As root it
//     needs Landlock.
//   - landlock alone: nothing can be protected or hidden inside a writable place,
//     modes, owners and times of files can be changed anywhere,
//     without network there is no loopback either, and no Unix sockets
//     except pairs.
//   - seatbelt: sandbox-exec on macOS.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/program"
)

// Limits are what a command may do. The zero Limits forbid writing and the network.
type Limits struct {
	// Write are the writable directories and files, absolute. Missing ones are skipped. A device or service
	// socket listed here can be used.
	Write []string

	// Protect are paths inside Write that may not be written, moved, removed or, if missing, created. A
	// trailing slash means that a missing path would be a directory.
	Protect []string

	// Hide are hidden files and directories, absolute: a file cannot be opened, a directory appears empty.
	// Missing ones are skipped, unless a trailing slash means that a directory is to be created there and
	// hidden from the start. Sockets listed here cannot be reached.
	Hide []string

	// Pin are directories inside Write that cannot be moved or removed: their position decides whether their
	// content is hidden from the next command.
	Pin []string

	// Show are visible paths inside hidden directories, whether hidden by Hide or by the sandbox.
	Show []string

	// Network allows the network. Otherwise the command only has its own loopback: it can reach servers that
	// it starts, but none elsewhere on this machine.
	Network bool

	// Trace allows the command to trace its own processes, as debuggers do.
	Trace bool

	// Hosts are the hosts that the command can still reach, as text for the user. It reaches them only
	// through an [Outlet], served by the caller; without support for outlets ([Sandbox.CanOpenOutlets]) it
	// reaches none.
	Hosts []string

	// Bounds limit the resources of its processes together.
	Bounds Bounds
}

// Bounds limit the resources of all processes of a command together, where a helper attends to them.
// Zero means no limit.
type Bounds struct {
	Memory    int64 // bytes
	Processes int   // processes and threads
}

// Backend names.
const (
	Namespaces = "namespaces"
	Bubblewrap = "bubblewrap"
	Landlock   = "landlock"
	Seatbelt   = "seatbelt"
	None       = "none"
)

const (
	// HelperName is the first argument that makes the program a command's helper.
	HelperName = "__sandbox"

	// SetupCode is the exit code of a helper that could not confine itself or start the command.
	SetupCode = 126

	// SetupPrefix begins the message of such a helper on standard error.
	SetupPrefix = "coder sandbox: "
)

// Landlock versions that added features.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiTCP      = 4
	abiScopes   = 6
	abiSockets  = 9
	abiUDP      = 10
)

// ErrUnavailable reports that commands cannot be confined on this machine.
var ErrUnavailable = errors.New("commands cannot be confined on this machine")

// Options configure [Find].
type Options struct {
	Exe          string           // full path of this program, or another with this package
	Launcher     program.Launcher // finds other programs; zero finds none
	Backend      string           // if not empty, the only backend to test
	ProbeTimeout time.Duration    // time limit per backend test; zero means two minutes
}

// Sandbox is what this machine supports to confine commands. It is safe for concurrent use. The nil
// Sandbox supports nothing.
type Sandbox struct {
	backend     string
	prefix      []string // arguments before the helper, if any
	exe         string
	abi         int // Landlock version; 0 if there is none
	limitations []string

	mu           sync.Mutex // guards the fields below
	resolved     map[string]string
	placeholders []string // placeholders for missing protected paths
}

// Find determines what this machine supports by testing, which takes as long as a command or two. It
// never fails; Backend and Report describe a machine that supports nothing. Being busy does not count as
// unsupported: Find uses a backend that did not answer in time, and commands that it then cannot confine
// do not run.
func Find(ctx context.Context, o Options) *Sandbox {
	found := &Sandbox{backend: None, exe: o.Exe, resolved: make(map[string]string)}
	for _, b := range backends(o) {
		if o.Backend != "" && o.Backend != b.name {
			continue
		}
		if err := b.probe(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			found.limitations = append(found.limitations, fmt.Sprintf("%s: %v", b.name, err))
			continue
		}
		found.backend, found.prefix, found.abi = b.name, b.prefix, b.abi
		break
	}
	return found
}

// backend is a way to confine commands.
type backend struct {
	name   string
	prefix []string
	abi    int
	probe  func(context.Context) error
}

// CanHide reports whether everything in l.Hide is hidden.
func (s *Sandbox) CanHide(l Limits) bool {
	return s.CanProtect() || s.Backend() == Landlock && !slices.ContainsFunc(l.Hide, l.writable)
}

// CanOpenOutlets reports whether commands without network can have an [Outlet].
func (s *Sandbox) CanOpenOutlets() bool {
	return s.Backend() == Namespaces || s.Backend() == Bubblewrap
}

// CanProtect reports whether paths in writable places can be protected.
func (s *Sandbox) CanProtect() bool {
	return slices.Contains([]string{Namespaces, Bubblewrap, Seatbelt}, s.Backend())
}

// Backend returns the name of the backend, or None.
func (s *Sandbox) Backend() string {
	if s == nil || s.backend == "" {
		return None
	}
	return s.backend
}

// Limitations returns why better backends cannot be used, one line each.
func (s *Sandbox) Limitations() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.limitations)
}

// Wrap returns the line that confines a command to l. It returns ErrUnavailable, or an error about a
// limit that is not possible.
//
// A missing protected path needs a placeholder so that nobody creates it: Wrap puts an empty file or
// directory there until Close.
func (s *Sandbox) Wrap(l Limits) (Wrapper, error) {
	if s.Backend() == None {
		return Wrapper{}, ErrUnavailable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	places, err := s.resolveLimits(l)
	if err != nil {
		return Wrapper{}, message.Errorf("confine command: %w", err)
	}
	return s.newWrapper(places), nil
}

// newWrapper returns the line for resolved limits.
func (s *Sandbox) newWrapper(p resolvedLimits) Wrapper {
	switch s.backend {
	case Seatbelt:
		return Wrapper{Argv: append(slices.Clone(s.prefix), "-p", seatbeltProfile(p))}
	case Bubblewrap:
		line := append(slices.Clone(s.prefix), bwrapArgs(p)...)
		line = append(line, helperArgv(s.exe, helperSpec{stage: stageBwrap, resolvedLimits: p})...)
		outside := helperSpec{stage: stageOpen, confined: true,
			resolvedLimits: resolvedLimits{bounds: p.bounds, outlet: p.outlet}, argv: line}
		return supervisedWrapper(helperArgv(s.exe, outside), p.bounds) // processes started by bwrap do not always die with it
	case Landlock:
		return supervisedWrapper(helperArgv(s.exe, helperSpec{stage: stageLandlock, resolvedLimits: p}), p.bounds)
	default:
		return namespaceWrapper(s.exe, helperSpec{resolvedLimits: p})
	}
}

// namespaceWrapper returns the line of a helper in new namespaces.
func namespaceWrapper(exe string, o helperSpec) Wrapper {
	o.stage, o.outerNamespace, o.starter = stageNamespaces, mountNamespace(), ownNumber()
	return Wrapper{Argv: helperArgv(exe, o), Attr: newNamespaces(o.network), Init: true, bounds: o.bounds}
}

func helperArgv(exe string, o helperSpec) []string {
	return append([]string{exe, HelperName}, o.args()...)
}

// Supervised returns a line that does not confine its command: it only ensures that no process outlives
// the command or its starter, and that they keep within bounds. exe is as in [Options]. If that is not
// supported, the line is zero.
func Supervised(exe string, b Bounds) Wrapper {
	if runtime.GOOS != "linux" || exe == "" {
		return Wrapper{}
	}
	return supervisedWrapper(helperArgv(exe, helperSpec{stage: stageOpen, resolvedLimits: resolvedLimits{bounds: b}}), b)
}

// supervisedWrapper returns the line of a helper that ends the other processes itself. When coder dies, the
// helper gets a signal it can handle, because a killed helper could not end them.
func supervisedWrapper(argv []string, b Bounds) Wrapper {
	return Wrapper{Argv: argv, Attr: terminateWithParent, Init: true, bounds: b}
}

// Close removes the placeholders that are still empty, and what [Line.UseGroup] created. Running commands
// are then less protected.
func (s *Sandbox) Close() error {
	removeUnusedGroups()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range slices.Backward(s.placeholders) {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() && info.Size() > 0 {
			continue
		}
		_ = os.Remove(path) // fails for a directory in use, since it is not empty
	}
	s.placeholders = nil
	return nil
}

// Report lists what is and is not enforced, in short phrases for the user.
type Report struct {
	Backend     string
	Enforced    []string
	NotEnforced []string

	// Complete reports that all requested limits are enforced. NotEnforced may list more than was requested.
	Complete bool
}

// Report describes what Wrap with the same limits enforces.
func (s *Sandbox) Report(l Limits) Report {
	r := Report{Backend: s.Backend(), Complete: true}
	writes := "no writes except to devices such as /dev/null"
	if len(l.Write) > 0 {
		writes = "writes only below " + joinPaths(l.Write)
	}
	var inside []string // protected paths inside writable ones, by name
	for _, path := range l.Protect {
		path = filepath.Clean(path)
		if l.writable(path) {
			inside = append(inside, path)
		}
	}
	protects := "no changes to " + joinPaths(inside)
	switch r.Backend {
	case None:
		r.addNotEnforced(writes)
		if len(inside) > 0 {
			r.addNotEnforced(protects)
		}
		if len(l.Hide) > 0 {
			r.addNotEnforced("secret files hidden")
		}
		switch {
		case l.Network:
		case len(l.Hosts) > 0:
			r.addNotEnforced("network only to " + summarizeHosts(l.Hosts))
		default:
			r.addNotEnforced("no network")
		}
		return r
	case Landlock:
		r.Enforced = append(r.Enforced, writes)
		r.addNotEnforced("no changes to modes, owners and times of files elsewhere")
		if len(inside) > 0 {
			r.addNotEnforced(protects)
		}
		if len(l.Hide) > 0 {
			r.Enforced = append(r.Enforced, "secret files outside the workspace hidden")
		}
		if slices.ContainsFunc(l.Hide, l.writable) {
			r.addNotEnforced("secret files in the workspace hidden")
		}
	default:
		r.Enforced = append(r.Enforced, writes)
		if len(inside) > 0 {
			r.Enforced = append(r.Enforced, protects)
		}
		if len(l.Hide) > 0 {
			r.Enforced = append(r.Enforced, "secret files hidden")
		}
	}
	switch {
	case l.Network:
		r.NotEnforced = append(r.NotEnforced, "the network can be used")
	case len(l.Hosts) > 0 && s.CanOpenOutlets():
		r.Enforced = append(r.Enforced, "network only to "+summarizeHosts(l.Hosts)+", by HTTP and HTTPS through a proxy")
	case len(l.Hosts) > 0:
		r.Enforced = append(r.Enforced,
			"no network, not even to hosts of safety.network: that needs namespaces or bubblewrap")
	case r.Backend == Namespaces || r.Backend == Bubblewrap:
		r.Enforced = append(r.Enforced, "no network except its own loopback")
	default:
		r.Enforced = append(r.Enforced, "no network")
	}
	s.reportExtras(&r, l)
	return r
}

// reportExtras adds what was not requested but is worth knowing.
func (s *Sandbox) reportExtras(r *Report, l Limits) {
	if r.Backend == Seatbelt {
		r.NotEnforced = append(r.NotEnforced, "system services can be asked to start programs",
			"signals reach other programs")
		if l.Bounds != (Bounds{}) {
			r.NotEnforced = append(r.NotEnforced, "memory and processes are not bounded")
		}
		return
	}
	own := r.Backend != Landlock // separate process table
	if own || s.abi >= abiScopes {
		r.Enforced = append(r.Enforced, "no signals to other programs")
	} else {
		r.NotEnforced = append(r.NotEnforced, "signals reach other programs")
	}
	switch {
	case s.abi >= abiSockets:
		r.Enforced = append(r.Enforced, "no sockets of other programs except where it may write")
	case r.Backend == Landlock:
		r.Enforced = append(r.Enforced, "no Unix sockets")
	default:
		r.Enforced = append(r.Enforced, "sockets of services hidden")
		r.NotEnforced = append(r.NotEnforced, "sockets in unusual places can be reached")
	}
	if s.abi < abiScopes && l.Network && own {
		r.NotEnforced = append(r.NotEnforced, "sockets without a file can be reached")
	}
	if s.abi < 1 {
		r.NotEnforced = append(r.NotEnforced, "only one layer: no Landlock support in the kernel")
	}
}

// writable reports whether a path is in a writable place, judging only by name.
func (l Limits) writable(path string) bool {
	return slices.ContainsFunc(l.Write, func(dir string) bool {
		return isWithin(filepath.Clean(path),
			filepath.Clean(dir))
	})
}

// addNotEnforced records a requested limit that is not enforced.
func (r *Report) addNotEnforced(what string) {
	r.NotEnforced = append(r.NotEnforced, what)
	r.Complete = false
}

// summarizeHosts names the first few of hosts.
func summarizeHosts(hosts []string) string {
	const most = 8
	if len(hosts) <= most {
		return strings.Join(hosts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(hosts[:most], ", "), len(hosts)-most)
}

// joinPaths names each of paths once.
func joinPaths(paths []string) string {
	var once []string
	for _, p := range paths {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return strings.Join(once, ", ")
}

// Wrapper confines a command: a program and its first arguments to put before the command, and requirements
// for starting the process. The zero Line confines nothing.
type Wrapper struct {
	Argv []string
	Attr func(*syscall.SysProcAttr) // may be nil

	// Init reports that the process is the first of the command's: none of the others outlives it, all end
	// when it gets SIGTERM, and all end when its starter dies, in whatever way.
	Init bool

	// Journal, if set, must be passed to the process as descriptor [JournalFD].
	Journal *os.File

	bounds Bounds // resource limits of its processes together
}

// UseGroup returns a replacement for Argv for just one command: where supported, the kernel then enforces
// the bounds on its processes. Call release when the process has ended.
func (l Wrapper) UseGroup() (argv []string, release func()) { return useGroup(l.Argv, l.bounds) }

// WithReport returns a line that reports how the command ended, see [ExitStatus], to a pipe passed as descriptor
// [ReportFD]. It is for lines with Init, whose own exit code cannot distinguish a signal from a number.
func (l Wrapper) WithReport() Wrapper {
	if l.Init {
		l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--tell") // after the program and HelperName
	}
	return l
}

// Apply makes a command that is not yet started run through the line. Its program, environment,
// directory and streams stay the same.
func (l Wrapper) Apply(cmd *program.Cmd) {
	if len(l.Argv) == 0 {
		return
	}
	argv := slices.Clone(cmd.Args)
	argv[0] = cmd.Path
	cmd.Path, cmd.Args = l.Argv[0], append(slices.Clone(l.Argv), argv...)
	if l.Journal != nil {
		for len(cmd.ExtraFiles) < JournalFD-2 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
		}
		cmd.ExtraFiles[JournalFD-3] = l.Journal
	}
	if l.Attr != nil {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = new(syscall.SysProcAttr)
		}
		l.Attr(cmd.SysProcAttr)
	}
}

// ReportFD is the descriptor on which a helper reports how the command ended, in the form of [End.String].
const ReportFD = 3

// ExitStatus reports how a command ended.
type ExitStatus struct {
	Code    int            // exit code, if no signal ended it
	Signal  syscall.Signal // signal that ended it, or 0
	Stopped bool           // processes were still running and were stopped
}

func (e ExitStatus) String() string {
	return fmt.Sprintf("%d %d %t\n", e.Code, int(e.Signal), e.Stopped)
}
