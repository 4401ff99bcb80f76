package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatGitWouldObeyIsFoundInInnerRepositories(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inner := []string{filepath.Join(root, "sub"), filepath.Join(root, "linked")}
	write("sub/.git/config", "[core]\n\tbare = false\n")
	write("sub/.git/hooks/pre-commit.sample", "#!/bin/sh\n")
	write("linked/.git", "gitdir: ../real\n")
	write("real/config", "[core]\n")
	inner = append(inner, filepath.Join(root, "bare.git"))
	for _, dir := range []string{"bare.git", ".git", ".git/modules/new"} {
		for _, name := range []string{"HEAD", "objects/info/x", "refs/heads/x"} {
			write(dir+"/"+name, "ref: refs/heads/main\n")
		}
		write(dir+"/config", "[core]\n\tbare = true\n")
	}
	if found := Planted(root, inner); len(found) > 0 {
		t.Errorf("harmless repositories: %v", found)
	}
	for _, c := range []struct{ file, text, at string }{
		{"sub/.git/config", "[core]\n\tfsmonitor = ./evil\n", "sub/.git/config"},
		{"sub/.git/hooks/post-checkout", "#!/bin/sh\n", "sub/.git/hooks/post-checkout"},
		{"real/config", "[alias]\n\tst = !./evil\n", "real/config"},
		{"sub/.git/commondir", "../../elsewhere\n", "sub/.git/commondir"},
		{"bare.git/config", "[core]\n\tpager = ./evil\n", "bare.git/config"},
		{"bare.git/hooks/pre-receive", "#!/bin/sh\n", "bare.git/hooks/pre-receive"},
		{".git/config", "[core]\n\teditor = ./evil\n", ".git/config"},
		{".git/config.worktree", "[filter \"x\"]\n\tclean = ./evil\n", ".git/config.worktree"},
		{".git/hooks/pre-commit", "#!/bin/sh\n", ".git/hooks/pre-commit"},
		{".git/modules/new/config", "[gpg]\n\tprogram = ./evil\n", ".git/modules/new/config"},
	} {
		before := Planted(root, inner)
		write(c.file, c.text)
		after := Planted(root, inner)
		at := filepath.Join(root, c.at)
		if after[at] == "" || before[at] == after[at] {
			t.Errorf("%s: %v", c.file, after)
		}
	}
}
