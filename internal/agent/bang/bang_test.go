package bang

import (
	"testing"

	"coder/internal/config"
	"coder/internal/tool"
)

func TestProgramsThatWantATerminal(t *testing.T) {
	programs := config.Default().Approval.TerminalPrograms
	for line, want := range map[string]bool{
		"vim a":                          true,
		"EDITOR=vi /usr/bin/vim a":       true,
		"git log | less":                 true,
		"make && top":                    true,
		"bash -c 'vim x'":                true,
		`sh -lc "less x"`:                true,
		"git commit":                     true,
		"git -C . commit":                true,
		"git -c a=b -C x commit -a":      true,
		"git config --global -e":         true,
		"git rebase HEAD~2 -i":           true,
		"git tag -a v1":                  true,
		"crontab -e":                     true,
		"visudo":                         true,
		"dlv debug":                      true,
		"gh auth login":                  true,
		"npm init":                       true,
		"sudo ls":                        true,
		"python3":                        true,
		"python3.12 -i":                  true,
		"node":                           true,
		"bash":                           true,
		"bash -l":                        true,
		"irb; ls":                        true,
		"docker run -it x sh":            true,
		"docker exec -i -t x sh":         true,
		"podman run --rm -ti x":          true,
		"read -p x y":                    true,
		"cd a && python3":                true,
		`\vim a`:                         true,
		"timeout 5 top":                  true,
		"timeout -k 1 5m top":            true,
		"env -i A=b vim a":               true,
		"nice -n 5 less a":               true,
		"python3 -i x.py":                true,
		"ls | xargs -o vim":              true,
		"ls | xargs rm":                  false,
		"timeout 5 sh a.sh":              false,
		"perl -i -pe s/a/b/ f":           false,
		"python3 -m pdb a.py":            true,
		"cat":                            true,
		"cat a":                          false,
		"echo a | cat":                   false,
		"python3 -m pytest":              false,
		"git commit --help":              true,
		"git commit | cat":               true,
		"ls | fzf | cat":                 true,
		"cat a | less | cat":             false,
		"top -b -n1 | head -2":           false,
		"top -bn1":                       false,
		"less --version | head -1":       false,
		"man -w ls":                      false,
		"man ls > x":                     false,
		"man ls 2> x":                    true,
		"git commit --help | head -2":    false,
		"vim --version":                  false,
		"view a":                         true,
		"vimdiff a b":                    true,
		"ex a":                           true,
		"$EDITOR a":                      true,
		`"${VISUAL:-vi}" a`:              true,
		"$PAGER a":                       true,
		"$PAGER a | cat":                 false,
		"$SHELL":                         true,
		"perl -de 0":                     true,
		"node inspect a.js":              true,
		"$SHELL -c ls":                   false,
		"$CC a.c":                        false,
		"echo $EDITOR":                   false,
		"git branch --edit-description":  true,
		"git branch -a":                  false,
		"git notes add":                  true,
		"git clean -i":                   true,
		"git clean -n":                   false,
		"git rebase --continue":          true,
		"git help log":                   true,
		"git help log | head":            false,
		"docker compose exec web sh":     true,
		"docker compose up":              false,
		"echo $(less a)":                 false,
		"echo 1 | bash -c 'read x'":      false,
		"ls":                             false,
		"git log":                        false,
		"git status -s":                  false,
		"git tag":                        false,
		"git tag v1":                     false,
		"git config a b":                 false,
		"crontab -l":                     false,
		"npm install":                    false,
		"python3 a.py":                   false,
		"python3 -c 'print(1)'":          false,
		"python3 --version":              false,
		"node -e 1":                      false,
		"echo 1 | python3":               false,
		"python3 < a.py":                 false,
		"python3 <<E\nprint(1)\nE":       false,
		"bash a.sh":                      false,
		"bash -c 'ls'":                   false,
		"docker run x sh":                false,
		"docker ps -a":                   false,
		"while read l; do ls; done < a":  false,
		"ls | while read l; do ls; done": false,
		"echo vim":                       false,
		"grep -r 'vim; top' .":           false,
		"echo 'unfinished":               false,
		"nohup vim a":                    false,
		"eval vim a":                     false,
		"ls | xargs vim":                 false,
		"find . -exec vim {} +":          false,
		"PAGER=less git log":             false,
		"ls | tee >(cat)":                false,
		"make -- vim":                    false,
		"$SHELL -c 'vim a'":              true,
		"env $EDITOR a":                  true,
	} {
		if got := Parse(line, false, programs).needsTerminal; got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
}

func TestLinesThatEndWithTheirShell(t *testing.T) {
	for line, want := range map[string]bool{
		"cd a": true, "cd": true, "export A=1": true, "A=1": true, "pushd a": true, "unset A": true,
		"cd a && ls": false, "ls": false, "export": false, "A=1 ls": false, "export -p": false, "umask": false, "cd a; make": false,
	} {
		if got := Parse(line, false, nil).report.OnlyShell; got != want {
			t.Errorf("%s: %t, want %t", line, got, want)
		}
	}
}

func TestWhatThePersonIsToldOfALine(t *testing.T) {
	l := Parse("vimish", false, nil)
	for _, step := range []struct{ says, want string }{
		{"hello", ""}, {"Vim: Warning: Output is not to a terminal", terminalHint}, {"input is not from a terminal", ""},
	} {
		if got := l.OutputHint(step.says); got != step.want {
			t.Errorf("%s: %q, want %q", step.says, got, step.want)
		}
	}
	fails := tool.ShellResult{ExitCode: 1, Stderr: "stdin: Not a TTY"}
	if got := l.EndNotes(fails); len(got) > 0 {
		t.Errorf("told twice: %q", got)
	}
	if got := Parse("x", false, nil).EndNotes(fails); len(got) != 1 || got[0] != terminalHint {
		t.Errorf("a program that lacks a terminal: %q", got)
	}
	if got := Parse("cd a", false, nil).EndNotes(tool.ShellResult{}); len(got) != 1 {
		t.Errorf("a line that ends with its shell: %q", got)
	}
	fails.Terminal = true
	if got := append(Parse("x", true, nil).EndNotes(fails), Parse("cd a", false, nil).EndNotes(tool.ShellResult{ExitCode: 1})...); len(got) > 0 {
		t.Errorf("nothing to tell, and %q", got)
	}
}
