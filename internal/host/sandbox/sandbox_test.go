package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOrdersAreReadAsWritten(t *testing.T) {
	for _, want := range []helperSpec{
		{stage: stageNamespaces, outerNamespace: "mnt:[1]", starter: "17", argv: []string{"/bin/sh", "-c", "--network"}},
		{stage: stageLandlock, resolvedLimits: resolvedLimits{write: []string{"/w", "/a=b\n c"}, protect: []string{"/w/.git"}, hide: []string{"/run/x"}, network: true}, argv: []string{"x"}},
		{stage: stageBwrap, probe: true},
	} {
		got, err := parseSpec(want.args())
		if err != nil || !same(got, want) {
			t.Errorf("%+v: %+v, %v", want, got, err)
		}
	}
}

func same(a, b helperSpec) bool {
	return a.stage == b.stage && a.probe == b.probe && a.outerNamespace == b.outerNamespace && a.starter == b.starter && a.network == b.network && slices.Equal(a.argv, b.argv) &&
		slices.Equal(a.write, b.write) && slices.Equal(a.protect, b.protect) && slices.Equal(a.hide, b.hide)
}

// Whatever the arguments, what was understood says the same when written again.
func FuzzOrder(f *testing.F) {
	f.Add("--stage=landlock\x00--write=/w\x00--protect=/w/.git\x00--network\x00--\x00/bin/sh\x00-c\x00true")
	f.Add("--stage=inside\x00--probe\x00--")
	f.Add("--write=/\x00--\x00x")
	f.Fuzz(func(t *testing.T, line string) {
		o, err := parseSpec(strings.Split(line, "\x00"))
		if err != nil {
			return
		}
		again, err := parseSpec(o.args())
		if err != nil || !same(again, o) {
			t.Errorf("%+v: %+v, %v", o, again, err)
		}
		for _, path := range slices.Concat(o.write, o.protect, o.hide) {
			if !filepath.IsAbs(path) || path == "/" {
				t.Errorf("path %q", path)
			}
		}
	})
}

func TestPinsAreTheDirectoriesOnTheWay(t *testing.T) {
	p := resolvedLimits{write: []string{"/t", "/w"}, protect: []string{"/w/.git/config", "/w/.git/modules/a/config", "/w/.coder", "/t"}}
	if got := strings.Join(p.pinnedDirs(), " "); got != "/w/.git /w/.git/modules /w/.git/modules/a" {
		t.Errorf("%s", got)
	}
}

func TestOutermost(t *testing.T) {
	got := outermost([]string{"/w/a", "/w-b", "/w", "/t", "/w/a/b", "/t", "/ta"})
	if strings.Join(got, " ") != "/t /ta /w /w-b" && strings.Join(got, " ") != "/t /ta /w-b /w" {
		t.Errorf("%q", got)
	}
}

func TestPlacesRefuseNonsense(t *testing.T) {
	dir := t.TempDir()
	for _, l := range []Limits{
		{Write: []string{"relative"}}, {Write: []string{"/"}}, {Write: []string{dir}, Protect: []string{".git"}},
	} {
		s := &Sandbox{backend: Namespaces, resolved: make(map[string]string)}
		if through, err := s.Wrap(l); err == nil {
			t.Errorf("%+v: %v", l, through.Argv)
		}
	}
}

func TestPlacesOfLinkedAndMissingDirectories(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, link := filepath.Join(root, "real"), filepath.Join(root, "link")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Mkdir(filepath.Join(real, ".git"), 0o755), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	s := &Sandbox{backend: Namespaces, resolved: make(map[string]string)}
	p, err := s.resolveLimits(Limits{Write: []string{link, filepath.Join(root, "missing")}, Protect: []string{link + "/.git/", root + "/outside", root + "/missing/x"}})
	if err != nil || !slices.Equal(p.write, []string{real}) || !slices.Equal(p.protect, []string{real + "/.git"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNoSandboxConfinesNothing(t *testing.T) {
	for _, s := range []*Sandbox{nil, {}} {
		if _, err := s.Wrap(Limits{}); !errors.Is(err, ErrUnavailable) || s.Backend() != None || s.Close() != nil || s.Limitations() != nil {
			t.Errorf("%v %s", err, s.Backend())
		}
		r := s.Report(Limits{Write: []string{"/w"}, Protect: []string{"/w/.git"}})
		if r.Complete || len(r.Enforced) > 0 || len(r.NotEnforced) != 3 {
			t.Errorf("%+v", r)
		}
	}
}

func TestReports(t *testing.T) {
	l := Limits{Write: []string{"/w", "/tmp", "/t"}, Protect: []string{"/w/.git/", "/home/u/.bashrc"}}
	open := l
	open.Network = true
	for _, c := range []struct {
		s                     *Sandbox
		l                     Limits
		whole                 bool
		enforced, notEnforced string
	}{
		{&Sandbox{backend: Namespaces, abi: 7}, l, true,
			"writes only below /w, /tmp, /t|no changes to /w/.git|no network except its own loopback|no signals to other programs|sockets of services hidden",
			"sockets in unusual places can be reached"},
		{&Sandbox{backend: Bubblewrap}, open, true,
			"writes only below /w, /tmp, /t|no changes to /w/.git|no signals to other programs|sockets of services hidden",
			"the network can be used|sockets in unusual places can be reached|sockets without a file can be reached|only one layer: no Landlock support in the kernel"},
		{&Sandbox{backend: Landlock, abi: 9}, l, false,
			"writes only below /w, /tmp, /t|no network|no signals to other programs|no sockets of other programs except where it may write",
			"no changes to modes, owners and times of files elsewhere|no changes to /w/.git"},
		{&Sandbox{backend: Seatbelt}, Limits{}, true, "no writes except to devices such as /dev/null|no network",
			"system services can be asked to start programs|signals reach other programs"},
	} {
		r := c.s.Report(c.l)
		if r.Complete != c.whole || strings.Join(r.Enforced, "|") != c.enforced || strings.Join(r.NotEnforced, "|") != c.notEnforced {
			t.Errorf("%s:\n%q\n%q\n%v", c.s.backend, r.Enforced, r.NotEnforced, r.Complete)
		}
	}
}

func TestProtectedIn(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".vimrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		root, home string
		want, not  []string
	}{
		{"/w", "/home/u", []string{"/w/.git/", "/w/.coder/"}, []string{"/home/u/.bashrc", "/w/.bashrc"}},
		{"/w", "", []string{"/w/.git/", "/w/.coder/"}, nil},
		{home, home, []string{home + "/.git/", home + "/.coder/", home + "/.bashrc", home + "/.zshrc", home + "/.ssh/", home + "/.config/fish/", home + "/.vimrc"}, []string{home + "/.tcshrc"}},
		{filepath.Dir(home), home, []string{home + "/.bashrc", home + "/.coder/", filepath.Dir(home) + "/.git/"}, []string{filepath.Dir(home) + "/.bashrc"}},
		{home + "/project", home, []string{home + "/project/.git/"}, []string{home + "/.bashrc"}},
	} {
		got := ProtectedIn(c.root, c.home)
		for _, path := range c.want {
			if !slices.Contains(got, path) {
				t.Errorf("%s in %s: no %s in %q", c.root, c.home, path, got)
			}
		}
		for _, path := range c.not {
			if slices.Contains(got, path) {
				t.Errorf("%s in %s: %s in %q", c.root, c.home, path, got)
			}
		}
	}
}

func TestProtectedInForGit(t *testing.T) {
	root := t.TempDir()
	git := filepath.Join(root, ".git")
	if got := ProtectedInForGit(root); !slices.Contains(got, git+"/") {
		t.Errorf("without a repository: %q", got)
	}
	for _, name := range []string{"config", "HEAD", "modules/a/b/HEAD", "modules/a/b/objects/x", "modules/a/b/modules/c/HEAD", "modules/a/b/modules/c/objects/x", "worktrees/x/HEAD"} {
		path := filepath.Join(git, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got := ProtectedInForGit(root)
	for _, want := range []string{"config", "hooks/", "info/", "modules/a/b/config", "modules/a/b/hooks/", "modules/a/b/modules/c/config", "worktrees/"} {
		if !slices.Contains(got, git+"/"+want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if slices.Contains(got, git+"/") || slices.Contains(got, git+"/config.worktree") {
		t.Errorf("%q", got)
	}
	if planted, _ := FindPlanted(root, "", nil); len(planted) > 0 {
		t.Errorf("planted: %q", planted)
	}
	for _, name := range []string{"commondir", "modules/a/b/commondir"} {
		if err := os.WriteFile(filepath.Join(git, name), []byte("../evil\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if planted, _ := FindPlanted(root, "", nil); len(planted) != 2 {
		t.Errorf("planted: %q", planted)
	}
}

func TestBlocked(t *testing.T) {
	l := Limits{Write: []string{"/w", "/tmp"}, Protect: []string{"/w/.git/"}}
	for _, c := range []struct {
		code   int
		stderr string
		want   bool
	}{
		{0, "x: Read-only file system", false},
		{1, "", false},
		{1, "touch: cannot touch '/etc/x': Read-only file system", true},
		{1, "Error: EROFS: read-only file system, open '/x'", true},
		{2, "/bin/sh: 1: cannot create /etc/zzz: Permission denied", true},
		{2, "/bin/sh: 1: cannot create /w/zzz: Permission denied", false},
		{2, "/bin/sh: 1: cannot create secret: Permission denied", false},
		{1, "error: could not lock config file /w/.git/config: Permission denied", true},
		{1, "open /home/u/.cache/go-build/x: permission denied", true},
		{1, "mv: cannot move '/w/.git' to 'g': Device or resource busy", true},
		{126, "/bin/sh: 1: ./run: Permission denied", false},
		{126, "sh: 1: /usr/bin/thing: Permission denied", false},
		{6, "curl: (6) Could not resolve host: example.com", true},
		{1, "dial tcp: lookup packages.example: no such host", true},
		{1, "npm error code EAI_AGAIN", true},
		{1, "connect: network is unreachable", true},
		{1, "connect to 127.0.0.1 port 80: Connection refused", false},
		{1, "sh: 1: kill: Operation not permitted", true},
		{1, "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", true},
		{1, "==8==LeakSanitizer has encountered a fatal error.", true},
		{1, "could not launch process: fork/exec ./m: operation not permitted", true},
		{1, "--- FAIL: TestX: assertion failed", false},
	} {
		if got := BlockedReason(c.code, "first line\n"+c.stderr+"\nlast", l); (got != "") != c.want {
			t.Errorf("%d %q: %q", c.code, c.stderr, got)
		}
	}
	l.Network = true
	if got := BlockedReason(6, "Could not resolve host: example.com", l); got != "" {
		t.Errorf("with network: %q", got)
	}
}

func TestSetupFailed(t *testing.T) {
	if why, failed := SetupFailed(SetupCode, SetupPrefix+"make namespaces: no\nmore"); !failed || why != "make namespaces: no" {
		t.Errorf("%q %v", why, failed)
	}
	for _, c := range []struct {
		code   int
		stderr string
	}{{1, SetupPrefix + "x"}, {SetupCode, "sh: x: Permission denied"}, {SetupCode, "x\n" + SetupPrefix + "x"}} {
		if _, failed := SetupFailed(c.code, c.stderr); failed {
			t.Errorf("%+v", c)
		}
	}
}

func TestBwrapArguments(t *testing.T) {
	got := strings.Join(bwrapArgs(resolvedLimits{write: []string{"/dev/kvm", "/w"}, protect: []string{"/w/.git/config"}, hide: []string{"/run/docker.sock"}}), " ")
	want := "--ro-bind / / --dev /dev --unshare-pid --unshare-ipc --proc /proc --die-with-parent --unshare-net --dev-bind /dev/kvm /dev/kvm --bind /w /w --bind /w/.git /w/.git --ro-bind /w/.git/config /w/.git/config --ro-bind /dev/null /run/docker.sock --"
	if got != want {
		t.Errorf("%s", got)
	}
}

func TestSeatbeltProfile(t *testing.T) {
	p := resolvedLimits{write: []string{"/private/tmp", `/w "x" \y`}, protect: []string{`/w "x" \y/.git/config`}, hide: []string{"/run/docker.sock"}}
	closed := seatbeltProfile(p)
	p.network = true
	got := closed + "\n; with network\n" + seatbeltProfile(p)
	golden := filepath.Join("testdata", "seatbelt.sb")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("profile differs from %s:\n%s", golden, got)
	}
}
