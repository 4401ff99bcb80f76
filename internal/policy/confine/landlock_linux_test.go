package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/sandbox"
	"coder/internal/host/shell"
	"coder/internal/policy/confine"
)

// TestAHomeInATemporaryFolderIsHiddenByLandlockToo: Landlock takes nothing out of what it
// grants, so /tmp with a home in it is not granted whole.
func TestAHomeInATemporaryFolderIsHiddenByLandlockToo(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	if sandbox.Find(t.Context(), sandbox.Options{Exe: exe, Backend: sandbox.Landlock}).Backend() != sandbox.Landlock {
		t.Skip("there is no Landlock here")
	}
	top, err := os.MkdirTemp("/tmp", "home-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	in := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"home/.ssh/id_rsa", "home/.coder/key", "home/work/a.txt", "home/plain"} {
		must(t, os.MkdirAll(filepath.Dir(in(name)), 0o700))
		must(t, os.WriteFile(in(name), []byte("CONTENT\n"), 0o600))
	}
	c := confine.New(confine.Options{
		Demand: confine.Auto, Exe: exe, Root: in("home/work"), Home: in("home"), StateDirs: []string{in("home/.coder")}, Backend: sandbox.Landlock,
		Network: func() bool { return true }, LooksIncomplete: func() bool { return false },
	})
	t.Cleanup(func() { _ = c.Close() })
	for line, want := range map[string]bool{
		"(cat $D/home/.ssh/id_rsa)": false, "(cat $D/home/.coder/key)": false, "echo x > $D/home/.coder/key": false, "echo x >> $D/home/.ssh/authorized_keys": false,
		"cat $D/home/plain": true, "echo x > $D/home/work/b && cat $D/home/work/b": true, "f=$(mktemp) && echo x > $f && cat $f && rm $f": true,
	} {
		got, err := c.Command(t.Context(), read(line))
		must(t, err)
		res, err := shell.Run(t.Context(), shell.Spec{
			Command: line, Dir: in("home/work"), Prefix: got.Wrapper, Attr: got.Attr, Init: got.Init, OutputLimit: 1 << 10,
			Env: append([]string{"D=" + top, "PATH=" + os.Getenv("PATH")}, got.Env...),
		})
		must(t, err)
		out := res.Stdout.Text() + res.Stderr.Text()
		if (res.ExitCode == 0) != want || strings.Contains(out, "CONTENT") && !strings.Contains(line, "plain") {
			t.Errorf("%s: %d: %s", line, res.ExitCode, out)
		}
	}
}
