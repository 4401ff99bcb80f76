// Package sandbox has the kernel confine commands: they may write only where
// [Limits] say, see what these do not hide, and reach the network only if these
// allow it.
//
// A [Sandbox] is what this machine can do, found by trying. Its [Sandbox.Wrap]
// gives the beginning of a command line that confines whatever is put after it,
// as [Sandbox.Report] says in words for people. On Linux that beginning is this
// program itself, called again as a helper ([HelperName]), which confines itself and
// then becomes the command.
//
// What it promises:
//
//  1. A command given to the helper runs confined or not at all. If the limits
//     cannot be set up the helper ends with [SetupCode] and a message that
//     begins with [SetupPrefix].
//  2. The command cannot lift its limits: not as root, nor through namespaces,
//     links, renaming, devices, or processes outside.
//  3. What is not enforced is said in the Report, never passed over.
//  4. Exit codes, the environment, the standard streams and the working
//     directory are those of the command run bare, and how a signal ended it can
//     be told ([Line.Telling]).
//  5. No process of a command outlives the one that was started for it, nor
//     whoever started that.
//
// Backends, in order of preference:
//
//   - namespaces (Linux 5.12 or newer): a file system of its own in which
//     everything is read-only but what may be written and nothing is that is
//     hidden, a /dev with only harmless devices, a process table of its own, and,
//     without network, a network that consists of its own loopback. Where sockets
//     of services lie (/run, known folders in /tmp) nothing is to be seen.
//     Landlock is put on top where the kernel has it.
//   - bubblewrap: the same through the bwrap program, for systems that let only
//     known programs make namespaces. It differs: a command that a signal
//     ended is reported as exit code 128 plus its number, and one whose group is
//     signalled is killed at once. Symbolic links cannot be protected. As root it
//     needs Landlock.
//   - landlock alone: nothing can be protected or hidden inside a place that may
//     be written, modes, owners and times of files can be changed anywhere,
//     without network there is no loopback either, and there are no Unix sockets
//     but pairs.
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

	"coder/internal/host/program"
)

// Limits are what a command may do. The zero Limits allow no writing and no
// network.
type Limits struct {
	// Write are the directories, and files, that may be written, absolute.
	// Those that do not exist are passed over. A device or a service's socket
	// listed here can be used.
	Write []string

	// Protect are paths inside them that may not be written, moved, removed or,
	// where they do not exist yet, made. A trailing slash says that what does
	// not exist would be a directory.
	Protect []string

	// Hide are files and directories that are not to be seen, absolute: a file
	// cannot be opened, a directory is empty. Those that do not exist are passed
	// over, unless a trailing slash says that a directory is to be made there, to
	// be hidden from the start. Sockets listed here cannot be reached.
	Hide []string

	// Pin are directories inside Write that cannot be moved or removed: where they
	// are decides whether something in them is hidden from the next command.
	Pin []string

	// Show are paths inside directories that are hidden, by us or by Hide, that
	// are to be seen all the same.
	Show []string

	// Network says that the network may be used. Otherwise there is none but a
	// loopback of the command's own: a server it starts can be reached by the
	// same command, one that runs elsewhere on this machine cannot.
	Network bool

	// Trace says that the command may trace its own processes, as debuggers do.
	Trace bool

	// Hosts are those that the command reaches all the same, in words for
	// people. It does so through an [Outlet] alone, which somebody else serves; where
	// there can be none ([Sandbox.HasOutlets]) it reaches nothing.
	Hosts []string

	// Bounds are what its processes may use together.
	Bounds Bounds
}

// Bounds are what all processes of a command may use together, where a helper
// attends to them. A zero bound is none.
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
	// HelperName is the first argument that makes the program the helper of a command.
	HelperName = "__sandbox"

	// SetupCode is the exit code of a helper that could not confine itself or
	// not start the command.
	SetupCode = 126

	// SetupPrefix begins the message of such a helper on standard error.
	SetupPrefix = "coder sandbox: "
)

// Versions of Landlock that brought something.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiTCP      = 4
	abiScopes   = 6
	abiSockets  = 9
	abiUDP      = 10
)

// ErrUnavailable says that commands cannot be confined on this machine.
var ErrUnavailable = errors.New("commands cannot be confined on this machine")

// Options are what a sandbox is found with.
type Options struct {
	Exe      string        // full path of this program, or of any other that has this package
	Door     program.Door  // finds other programs; none if zero
	Only     string        // if not empty, the one backend to try
	Patience time.Duration // with a backend that is tried; zero means two minutes
}

// Sandbox is what this machine can do to confine commands. It may be used by
// many goroutines at once. The nil Sandbox can do nothing.
type Sandbox struct {
	backend string
	through []string // what comes before the helper, if anything
	exe     string
	abi     int // of Landlock; 0 if there is none
	why     []string

	mu       sync.Mutex // guards the fields below
	resolved map[string]string
	made     []string // what stands in for protected paths that did not exist
}

// Find finds out what can be done, by doing it: it takes as long as running a
// command or two. It never fails; a machine that can do nothing is said to be
// so by Backend and Report. A busy machine is none that cannot: a backend that did
// not answer in time is used, and what it cannot confine does not run then.
func Find(ctx context.Context, o Options) *Sandbox {
	found := &Sandbox{backend: None, exe: o.Exe, resolved: make(map[string]string)}
	for _, b := range backends(o) {
		if o.Only != "" && o.Only != b.name {
			continue
		}
		if err := b.probe(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			found.why = append(found.why, fmt.Sprintf("%s: %v", b.name, err))
			continue
		}
		found.backend, found.through, found.abi = b.name, b.through, b.abi
		break
	}
	return found
}

// backend is one way to confine commands.
type backend struct {
	name    string
	through []string
	abi     int
	probe   func(context.Context) error
}

// Hides reports whether all that limits hide is hidden.
func (s *Sandbox) Hides(l Limits) bool {
	return s.Protects() || s.Backend() == Landlock && !slices.ContainsFunc(l.Hide, l.writable)
}

// HasOutlets reports whether commands without network can be given a [Outlet].
func (s *Sandbox) HasOutlets() bool { return s.Backend() == Namespaces || s.Backend() == Bubblewrap }

// Protects reports whether what lies where it may be written can be protected.
func (s *Sandbox) Protects() bool {
	return slices.Contains([]string{Namespaces, Bubblewrap, Seatbelt}, s.Backend())
}

// Backend is the name of the way commands are confined, None if they are not.
func (s *Sandbox) Backend() string {
	if s == nil || s.backend == "" {
		return None
	}
	return s.backend
}

// Why says why backends that would have been preferred cannot be used, one
// line each.
func (s *Sandbox) Why() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.why)
}

// Wrap returns what a command has to be run through so that it runs within
// limits. Its error is ErrUnavailable, or says what in the limits cannot be had.
//
// A protected path that does not exist cannot be made to stay so without
// something in its place: an empty file or directory is put there until Close.
func (s *Sandbox) Wrap(l Limits) (Line, error) {
	if s.Backend() == None {
		return Line{}, ErrUnavailable
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	places, err := s.places(l)
	if err != nil {
		return Line{}, fmt.Errorf("confine command: %w", err)
	}
	return s.line(places), nil
}

// line is the line for limits that were made out.
func (s *Sandbox) line(p places) Line {
	switch s.backend {
	case Seatbelt:
		return Line{Argv: append(slices.Clone(s.through), "-p", profile(p))}
	case Bubblewrap:
		line := append(slices.Clone(s.through), bwrapArgs(p)...)
		line = append(line, helper(s.exe, order{stage: stageBwrap, places: p})...)
		outside := order{stage: stageOpen, confined: true, places: places{bounds: p.bounds, outlet: p.outlet}, argv: line}
		return attended(helper(s.exe, outside), p.bounds) // what bwrap starts does not always die with it
	case Landlock:
		return attended(helper(s.exe, order{stage: stageLandlock, places: p}), p.bounds)
	default:
		return inOwnSpaces(s.exe, order{places: p})
	}
}

// inOwnSpaces is the line of a helper in namespaces of its own.
func inOwnSpaces(exe string, o order) Line {
	o.stage, o.outer, o.starter = stageNamespaces, mountSpace(), processNumber()
	return Line{Argv: helper(exe, o), Attr: inNamespaces(o.network), Init: true, bounds: o.bounds}
}

func helper(exe string, o order) []string {
	return append([]string{exe, HelperName}, o.args()...)
}

// Attended is the line of a command that is not confined: all that is seen to
// is that none of its processes outlives it, or whoever starts it, and that they keep
// within bounds. Exe is as in [Options]. Where that cannot be had it is the zero Line.
func Attended(exe string, b Bounds) Line {
	if runtime.GOOS != "linux" || exe == "" {
		return Line{}
	}
	return attended(helper(exe, order{stage: stageOpen, places: places{bounds: b}}), b)
}

// attended is the line of a helper that ends the others itself: it is asked to
// when we die, since it could do nothing more if it were killed.
func attended(argv []string, b Bounds) Line {
	return Line{Argv: argv, Attr: askedWhenWeDie, Init: true, bounds: b}
}

// Close removes what Wrap put in the place of protected paths, if it is still
// empty, and what was made for [Line.Hold]. Commands that still run are then less protected.
func (s *Sandbox) Close() error {
	dropGroups()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range slices.Backward(s.made) {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() && info.Size() > 0 {
			continue
		}
		_ = os.Remove(path) // a directory in use is not empty and stays
	}
	s.made = nil
	return nil
}

// Report is what is and is not enforced, in short phrases for people.
type Report struct {
	Backend     string
	Enforced    []string
	NotEnforced []string

	// Whole says that all the limits asked for are enforced. What stands in
	// NotEnforced beside that goes beyond them.
	Whole bool
}

// Report says what Wrap with the same limits enforces.
func (s *Sandbox) Report(l Limits) Report {
	r := Report{Backend: s.Backend(), Whole: true}
	writes := "no writes except to devices such as /dev/null"
	if len(l.Write) > 0 {
		writes = "writes only below " + list(l.Write)
	}
	var inside []string // of the protected paths, by their names
	for _, path := range l.Protect {
		path = filepath.Clean(path)
		if l.writable(path) {
			inside = append(inside, path)
		}
	}
	protects := "no changes to " + list(inside)
	switch r.Backend {
	case None:
		r.lacks(writes)
		if len(inside) > 0 {
			r.lacks(protects)
		}
		if len(l.Hide) > 0 {
			r.lacks("secret files hidden")
		}
		switch {
		case l.Network:
		case len(l.Hosts) > 0:
			r.lacks("network only to " + several(l.Hosts))
		default:
			r.lacks("no network")
		}
		return r
	case Landlock:
		r.Enforced = append(r.Enforced, writes)
		r.lacks("no changes to modes, owners and times of files elsewhere")
		if len(inside) > 0 {
			r.lacks(protects)
		}
		if len(l.Hide) > 0 {
			r.Enforced = append(r.Enforced, "secret files outside the workspace hidden")
		}
		if slices.ContainsFunc(l.Hide, l.writable) {
			r.lacks("secret files in the workspace hidden")
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
	case len(l.Hosts) > 0 && s.HasOutlets():
		r.Enforced = append(r.Enforced, "network only to "+several(l.Hosts)+", by HTTP and HTTPS through a proxy")
	case len(l.Hosts) > 0:
		r.Enforced = append(r.Enforced, "no network, not even to hosts of safety.network: that needs namespaces or bubblewrap")
	case r.Backend == Namespaces || r.Backend == Bubblewrap:
		r.Enforced = append(r.Enforced, "no network except its own loopback")
	default:
		r.Enforced = append(r.Enforced, "no network")
	}
	s.reportBeyond(&r, l)
	return r
}

// reportBeyond adds what was not asked for but is worth knowing.
func (s *Sandbox) reportBeyond(r *Report, l Limits) {
	if r.Backend == Seatbelt {
		r.NotEnforced = append(r.NotEnforced, "system services can be asked to start programs", "signals reach other programs")
		if l.Bounds != (Bounds{}) {
			r.NotEnforced = append(r.NotEnforced, "memory and processes are not bounded")
		}
		return
	}
	own := r.Backend != Landlock // process tables
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

// writable reports whether a path lies where it may be written, by the names
// alone.
func (l Limits) writable(path string) bool {
	return slices.ContainsFunc(l.Write, func(dir string) bool { return within(filepath.Clean(path), filepath.Clean(dir)) })
}

// lacks notes a limit that was asked for and is not enforced.
func (r *Report) lacks(what string) {
	r.NotEnforced = append(r.NotEnforced, what)
	r.Whole = false
}

// several names the first of hosts.
func several(hosts []string) string {
	const most = 8
	if len(hosts) <= most {
		return strings.Join(hosts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(hosts[:most], ", "), len(hosts)-most)
}

// list names each of paths once.
func list(paths []string) string {
	var once []string
	for _, p := range paths {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return strings.Join(once, ", ")
}

// Line is what confines a command: a program and its first arguments to put
// before it, and what the process has to be started with. The zero Line
// confines nothing.
type Line struct {
	Argv []string
	Attr func(*syscall.SysProcAttr) // may be nil

	// Init says that the process is the first of all of the command's: none of
	// them outlives it, they all end when it is sent SIGTERM, and they end when
	// whoever started it dies, however that happens.
	Init bool

	// Journal, if set, is to be given to the process as descriptor [JournalOn].
	Journal *os.File

	bounds Bounds // what its processes may use together
}

// Hold returns what to run just one command through, in place of Argv: where this
// machine allows it the kernel then holds the command's processes within their bounds.
// Release is to be called when the process has ended.
func (l Line) Hold() (argv []string, release func()) { return hold(l.Argv, l.bounds) }

// Telling is the line for somebody who reads, from a pipe given as descriptor
// [TellOn], how the command ended: see [End]. It is for lines with Init
// set, whose own exit code cannot tell a signal from a number.
func (l Line) Telling() Line {
	if l.Init {
		l.Argv = slices.Insert(slices.Clone(l.Argv), 2, "--tell") // after the program and the name of the helper
	}
	return l
}

// Apply has a command that was not started yet run through the line. What it
// was to run, its environment, directory and streams stay as they are.
func (l Line) Apply(cmd *program.Cmd) {
	if len(l.Argv) == 0 {
		return
	}
	argv := slices.Clone(cmd.Args)
	argv[0] = cmd.Path
	cmd.Path, cmd.Args = l.Argv[0], append(slices.Clone(l.Argv), argv...)
	if l.Journal != nil {
		for len(cmd.ExtraFiles) < JournalOn-2 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
		}
		cmd.ExtraFiles[JournalOn-3] = l.Journal
	}
	if l.Attr != nil {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = new(syscall.SysProcAttr)
		}
		l.Attr(cmd.SysProcAttr)
	}
}

// TellOn is the descriptor on which a helper that was asked to tells how the
// command ended, in the words of [End.String].
const TellOn = 3

// End is how a command ended.
type End struct {
	Code    int            // its exit code, if no signal ended it
	Signal  syscall.Signal // the signal that ended it, or 0
	Stopped bool           // processes were still running and had to be stopped
}

func (e End) String() string { return fmt.Sprintf("%d %d %t\n", e.Code, int(e.Signal), e.Stopped) }
