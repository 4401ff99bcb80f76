package confine_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/sandbox"
	"coder/internal/host/shell"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
)

// read reads a command line as it is read before it is judged.
func read(command string) risk.Report { return risk.Analyse(command, risk.Facts{Cwd: "/"}) }

// helpless are the options on a machine that can confine nothing: there is no
// program to do it.
func helpless(t *testing.T, demand string) (confine.Options, *[]string) {
	t.Helper()
	var warned []string
	root := t.TempDir()
	return confine.Options{
		Demand: demand, Exe: filepath.Join(root, "none"), Root: root, Home: t.TempDir(), Network: func() bool { return false }, LooksIncomplete: func() bool { return false },
		Warn: func(s string) { warned = append(warned, s) },
	}, &warned
}

func TestWhatCannotBeEnforcedIsSaidOnceOrStopsEverything(t *testing.T) {
	o, warned := helpless(t, confine.Auto)
	c := confine.New(o)
	for range 2 {
		got, err := c.Command(t.Context(), read("ls"))
		if err != nil || got.Summary != "" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if len(*warned) != 1 || !strings.Contains((*warned)[0], "writes only below") || !strings.Contains((*warned)[0], "no network") {
		t.Errorf("warned: %q", *warned)
	}
	if err := errors.Join(c.Check(t.Context()), c.Close()); err != nil {
		t.Error(err)
	}

	o, warned = helpless(t, confine.Auto)
	o.LooksIncomplete = func() bool { return true }
	c = confine.New(o)
	if err := c.Check(t.Context()); err != nil || len(*warned) != 1 || !strings.Contains((*warned)[0], "secret files hidden") {
		t.Errorf("at the start: %v, %q", err, *warned)
	}
	if _, err := c.Command(t.Context(), read("ls")); err != nil || len(*warned) != 1 {
		t.Errorf("said again: %v, %q", err, *warned)
	}

	o, _ = helpless(t, confine.Require)
	c = confine.New(o)
	if _, err := c.Command(t.Context(), read("ls")); !errors.Is(err, confine.ErrUnavailable) {
		t.Errorf("a command that must be confined was let run: %v", err)
	}
	if err := c.Check(t.Context()); !errors.Is(err, confine.ErrUnavailable) {
		t.Errorf("check: %v", err)
	}

	o, warned = helpless(t, confine.Off)
	c = confine.New(o)
	if got, err := c.Command(t.Context(), read("ls")); err != nil || got.Summary != "" || len(*warned) > 0 || c.Summary(t.Context()) != confine.Off {
		t.Errorf("off: %+v, %v, %q", got, err, *warned)
	}
}

func TestAHomeInATemporaryFolderIsProtectedToo(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.Protect = exe, []string{filepath.Join(o.Home, ".coder")}
	o.Write = []string{filepath.Dir(o.Home)}
	for _, name := range []string{".bashrc", ".coder/config.json"} {
		path := filepath.Join(o.Home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	c := confine.New(o)
	defer c.Close()
	got, err := c.Command(t.Context(), read("make"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Summary == "" {
		t.Skip("commands cannot be confined on this machine")
	}
	line := strings.Join(got.Wrapper, " ")
	for _, name := range []string{".bashrc", ".coder"} {
		if !strings.Contains(line, filepath.Join(o.Home, name)) {
			t.Errorf("%s is not protected: %s", name, line)
		}
	}
}

// Where the machine can confine, the bounds of a command are on its command
// line.
func TestALineThatRunsGitMayWriteWhatGitNeeds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe = exe
	for _, name := range []string{".git/hooks", ".coder"} {
		if err := os.MkdirAll(filepath.Join(o.Root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := confine.New(o)
	defer c.Close()
	line := func(command string) string {
		got, err := c.Command(t.Context(), read(command))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Concat(got.Wrapper, []string{""}), " ")
	}
	if c.Summary(t.Context()) == "" {
		t.Skip("commands cannot be confined on this machine")
	}
	plain, git := line("make"), line("git add . && make")
	if plain == "" || plain == " " {
		t.Skip("commands cannot be confined on this machine")
	}
	if plain == git {
		t.Errorf("git has the same bounds as any other command: %s", plain)
	}
	if !strings.Contains(git, "hooks") || strings.Contains(plain, "hooks") {
		t.Errorf("git: %s\nothers: %s", git, plain)
	}
}

// A line that was judged to only read cannot write, should the judgement be
// wrong, and cannot send anything.
func TestALineThatOnlyReadsIsHeldToThat(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.Network = exe, func() bool { return true }
	c := confine.New(o)
	defer c.Close()
	reads, other := read("ls"), read("make")
	if !reads.ReadOnly || other.ReadOnly {
		t.Fatal("ls does not only read, or make does")
	}
	for name, tt := range map[string]struct {
		line   risk.Report
		writes bool
	}{"reading": {reads, false}, "other": {other, true}} {
		got, err := c.Command(t.Context(), tt.line)
		if err != nil {
			t.Fatal(err)
		}
		if got.Wrapper == nil {
			t.Skip("commands cannot be confined on this machine")
		}
		file := filepath.Join(o.Root, name)
		out, err := shell.Run(t.Context(), shell.Spec{
			Command: "echo x > " + file, Dir: o.Root, Prefix: got.Wrapper, Attr: got.Attr, Init: got.Init, OutputLimit: 1 << 10, Env: os.Environ(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); (err == nil) != tt.writes {
			t.Errorf("%s: writes %v: %s", name, err == nil, out.Stderr.Text())
		}
	}
}

// A helper is started within bounds, speaks over its streams, and takes what it
// started along when it ends.
func TestAHelperRunsWithinItsBounds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.Network = exe, func() bool { return true }
	c := confine.New(o)
	defer c.Close()
	run := func(h confine.Helper, script string) (string, bool) {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Dir, cmd.Stdin = o.Root, strings.NewReader("asked\n")
		confined, err := c.Helper(t.Context(), cmd, h)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.CombinedOutput()
		return string(out), confined
	}
	out, confined := run(confine.Helper{}, "cat; echo x > made && cat made; echo $PPID")
	if !confined {
		t.Skip("helpers cannot be confined on this machine")
	}
	if !strings.HasPrefix(out, "asked\nx\n") {
		t.Errorf("said %q", out)
	}
	if out, _ := run(confine.Helper{ReadOnly: true}, "echo x > other; echo $?"); !strings.HasSuffix(strings.TrimSpace(out), "2") && !strings.HasSuffix(strings.TrimSpace(out), "1") {
		t.Errorf("it could write: %q", out)
	}
	if _, err := os.Stat(filepath.Join(o.Root, "other")); err == nil {
		t.Error("it has written")
	}
	more := t.TempDir()
	if out, _ := run(confine.Helper{ReadOnly: true, Write: []string{more}}, "echo x > "+more+"/y; cat "+more+"/y"); out != "x\n" {
		t.Errorf("said %q", out)
	}
	if out, _ := run(confine.Helper{OnlyWrite: true, Required: true, Write: []string{more}}, "cat "+more+"/y; echo x > "+more+"/y; echo x > /tmp/"+filepath.Base(more)+" || echo no"); !strings.HasPrefix(out, "x\n") || !strings.HasSuffix(out, "no\n") {
		t.Errorf("said %q", out)
	}
}

// TestGitWritesItsOwnFilesOnly, wherever links lead: not those elsewhere, nor what
// git obeys.
func TestGitWritesItsOwnFilesOnly(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe = exe
	c := confine.New(o)
	defer c.Close()
	outside, err := os.MkdirTemp(".", "outside-") // no temporary folder: those may be written
	if err == nil {
		outside, err = filepath.Abs(outside)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(outside)
	if slices.ContainsFunc(confine.TempDirs(), func(dir string) bool { return strings.HasPrefix(outside, dir+"/") }) {
		t.Skip("the tests lie in a temporary folder, where everything may be written")
	}
	own := filepath.Join(o.Root, ".git")
	if err := os.MkdirAll(filepath.Join(own, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"elsewhere": filepath.Join(outside, "profile"), "setting": "config", "hook": "hooks/pre-commit", "fine": "HEAD"} {
		if err := errors.Join(os.WriteFile(filepath.Join(own, "config"), nil, 0o644), os.Symlink(to, filepath.Join(own, link))); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", "echo x > .git/"+link)
		cmd.Dir, cmd.Env = o.Root, os.Environ()
		if err := c.Git(t.Context(), cmd, own); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(cmd.Path, "/sh") || c.Summary(t.Context()) == "" {
			t.Skip("commands cannot be confined on this machine")
		}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (link == "fine") {
			t.Errorf("%s: %v: %s", link, err, out)
		}
	}
}

func TestAHelperThatMustBeConfinedDoesNotRunWithout(t *testing.T) {
	for demand, runs := range map[string]bool{confine.Auto: false, confine.Require: false, confine.Off: true} {
		o, _ := helpless(t, demand)
		_, err := confine.New(o).Helper(t.Context(), exec.Command("/bin/true"), confine.Helper{OnlyWrite: true, Required: true})
		if runs != (err == nil) || err != nil && !errors.Is(err, confine.ErrUnavailable) {
			t.Errorf("%s: %v", demand, err)
		}
	}
}

// TestSocketsThatSomebodyListensOnAreHidden: wherever they lie, and whatever they
// are called.
func TestSocketsThatSomebodyListensOnAreHidden(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.Network = exe, func() bool { return true }
	dir, err := os.MkdirTemp("/tmp", "c-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	inside := filepath.Join(dir, "w")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	o.Root = inside
	for _, name := range []string{"agent", "with blank", "w/own"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if !slices.Contains(sandbox.ListeningSockets(inside), filepath.Join(dir, "agent")) {
		t.Skip("the system does not tell on which sockets programs listen")
	}
	c := confine.New(o)
	defer c.Close()
	got, err := c.Command(t.Context(), read("make"))
	if err != nil {
		t.Fatal(err)
	}
	argv := strings.Join(got.Wrapper, "\n")
	for name, hidden := range map[string]bool{"agent": true, "with blank": true, "w/own": true} {
		if strings.Contains(argv, filepath.Join(dir, name)) != hidden {
			t.Errorf("%s: hidden is not %v in %q", name, hidden, got.Wrapper)
		}
	}
}

func TestCachesThatToolsNeedAreMade(t *testing.T) {
	getenv := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	have := func(programs ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(programs, name) }
	}
	for _, c := range []struct {
		vars     map[string]string
		programs []string
		want     []string
	}{
		{nil, nil, nil},
		{nil, []string{"go"}, []string{"/h/.cache/go-build", "/h/go/pkg/mod", "/h/go/pkg/sumdb"}},
		{map[string]string{"GOCACHE": "/c", "GOPATH": "/p"}, []string{"go"}, []string{"/c", "/p/pkg/mod", "/p/pkg/sumdb"}},
		{map[string]string{"XDG_CACHE_HOME": "/x"}, []string{"uv", "cargo"}, []string{"/h/.cargo/registry", "/h/.cargo/git", "/x/uv"}},
		{nil, []string{"mvnw"}, []string{"/h/.m2/repository"}},
	} {
		if got := confine.NeededCaches("/h", getenv(c.vars), have(c.programs...)); !slices.Equal(got, c.want) {
			t.Errorf("%v %v: %q, want %q", c.vars, c.programs, got, c.want)
		}
	}

	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(here, ".home-") // a temporary folder may be written to anyway
	if err != nil {
		t.Skipf("there is no place for a home: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if strings.HasPrefix(home, os.TempDir()+"/") || strings.HasPrefix(home, "/tmp/") {
		t.Skip("the sources lie in a temporary folder")
	}
	in := func(name string) string { return filepath.Join(home, name) }
	isThere := func(name string) bool { _, err := os.Lstat(in(name)); return err == nil }
	o, _ := helpless(t, confine.Auto)
	o.NeededWrite = func() []string {
		return []string{in(".cache/go-build"), "off", in("a") + ":" + in("b"), filepath.Join(o.Root, "home/.cache")}
	}
	c := confine.New(o)
	if _, err := c.Command(t.Context(), read("ls")); err != nil || isThere(".cache") {
		t.Errorf("made for a line that only reads: %v", err)
	}
	if _, err := c.Helper(t.Context(), exec.Command("true"), confine.Helper{ReadOnly: true}); err != nil || isThere(".cache") {
		t.Errorf("made for a program that only reads: %v", err)
	}
	if _, err := c.Command(t.Context(), read("go test ./...")); err != nil || !isThere(".cache/go-build") {
		t.Errorf("not made: %v", err)
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) != 1 {
		t.Errorf("in the home: %v, %v", left, err)
	}
	if left, err := os.ReadDir(o.Root); err != nil || len(left) > 0 {
		t.Errorf("in the workspace: %v, %v", left, err)
	}

	o.Demand, o.NeededWrite = confine.Off, func() []string { return []string{in("off")} }
	if _, err := confine.New(o).Command(t.Context(), read("go test ./...")); err != nil || isThere("off") {
		t.Errorf("made where nothing is confined: %v", err)
	}
}
