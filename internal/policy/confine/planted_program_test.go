package confine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"coder/internal/host/program"
	"coder/internal/policy/confine"
	"coder/internal/tool"
)

// TestAProgramThatCommandsMayWriteGetsNothingForItsName: a gh of the workspace is not the
// gh that the person approved, on the PATH, by its path, or by a PATH of the line.
func TestAProgramThatCommandsMayWriteGetsNothingForItsName(t *testing.T) {
	o, _ := helpless(t, confine.Off)
	o.WithheldEnv = func() []string { return []string{"GH_TOKEN=a"} }
	elsewhere := t.TempDir()
	inside, outside := filepath.Join(o.Root, "bin"), filepath.Join(elsewhere, "bin")
	for _, dir := range []string{inside, outside} {
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "gh"), []byte("#!/bin/sh\n"), 0o755))
	}
	for _, of := range []struct {
		path, line string
		want       bool
	}{
		{outside, "gh pr list", true},
		{outside + ":" + inside, "gh pr list", true},
		{inside + ":" + outside, "gh pr list", false},
		{inside, "gh pr list", false},
		{".:" + outside, "gh pr list", false},
		{outside, "PATH=bin:$PATH gh pr list", false},
		{outside, "export PATH=bin; gh pr list", false},
		{outside, inside + "/gh pr list", false},
		{outside, "bin/gh pr list", false},
	} {
		t.Setenv("PATH", of.path)
		t.Chdir(inside)
		o.Launcher = program.NewOutside([]string{"PATH=" + of.path}, o.Root)
		c := confine.New(o)
		got, err := c.Command(tool.WithApproval(t.Context(), true), read(of.line))
		if err != nil || slices.Contains(got.Env, "GH_TOKEN=a") != of.want {
			t.Errorf("PATH=%s, %s: %v, gets %q", of.path, of.line, err, got.Env)
		}
		_ = c.Close()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
