package shell_test

import (
	"os"
	"path/filepath"
	"testing"

	"coder/internal/host/shell"
)

func bash(t *testing.T) shell.Program {
	t.Helper()
	p := shell.Find()
	if !p.IsBash() {
		t.Skip("bash is not installed")
	}
	return p
}

func TestBashUnderstandsWhatIsWrittenForBash(t *testing.T) {
	for command, want := range map[string]string{
		`echo {a,b} {1..3}`: "a b 1 2 3\n",
		`x=(1 2); echo ${#x[@]} ${x[1]}; [[ ab == a* && -n x ]] && echo yes`:                         "2 2\nyes\n",
		`cat <<< here; cat <(echo there)`:                                                            "here\nthere\n",
		`ls /no/such/file &> /dev/null || echo hidden`:                                               "hidden\n",
		`set -o pipefail; false | true; echo $?`:                                                     "1\n",
		`echo -e 'a\tb' $'c\td'`:                                                                     "a\tb c\td\n",
		`shopt -q login_shell || echo not login; case $- in *i*) echo interactive;; esac; echo "$0"`: "not login\n" + string(shell.Find()) + "\n",
	} {
		o, err := run(t, t.Context(), shell.Spec{Shell: bash(t), Command: command})
		if err != nil || o.Stdout.Text() != want {
			t.Errorf("%s: %q, %v, want %q", command, o.Stdout.Text(), err, want)
		}
	}
}

// TestALineMeansWhatItSays plants what changes the meaning of a line into the
// environment and the home.
func TestALineMeansWhatItSays(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{".bashrc", ".bash_profile", ".profile", "env"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte("echo planted\nalias echo='echo planted'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "elsewhere", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	planted := []string{
		"HOME=" + home, "BASH_ENV=" + home + "/env", "ENV=" + home + "/env", "SHELLOPTS=noglob:xtrace:posix", "BASHOPTS=expand_aliases:extglob",
		"BASH_FUNC_echo%%=() { printf planted; }", "BASH_FUNC_ls()=() { printf planted; }", "pwd=() { printf planted; }",
		"PS4=$(echo planted >&2)", "PROMPT_COMMAND=echo planted", "CDPATH=" + home + "/elsewhere", "GLOBIGNORE=*", "POSIXLY_CORRECT=1", "IFS=o",
		"SSH_CLIENT=1 2 3", "SSH2_CLIENT=1 2 3",
	}
	for _, program := range []shell.Program{bash(t), "", "/bin/sh"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		o, err := run(t, t.Context(), shell.Spec{
			Shell: program, Dir: dir, Env: planted,
			Command: `set -x; echo one; set +x; x=foo; for w in $x; do echo "$w"; done; cd sub && echo *; cd ..; echo s*; pwd >/dev/null; ls >/dev/null; true`,
		})
		if want := "one\nfoo\n*\nsub\n"; err != nil || o.Stdout.Text() != want {
			t.Errorf("%q: %q, %v", program, o.Stdout.Text(), err)
		}
		if want := "+ echo one\n+ set +x\n"; o.Stderr.Text() != want {
			t.Errorf("%q said %q", program, o.Stderr.Text())
		}
	}
}
