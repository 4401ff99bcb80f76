package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Shells complete what the program says, each in its own way.
func TestShellsComplete(t *testing.T) {
	p := newProgram(t)
	home, work := filepath.Dir(p.self), p.ws
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".coder"), 0o755), os.Mkdir(filepath.Join(work, "folder"), 0o755)); err != nil {
		t.Fatal(err)
	}
	p.file("../.coder/config.json", `{"provider": {"base_url": "http://127.0.0.1:1/v1", "model": "big-one", "models": ["big-one", "big-two"]}, "profiles": {"far": {"base_url": "http://127.0.0.1:2/v1"}}}`)
	p.file("../.coder/lists.json", `{"http://127.0.0.1:1/v1": ["listed-one", "small:7b", "listed-$(reboot)"], "http://127.0.0.1:2/v1": ["listed-far"]}`)
	p.file("my script.txt", "say hello\n")
	p.file("model", "say hello\n")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "PATH=" + home + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", noRaceWait}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", name, args, err)
		}
		return string(out)
	}
	run(p.self, "-p", "--script", "model", "--session-id", "first-session", "what is here")

	if got := run(p.self, "__complete", "--resume", ""); !strings.HasPrefix(got, "first-session\t") || strings.Count(got, "\n") != 1 {
		t.Errorf("sessions to go on with: %q", got)
	}
	if got := run(p.self, "__complete", "--model", "listed"); got != "listed-one\t\n" {
		t.Errorf("models that the endpoint has, by its last word: %q", got)
	}
	if got := run(p.self, "__complete", "--profile=far", "--model", "listed"); got != "listed-far\t\n" {
		t.Errorf("models of a profile: %q", got)
	}
	if got := run(p.self, "__complete", "--profile", "f"); got != "far\t\n" {
		t.Errorf("profiles: %q", got)
	}
	type row struct{ typed, want string }
	lines := []row{
		{"coder sess", "sessions"},
		{"coder --out", "--output-format"},
		{"coder -p --output-format st", "stream-json"},
		{"coder --model big-", "big-two"},
		{"coder --model lis", "listed-one"},
		{"coder -r fir", "first-session"},
		{"coder audit ver", "verify"},
		{"coder audit verify f", "first-session"},
		{"coder completion z", "zsh"},
		{"coder --script mo", "model"},
		{"coder --cwd fol", "folder"},
		{"coder --json-schema mo", "model"},
		{"coder --mcp-config mo", "model"},
		{"coder --settings mo", "model"},
		{"coder --system-prompt-file mo", "model"},
		{"coder context fir", "first-session"},
		{"coder import mo", "model"},
		{"coder why mo", "model"},
		{"coder blame mo", "model"},
		{"coder prune --older", "--older-than"},
	}
	scripts := map[string]string{
		"bash": `source <(coder completion bash)
COMP_LINE=$1; read -r -a COMP_WORDS <<<"${1//:/ : }"; COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _coder; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `coder completion fish | source; complete -C $argv[1]`,
		// A function that stands for the shell's own notes what it is given.
		"zsh": `autoload -U compinit; compinit -u -d $HOME/dump; source <(coder completion zsh)
_describe() { local -a a; a=("${(@P)3}"); print -rl -- "${(@)a%%:*}" }
_files() { [[ $1 == -/ ]] && print -l *(/N) || print -l *(N) }
words=(${(z)1}); CURRENT=${#words}; _coder`,
	}
	// Names with blanks stay whole, and what bash has parted at colons is made whole.
	own := map[string][]row{"bash": {
		{"coder --script my", "my script.txt\n"}, {"coder import my", "my script.txt\n"}, {"coder --model sm", "small:7b\n"},
		{"coder --model small:", "7b\n"}, {"coder --model small:7", "7b\n"},
	}}
	for shell, script := range scripts {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed", shell)
			}
			file := p.file("../try."+shell, script)
			for _, l := range append(own[shell], lines...) {
				if got := run(shell, file, l.typed); !strings.Contains("\n"+got, "\n"+l.want) {
					t.Errorf("%q gives %q, want %q among it", l.typed, got, l.want)
				}
			}
		})
	}
}
