package confine_test

import (
	"os"
	"path/filepath"
	"testing"

	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
)

// What the plan of a command says about its bounds is what the command gets, and a
// journal is kept of a command that may write.
func TestAPlanSaysWhatTheCommandGets(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(root, ".git"), filepath.Join(home, ".coder"), filepath.Join(home, ".ssh")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range [][]string{{filepath.Join(home, ".coder")}, nil} {
		c := confine.New(confine.Options{
			Demand: confine.Auto, Exe: os.Args[0], Root: root, Home: home, Write: []string{"/opt"}, StateDirs: state, Network: func() bool { return false },
			Journal: new(sandbox.Journal),
		})
		defer c.Close()
		for _, line := range []string{"ls", "cat a", "make", "git commit -m x"} {
			says, err := c.Describe(t.Context(), read(line))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Command(t.Context(), read(line))
			if err != nil || got.Summary == "" {
				t.Skipf("commands cannot be confined here: %q, %v", got.Summary, err)
			}
			if says != got.Summary {
				t.Errorf("%s: the plan says\n%s\nbut the command gets\n%s", line, says, got.Summary)
			}
			if journal := got.Journal != nil; journal == read(line).ReadOnly {
				t.Errorf("%s: a journal is kept: %v", line, journal)
			}
		}
	}
}
