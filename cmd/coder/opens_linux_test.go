package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var opened = regexp.MustCompile(`\bopen(at|at2)?\(`)

// mostOpened is how many files the first command of a process may cost if it does nothing,
// with all that is done around it, and mostNext one more. What shells and the Go runtime
// of the helper open is a third of them. Of the first there are five folders that are
// synced, the home folder, which is listed for what a command may not see, the control group and the three
// contents that a session begins with.
const (
	mostOpened = 100
	mostNext   = 44
)

// TestACommandOpensFewFiles counts what the program and all that it starts open
// for the first command of a process and for one more.
func TestACommandOpensFewFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	bin := filepath.Join(t.TempDir(), "coder")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	count := func(commands ...string) (n int) {
		home, trace := t.TempDir(), filepath.Join(t.TempDir(), "trace")
		var script strings.Builder
		for _, c := range commands {
			script.WriteString(`call bash {"command": "` + c + "\"}\n---\n")
		}
		script.WriteString("say done\n")
		if err := os.WriteFile(filepath.Join(home, "script"), []byte(script.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(strace, "-f", "-e", "trace=open,openat,openat2", "-o", trace, bin, "-p", "--auto-approve", "--script", filepath.Join(home, "script"), "--cwd", t.TempDir(), "hi")
		c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "done") {
			t.Skipf("what the program opens cannot be watched here: %v %s", err, out)
		}
		f, err := os.Open(trace)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if line := lines.Text(); opened.MatchString(line) && !strings.Contains(line, "/listening") { // that is by the clock
				n++
			}
		}
		return n
	}
	none, one, two := count(), count("true"), count("true", "echo hi")
	if one-none >= mostOpened || two-one >= mostNext {
		t.Errorf("the first command opened %d files, the next one %d", one-none, two-one)
	}
	t.Logf("without a command %d, the first %d, the next %d", none, one-none, two-one)
}

// TestTheConfigurationIsReadOnce whatever the program is called for, also where
// what it says is said in the language that the configuration names.
func TestTheConfigurationIsReadOnce(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	p := newProgram(t)
	script := p.file("script", "say done\nrepeat")
	own := filepath.Join(filepath.Dir(p.self), ".coder", "config.json")
	if err := errors.Join(os.Mkdir(filepath.Dir(own), 0o700), os.WriteFile(own, []byte(`{"ui": {"lang": "zh-CN"}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"-p hi --script " + script, "-p", "sessions", "tasks", "policy check ls", "config show", "--help", "--nope"} {
		trace := filepath.Join(t.TempDir(), "trace")
		c := p.cmd(strings.Fields(args)...)
		c.Args = append([]string{strace, "-f", "-e", "trace=open,openat,openat2", "-o", trace, c.Path}, c.Args[1:]...)
		c.Path = strace
		out, _ := c.CombinedOutput()
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Skipf("what the program opens cannot be watched here: %v %s", err, out)
		}
		if n := strings.Count(string(text), `"`+own+`"`); n != 1 {
			t.Errorf("coder %s opened %s %d times", args, own, n)
		}
	}
}

// TestAStartOpensEachForeignFileOnce counts what a start opens in a project with the files of other agents.
func TestAStartOpensEachForeignFileOnce(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	files := []string{
		".claude/commands/mark01.md", ".claude/agents/mark02.md", ".claude/rules/mark03.md", ".claude/skills/mark04/SKILL.md",
		".cursor/rules/mark05.mdc", ".cursor/commands/mark06.md", ".github/instructions/mark07.instructions.md",
		".github/prompts/mark08.prompt.md", ".gemini/commands/mark09.toml", ".opencode/command/mark10.md",
		".windsurf/rules/mark11.md", ".opencode/agent/mark12.md",
	}
	opens := func(files []string) (trace string, n int) {
		p := newProgram(t)
		for _, file := range files {
			name := filepath.Join(p.ws, filepath.FromSlash(file))
			text := "---\ndescription: about\nname: mark04\n---\n" + file + "\n"
			if strings.HasSuffix(file, ".toml") {
				text = "prompt = \"" + file + "\"\n"
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := p.cmd("trust", "--yes").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		file := filepath.Join(t.TempDir(), "trace")
		c := p.cmd("-p", "--script", p.file("script", "say done"), "hi")
		c.Args = append([]string{strace, "-f", "-e", "trace=open,openat,openat2", "-o", file, c.Path}, c.Args[1:]...)
		c.Path = strace
		out, _ := c.CombinedOutput()
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(out), "done") {
			t.Skipf("what the program opens cannot be watched here: %v %s", err, out)
		}
		return string(text), len(opened.FindAllString(string(text), -1))
	}
	_, without := opens(nil)
	trace, with := opens(files)
	for _, file := range files {
		name := filepath.Base(file)
		if name == "SKILL.md" {
			name = "mark04"
		}
		if n := strings.Count(trace, name+`"`) + strings.Count(trace, name+"/SKILL.md"); n != 1 {
			t.Errorf("%s was opened %d times", file, n)
		}
	}
	// each file, its folders and those above are opened one by one, so that no link leads out of the project
	if more := with - without; more > 12*len(files) {
		t.Errorf("%d files cost %d opens", len(files), more)
	}
	t.Logf("without them %d, with %d files %d", without, len(files), with)
}
