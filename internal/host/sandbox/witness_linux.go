package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callRecorder writes the [Journal] of a command. The kernel holds each call by which a process of the
// command would open a file for writing, create, move or remove one, until the witness has recorded its
// path; then the call continues. The process may change what the witness reads, so the journal is a
// record and no protection.
type callRecorder struct {
	listener int
	journal  int
	run      string
	seen     map[string]int // entries written, with their number
	wrappers []os.FileInfo  // the programs that confine the command, until a different one runs
}

// recordedCall describes a writing call and its file name arguments.
type recordedCall struct {
	flags int // argument with the open flags, or -1
	names []pathArg
	kind  byte // kind of its journal entry
}

// pathArg tells where a call names a file: the argument with the directory that the name starts from, or
// -1 for the working directory, and the one with the name, or -1 if the directory descriptor is the file
// itself.
type pathArg struct {
	dir, name   int
	followsLink bool // the call follows a link there
}

const noArg = -1

// recordedCalls are calls of every platform; legacyCalls exist only on some.
var recordedCalls = map[uint32]recordedCall{
	unix.SYS_OPENAT:    {2, []pathArg{{0, 1, true}}, entryOpen},
	unix.SYS_OPENAT2:   {noArg, []pathArg{{0, 1, true}}, entryOpen},
	unix.SYS_RENAMEAT2: {noArg, []pathArg{{0, 1, false}, {2, 3, false}}, entryTree},
	unix.SYS_UNLINKAT:  {noArg, []pathArg{{0, 1, false}}, entryRemoved},
	unix.SYS_MKDIRAT:   {noArg, []pathArg{{0, 1, false}}, entryFile},
	unix.SYS_MKNODAT:   {noArg, []pathArg{{0, 1, false}}, entryFile},
	unix.SYS_LINKAT:    {noArg, []pathArg{{2, 3, false}}, entryFile},
	unix.SYS_SYMLINKAT: {noArg, []pathArg{{1, 2, false}}, entryFile},
	unix.SYS_TRUNCATE:  {noArg, []pathArg{{noArg, 0, true}}, entryFile},
	unix.SYS_FCHMOD:    {noArg, []pathArg{{0, noArg, false}}, entryFile},
	unix.SYS_FCHMODAT:  {noArg, []pathArg{{0, 1, true}}, entryFile},
	unix.SYS_FCHMODAT2: {noArg, []pathArg{{0, 1, true}}, entryFile},
}

// writingFlags are the open flags that can write or create a file.
const writingFlags = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// startRecorder makes the kernel report this thread's and its children's calls to a witness. It fails if the
// kernel cannot, if another listener exists, and if it would take privileges from a command that may
// have them.
func startRecorder(o helperSpec) (*callRecorder, error) {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok || runtime.GOARCH == "ppc64le" { // its calls are not all in passings
		return nil, errors.ErrUnsupported
	}
	if o.stage == stageOpen && (o.confined || unix.Geteuid() == 0) {
		// The next program confines itself, or needs no further privileges.
		if have, err := capabilities(); err != nil || !have.has(unix.CAP_SYS_ADMIN) {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return nil, err
			}
		}
	}
	filter := recorderFilter(arch)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listen := uintptr(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		listen|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&prog)))
	if errno == unix.EINVAL { // before Linux 5.19
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listen, uintptr(unsafe.Pointer(&prog)))
	}
	if errno != 0 {
		return nil, errno
	}
	return &callRecorder{listener: int(fd), journal: JournalFD, run: o.journalRun, seen: make(map[string]int)}, nil
}

// recorderFilter returns the filter that reports the calls in passings.
func recorderFilter(arch uint32) (f []unix.SockFilter) {
	f = append(f,
		unix.SockFilter{Code: opLoad, K: offArch},
		unix.SockFilter{Code: opEqual, K: arch, Jt: 1},
		allowCall, // other platforms, if allowed at all, are not recorded
		unix.SockFilter{Code: opLoad, K: offNumber},
	)
	tell := unix.SockFilter{Code: opReturn, K: unix.SECCOMP_RET_USER_NOTIF}
	for _, all := range []map[uint32]recordedCall{recordedCalls, legacyCalls} {
		for call, p := range all {
			if p.flags == noArg {
				f = append(f, unix.SockFilter{Code: opEqual, K: call, Jf: 1}, tell)
				continue
			}
			f = append(f,
				unix.SockFilter{Code: opEqual, K: call, Jf: 4},
				unix.SockFilter{Code: opLoad, K: uint32(offArg0 + 8*p.flags)},
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: writingFlags, Jf: 1},
				tell, allowCall,
			)
		}
	}
	return append(f, allowCall)
}

// notification is a call that the kernel holds; reply is the answer to it.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		at         uint64
		args       [6]uint64
	}
	reply struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// serve records the command's calls and continues them, one by one, until the helper ends.
func (w *callRecorder) serve() {
	for {
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_RECV,
			uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno != unix.EINTR && errno != unix.ENOENT { // the caller was killed meanwhile
				w.writeEntry(entryUnseen, "")
				return
			}
			continue
		}
		w.recordCall(n)
		r := reply{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		// the caller may have been killed
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.listener), unix.SECCOMP_IOCTL_NOTIF_SEND,
			uintptr(unsafe.Pointer(&r)))
	}
}

// isWrapper reports whether a call comes from a program that confines the command, before the command
// starts. Files that it creates are not the command's.
func (w *callRecorder) isWrapper(n notification) bool {
	if len(w.wrappers) == 0 {
		return false
	}
	exe, err := os.Stat("/proc/" + strconv.FormatUint(uint64(n.pid), 10) + "/exe")
	if err == nil && slices.ContainsFunc(w.wrappers, func(f os.FileInfo) bool { return os.SameFile(f, exe) }) {
		return true
	}
	w.wrappers = nil
	return false
}

// recordCall records what a call is about to touch.
func (w *callRecorder) recordCall(n notification) {
	if w.isWrapper(n) {
		return
	}
	p, ok := recordedCalls[uint32(n.call)]
	if !ok {
		p = legacyCalls[uint32(n.call)]
	}
	if n.call == unix.SYS_RENAMEAT2 && n.args[4]&unix.RENAME_NOREPLACE != 0 && w.targetExists(n, p.names[1]) {
		return // the call will fail; mv tries this first
	}
	for _, at := range p.names {
		name, err := w.absName(n, at)
		if errors.Is(err, errNotInspected) {
			w.writeEntry(entryUnseen, "")
			continue
		}
		name = resolveFD(n.pid, name)
		for range maxFinalLinks {
			path, ok := resolveDir(name)
			if !ok {
				break // missing, or in a place that is not recorded
			}
			w.writeEntry(p.kind, path)
			to, err := os.Readlink(path)
			if err != nil || !at.followsLink {
				break
			}
			if name = to; !filepath.IsAbs(to) {
				name = filepath.Dir(path) + "/" + to
			}
			name = resolveFD(n.pid, name)
		}
	}
}

// targetExists reports whether a file exists where a call names one.
func (w *callRecorder) targetExists(n notification, at pathArg) bool {
	name, err := w.absName(n, at)
	if err != nil {
		return false
	}
	path, ok := resolveDir(name)
	if !ok {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}

// resolveFD returns the file behind a descriptor name such as /dev/fd/3, or the name itself for other
// names.
func resolveFD(pid uint32, name string) string {
	number, ok := stdStreams[name]
	for _, from := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if rest, is := strings.CutPrefix(name, from); is {
			number, ok = rest, true
		}
	}
	if !ok {
		return name
	}
	to, err := os.Readlink("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/fd/" + number)
	if err != nil {
		return name
	}
	return to
}

// stdStreams maps the names of the standard streams to descriptors.
var stdStreams = map[string]string{"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}

// maxFinalLinks limits the links at the end of a path.
const maxFinalLinks = 40

// errNotInspected reports a process that could not be inspected.
var errNotInspected = errors.New("cannot be read")

// absName returns the absolute name that a call gives.
func (w *callRecorder) absName(n notification, at pathArg) (string, error) {
	proc := "/proc/" + strconv.FormatUint(uint64(n.pid), 10)
	name := ""
	if at.name != noArg {
		var err error
		if name, err = readString(int(n.pid), uintptr(n.args[at.name])); err != nil {
			return "", errNotInspected
		}
		if filepath.IsAbs(name) {
			return name, nil
		}
		if name == "" {
			return "", os.ErrNotExist
		}
	}
	from := proc + "/cwd"
	if at.dir != noArg && int32(n.args[at.dir]) != unix.AT_FDCWD {
		from = proc + "/fd/" + strconv.Itoa(int(int32(n.args[at.dir])))
	}
	dir, err := os.Readlink(from)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", err // no such descriptor, or the process has ended
	case err != nil:
		return "", errNotInspected
	case name == "":
		return dir, nil
	}
	return dir + "/" + name, nil
}

// readString reads a string from the memory of a process.
func readString(pid int, at uintptr) (string, error) {
	buf := make([]byte, unix.PathMax)
	size := os.Getpagesize()
	for n := 0; n < len(buf); {
		part := buf[n:min(len(buf), n+size-int((at+uintptr(n))%uintptr(size)))] // the next page may not be mapped
		local := unix.Iovec{Base: &part[0]}
		local.SetLen(len(part))
		got, err := unix.ProcessVMReadv(pid, []unix.Iovec{local},
			[]unix.RemoteIovec{{Base: at + uintptr(n), Len: len(part)}}, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:got], 0); end >= 0 {
			return string(buf[:n+end]), nil
		}
		n += got
	}
	return "", unix.ENAMETOOLONG
}

// resolveDir returns where a name really is, with all links except the last resolved. ok is false if its
// directory does not exist, and in /dev and /proc, which are not recorded.
func resolveDir(name string) (string, bool) {
	name = strings.TrimRight(name, "/")
	at := strings.LastIndexByte(name, '/')
	if at < 0 || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		return "", false
	}
	base := name[at+1:]
	if base == "." || base == ".." { // it names the folder itself
		at, base = len(name), ""
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, name[:at]+"/",
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC})
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, base), true
}

// writeEntry adds an entry to the journal: once, or if counted, up to maxCounted times.
func (w *callRecorder) writeEntry(kind byte, path string) {
	most := 1
	if kind == entryOpen || kind == entryRemoved || kind == entryTree {
		most = maxCounted
	}
	line := w.run + " " + string(kind) + path + "\x00"
	if w.seen[line] >= most {
		return
	}
	w.seen[line]++
	_, _ = unix.Write(w.journal, []byte(line)) // an in-memory file
}

// startJournal starts the journal that an order requests, for the program at path.
func startJournal(o helperSpec, path string) {
	w, err := startRecorder(o)
	if err != nil {
		w = &callRecorder{journal: JournalFD, run: o.journalRun, seen: make(map[string]int)}
		w.writeEntry(entryBegin, "")
		w.writeEntry(entryUnseen, "")
		return
	}
	w.writeEntry(entryBegin, "")
	if o.confined {
		// the wrapper starts this program again, to complete the confinement
		for _, name := range []string{path, "/proc/self/exe"} {
			if f, err := os.Stat(name); err == nil {
				w.wrappers = append(w.wrappers, f)
			}
		}
	}
	go w.serve()
}

// endJournal records that the command and its remaining processes have ended.
func endJournal(o helperSpec) {
	(&callRecorder{journal: JournalFD, run: o.journalRun, seen: make(map[string]int)}).writeEntry(entryEnd, "")
}
