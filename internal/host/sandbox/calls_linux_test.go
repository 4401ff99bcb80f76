package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ipcCalls reach memory, semaphores and queues without files.
var ipcCalls = []string{"shmget", "semget", "msgget", "mq_unlink"}

// TestConfinedSharedMemory looks from within for memory that a program outside shares.
func TestConfinedSharedMemory(t *testing.T) {
	key := 0x636f6400 | os.Getpid()&0xff
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Skipf("no segment can be made here: %v", err)
	}
	defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(data, "SHARED")
	defer func() { _ = unix.SysvShmDetach(data) }()
	script := fmt.Sprintf("$SELF __attack segment %d", key)
	if out, err := exec.Command(self(t), attackName, "segment", fmt.Sprint(key)).Output(); string(out) != "SHARED" {
		t.Fatalf("outside it reads %q: %v", out, err)
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.limits()
		for _, l.Network = range []bool{false, true} {
			if got := w.run(t, wrap(t, s, l), script); got.code == 0 || got.stdout != "" {
				t.Errorf("network %v: %+v", l.Network, got)
			}
		}
	})
}

// TestConfinedSystemCalls makes calls from within, with the network and without.
func TestConfinedSystemCalls(t *testing.T) {
	var names []string
	for name := range calls {
		if name != "x32 keyctl" || runtime.GOARCH == "amd64" {
			names = append(names, name)
		}
	}
	refused := map[string]string{
		"add_key": "ENOSYS", "request_key": "ENOSYS", "keyctl": "ENOSYS", "x32 keyctl": "EPERM",
		"io_uring_setup": "ENOSYS", "io_uring_enter": "ENOSYS", "io_uring_register": "ENOSYS",
		"bpf": "EPERM", "perf_event_open": "EPERM", "userfaultfd": "EPERM", "open_by_handle_at": "EPERM", "ptrace": "EPERM",
		"socket alg": "EAFNOSUPPORT", "socket bluetooth": "EAFNOSUPPORT", "socket packet": "EAFNOSUPPORT", "socket vsock": "EAFNOSUPPORT",
		"socket connector": "EAFNOSUPPORT", "socket xfrm": "EAFNOSUPPORT",
	}
	script := `for name; do printf '%s: %s\n' "$name" "$($SELF __attack call "$name" 2>&1)"; done`
	answers := func(e ended) map[string]string {
		found := make(map[string]string)
		for line := range strings.Lines(e.stdout) {
			name, errno, _ := strings.Cut(strings.TrimSpace(line), ": ")
			found[name] = errno
		}
		return found
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		for _, network := range []bool{false, true} {
			l := w.limits()
			l.Network = network
			got := answers(w.run(t, wrap(t, s, l), script, names...))
			for _, name := range names {
				want := refused[name]
				if slices.Contains(ipcCalls, name) { // harmless in a namespace of their own
					want = map[bool]string{true: "ENOSYS", false: map[bool]string{true: "EFAULT"}[name == "mq_unlink"]}[s.Backend() == Landlock]
				}
				switch {
				case want != "" && got[name] != want:
					t.Errorf("network %v: %s: %q, want %s", network, name, got[name], want)
				case want == "" && got[name] != "done":
					t.Errorf("network %v: %s: %q", network, name, got[name])
				}
			}
			l.Trace = true
			if got := answers(w.run(t, wrap(t, s, l), script, "ptrace", "keyctl")); got["ptrace"] != "done" || got["keyctl"] != "ENOSYS" {
				t.Errorf("network %v, may trace: %v", network, got)
			}
			if got := w.run(t, wrap(t, s, l), `cat /proc/keys /proc/key-users`); s.Backend() != Landlock && got.stdout != "" {
				t.Errorf("network %v: the lists of keys: %+v", network, got)
			}
			if got := w.run(t, wrap(t, s, l), `cat /proc/cpuinfo /proc/self/status`); got.code != 0 {
				t.Errorf("network %v: what is beside them: %+v", network, got)
			}
		}
	})
}

// thirtyTwo makes calls of the 32-bit platform: keyctl, io_uring_setup and
// socketcall for a vsock. It ends with the number of those that were answered.
const thirtyTwo = `
static long call(long n, long a, long b) {
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(0), "S"(0), "D"(0) : "memory", "r8", "r9", "r10", "r11");
	return r;
}
void _start(void) {
	long open = 0;
	if (call(288, 0, -3) != -1) open++;
	if (call(425, 1, 0) != -1) open++;
	if (call(359, 40, 1) != -1) open++;
	__asm__ volatile("syscall" : : "a"(231), "D"(open));
}`

func TestConfinedCallsOfOtherPlatforms(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("int 0x80 is of amd64 alone")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc to build the attack")
	}
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "attack.c"), filepath.Join(dir, "attack")
	if err := os.WriteFile(source, []byte(thirtyTwo), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(gcc, "-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-o", exe, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("gcc cannot build the attack: %v\n%s", err, out)
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		l := w.limits()
		l.Network = true
		if bare := w.run(t, Wrapper{}, exe); bare.code == 0 {
			t.Skip("this machine answers no calls of 32-bit programs")
		}
		if got := w.run(t, wrap(t, s, l), exe); got.code != 0 || got.signal != 0 {
			t.Errorf("%d of 3 calls were answered: %+v", got.code, got)
		}
	})
}

// TestAnEmptyKeyring puts a key into a session keyring and parts with that.
func TestAnEmptyKeyring(t *testing.T) {
	done := make(chan struct{})
	go func() { // the thread ends with it, as nobody unlocks it
		defer close(done)
		runtime.LockOSThread()
		joinNewKeyring()
		if _, err := unix.AddKey("user", "sandbox-test", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Logf("keys cannot be made here: %v", err)
			return
		}
		if _, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "sandbox-test", 0); err != nil {
			t.Errorf("the key is not there: %v", err)
		}
		joinNewKeyring()
		if _, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", "sandbox-test", 0); err == nil {
			t.Error("the key is still there")
		}
	}()
	<-done
}
