package risk_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/policy/risk"
)

// pieces of command lines over which parsers and shells like to disagree.
var pieces = []string{
	" ", " ", " ", "\n", "\\\n", "\t", ";", "&", "&&", "||", "|", "#", "\\", "'", "'", `"`, `"`, "$'", `\'`, "`", "$(", ")", "(", "{ ", "; }", "!",
	"rm a", "rm a", "rm", "r", "m", "ls", "ls", "ls ", "cat", "echo ", "eval ", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "E", "[[ ", " ]]", "((", "))", "$((",
	"${x:-", "}", "if ", "; then ", "; fi", "case a in a) ", ";; esac", "<(", ">(", "&>f", ">&2", "2>", "f", "x=", "$x", "@(", "*", "{a,b}", "function f ", "~", "[", "]",
}

const lines = 150 // tried in each shell

// TestShellsRunNothingUnseen makes up command lines and lets shells run them
// where every command but a few stubs is missing: whenever the stub of a
// dangerous command ran, the line must have been judged dangerous.
func TestShellsRunNothingUnseen(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	stub(t, filepath.Join(bin, "rm"), `: > "$MARK"`)
	stub(t, filepath.Join(bin, "ls"), ":")
	stub(t, filepath.Join(bin, "cat"), "while read -r l; do :; done")
	random := rand.New(rand.NewPCG(7, 11))
	for _, name := range []string{"sh", "bash"} {
		shell, err := exec.LookPath(name)
		if err != nil {
			t.Logf("%s is not installed", name)
			continue
		}
		seen := 0
		for range lines {
			command := madeUp(random)
			mark := filepath.Join(t.TempDir(), "ran") // its own: what stays in the background may come late
			if !runs(t, shell, command, dir, bin, mark) {
				continue
			}
			seen++
			if r := risk.Analyse(command, facts()); r.Level == risk.None {
				t.Errorf("%s ran rm unseen: %q", name, command)
			}
		}
		t.Logf("%s ran rm in %d of %d lines", name, seen, lines)
	}
}

func madeUp(random *rand.Rand) string {
	var b strings.Builder
	n := 2 + random.IntN(8)
	at := random.IntN(n)
	for i := range n {
		if i == at {
			b.WriteString("rm a")
		}
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

func stub(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// runs reports whether the shell ran the stub of rm.
func runs(t *testing.T, shell, command, dir, bin, mark string) bool {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, shell, "-c", command+"\nwait")
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, []string{"PATH=" + bin, "MARK=" + mark}, time.Second
	_ = cmd.Run() // most of these lines fail
	_, err := os.Stat(mark)
	return err == nil
}
