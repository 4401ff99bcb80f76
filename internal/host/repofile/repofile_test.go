package repofile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree is a repository with everything in it that somebody might put there.
func tree(t *testing.T) (dir string) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "repo")
	for _, d := range []string{"repo/in/deep", "repo/.ssh", "outside"} {
		must(t, os.MkdirAll(filepath.Join(top, d), 0o755))
	}
	for name, text := range map[string]string{
		"repo/plain.md": "plain", "repo/in/a.md": "inside", "repo/.env": "KEY=1", "repo/.ssh/id_rsa": "key", "repo/empty": "",
		"outside/far.md": "far", "outside/.env": "KEY=2",
	} {
		must(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o644))
	}
	for name, to := range map[string]string{
		"link.md": "in/a.md", "abs.md": filepath.Join(dir, "in/a.md"), "deep.md": "in/deep/../a.md", "dir": "in", "chain.md": "link.md",
		"out.md": "../outside/far.md", "absout.md": filepath.Join(top, "outside/far.md"), "outdir": "../outside", "back.md": "../repo/plain.md",
		"secret.md": ".env", "key.md": ".ssh/id_rsa", "twice.md": "secret.md", "environ.md": "/proc/self/environ", "fd.md": "/proc/self/fd/0",
		"zero.md": "/dev/zero", "loop.md": "loop.md", "ping.md": "pong.md", "pong.md": "ping.md", "dangling.md": "nowhere.md", "root.md": "/", "up": "..",
	} {
		must(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Symlink("pipe", filepath.Join(dir, "topipe.md")))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "sock"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	huge, err := os.Create(filepath.Join(dir, "huge"))
	must(t, err)
	must(t, errors.Join(huge.Truncate(1<<40), huge.Close()))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatARepositoryOffersIsReadOrRefusedAtOnce(t *testing.T) {
	dir := tree(t)
	tests := []struct {
		name, want string
		err        error
	}{
		{name: "plain.md", want: "plain"}, {name: "in/a.md", want: "inside"}, {name: "empty"}, {name: "./in/../plain.md", want: "plain"},
		{name: "link.md", want: "inside"}, {name: "abs.md", want: "inside"}, {name: "deep.md", want: "inside"},
		{name: "dir/a.md", want: "inside"}, {name: "chain.md", want: "inside"},

		{name: "out.md", err: ErrOutside}, {name: "absout.md", err: ErrOutside}, {name: "outdir/far.md", err: ErrOutside},
		{name: "outdir/.env", err: ErrOutside}, {name: "../outside/far.md", err: ErrOutside}, {name: "/etc/passwd", err: ErrOutside},
		{name: "back.md", err: ErrOutside}, {name: "root.md", err: ErrOutside}, {name: "up/repo/plain.md", err: ErrOutside},
		{name: "environ.md", err: ErrOutside}, {name: "fd.md", err: ErrOutside}, {name: "zero.md", err: ErrOutside},
		{name: ".env", err: ErrSecret}, {name: "secret.md", err: ErrSecret}, {name: "key.md", err: ErrSecret}, {name: "twice.md", err: ErrSecret},
		{name: "pipe", err: ErrNotRegular}, {name: "topipe.md", err: ErrNotRegular}, {name: "sock", err: ErrNotRegular}, {name: "in", err: ErrNotRegular}, {name: ".", err: ErrNotRegular},
		{name: "loop.md", err: ErrLinkLoop}, {name: "ping.md", err: ErrLinkLoop}, {name: "huge", err: ErrTooLarge},
		{name: "no", err: fs.ErrNotExist}, {name: "dangling.md", err: fs.ErrNotExist}, {name: "plain.md/x", err: fs.ErrNotExist},
	}
	for _, tt := range tests {
		text, err := NewRoot(dir).Read(tt.name, 100)
		if string(text) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, text, err, tt.want, tt.err)
		}
		if err != nil && !strings.Contains(err.Error(), tt.name) && tt.name[0] != '.' {
			t.Errorf("%s is not named: %v", tt.name, err)
		}
		if refused := tt.err != nil && !errors.Is(tt.err, fs.ErrNotExist); IsRefused(err) != refused {
			t.Errorf("%s: refused is %v", tt.name, !refused)
		}
	}
	if text, more, err := NewRoot(dir).ReadHead("huge", 10); len(text) != 10 || !more || err != nil {
		t.Errorf("the head of a huge file: %d bytes, more %v, %v", len(text), more, err)
	}
}

func TestNoLinkLeadsToWhatIsHidden(t *testing.T) {
	dir := tree(t)
	hidden := func(file string) bool { return filepath.Base(file) == "a.md" }
	for name, want := range map[string]error{
		"link.md": ErrHidden, "chain.md": ErrHidden, "dir/a.md": ErrHidden, "plain.md": nil, "in/a.md": nil, // by its own name
	} {
		if _, err := NewRoot(dir).Hiding(hidden).Read(name, 100); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := NewRoot(dir).Hiding(hidden).Sub("dir").Read("a.md", 100); !errors.Is(err, ErrHidden) {
		t.Errorf("below a folder: %v", err)
	}
}

func TestALinkInTheRootOfTheMachineDoesNotLeadToTheKernel(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	link := filepath.Join(t.TempDir(), "AGENTS.md")
	for _, to := range []string{"/proc/self/environ", "/proc/self/maps", "/proc/version"} {
		_ = os.Remove(link)
		must(t, os.Symlink(to, link))
		if text, err := NewRoot("/").Read(strings.TrimPrefix(link, "/"), 1<<20); !errors.Is(err, ErrSecret) {
			t.Errorf("%s: %d bytes, %v", to, len(text), err)
		}
	}
}

func TestFoldersAreFileSystemsThatNothingLeadsOutOf(t *testing.T) {
	dir := tree(t)
	for sub, want := range map[string]error{"in": nil, "dir": nil, "outdir": ErrOutside, "pipe": ErrNotRegular, "none": fs.ErrNotExist, "loop.md": ErrLinkLoop} {
		if _, err := fs.ReadDir(NewRoot(dir).Sub(sub), "."); !errors.Is(err, want) {
			t.Errorf("list %s: %v", sub, err)
		}
	}
	if text, err := fs.ReadFile(NewRoot(dir).Sub("in"), "a.md"); string(text) != "inside" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := NewRoot(dir).Sub("in").Open("../../outside/far.md"); !errors.Is(err, ErrOutside) {
		t.Errorf("out of a folder: %v", err)
	}
	if info, err := fs.Stat(NewRoot(dir), "topipe.md"); err != nil || info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
}

func TestThePersonsOwnFilesMayBeLinksButAreNotWaitedFor(t *testing.T) {
	dir := tree(t)
	for name, want := range map[string]error{
		"out.md": nil, "link.md": nil, "secret.md": nil,
		"pipe": ErrNotRegular, "topipe.md": ErrNotRegular, "zero.md": ErrNotRegular, "in": ErrNotRegular, "sock": ErrNotRegular,
		"loop.md": ErrLinkLoop, "huge": ErrTooLarge, "no": fs.ErrNotExist,
	} {
		if _, err := ReadOwn(filepath.Join(dir, name), 100); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(want, ErrTooLarge) {
			continue
		}
		if _, err := OwnDir(dir).Open(name); !errors.Is(err, want) && name != "in" {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if list, err := fs.ReadDir(OwnDir(dir), "outdir"); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
