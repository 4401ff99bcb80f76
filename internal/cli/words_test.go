package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/ui/term"
)

// spoken runs the program and gives what it writes to stdout and stderr.
func spoken(t *testing.T, dir string, environ []string, args ...string) (out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := NewEnv()
	env.Args, env.Dir, env.Stdout, env.Stderr, env.Stdin = args, dir, &stdout, &stderr, strings.NewReader("")
	env.Environ = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, environ...)
	env.IsPiped = func() bool { return false }
	env.Terminal = func() (in, out *os.File, ok bool) { return nil, nil, false }
	Main(env)
	return stdout.String(), stderr.String()
}

func TestThePersonIsSpokenToInTheirLanguage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.txt")
	for path, text := range map[string]string{
		script: "call write {\"path\": \"b\", \"content\": \"x\"}\n---\nsay done\n",
		filepath.Join(dir, "zh", ".coder", "config.json"): `{"ui": {"lang": "zh-CN"}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	none, zh := []string(nil), []string{"LANG=zh_CN.UTF-8"}
	for _, tt := range []struct {
		environ         []string
		args            string
		out, err, never string
	}{
		{none, "--help", "print this help and exit", "", "帮助"},
		{none, "--lang zh-CN -h", "输出本帮助", "", "print this help"},
		{zh, "help all", "退出码", "", "Exit codes"},
		{zh, "--lang en help all", "Exit codes", "", "退出码"},
		{none, "--cwd zh --nope", "", "unknown flag", ""}, // nobody knows what a wrong line asks for
		{none, "--nope --lang=zh-CN", "", "未知参数 --nope", "unknown"},
		{none, "--cwd zh config path", "已读取", "", "(read)"},
		{zh, "policy check ls", "允许（build 模式", "", "allow"},
		{zh, "policy check --json ls", `"decision":"allow"`, "", "允许"},
		{zh, "tasks", "这里没有任务", "", ""},
		{zh, "tasks --json", "[]", "", "任务"},
		{none, "--cwd zh -p --script script.txt hi", "done", "write policy requires approval，且无人可问", "refused"},
		{zh, "-p --script script.txt --output-format json hi", `"result":"done"`, "refused: rule: write policy requires approval", "拒绝"},
		{zh, "-p --script script.txt /help", "列出命令", "", "list the commands"},
		{none, "-p --script script.txt /help", "list the commands", "", "列出命令"},
		{zh, "-p --no-session-persistence", "", "提示为空", ""},
	} {
		out, err := spoken(t, dir, tt.environ, strings.Fields(tt.args)...)
		if !strings.Contains(out, tt.out) || !strings.Contains(err, tt.err) || tt.never != "" && strings.Contains(out+err, tt.never) {
			t.Errorf("%s %v:\n%s\n%s", tt.args, tt.environ, out, err)
		}
	}
}

func TestAQuestionOfSetUpKeepsItsWordsWhole(t *testing.T) {
	const question = "用哪一个？名称（openai、anthropic、ollama…）或地址："
	if got, want := wrapQuestion(question, 30), "用哪一个？名称（openai、\nanthropic、ollama…）或地址："; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := wrapQuestion("Which one? A name or an address: ", 20), "Which one? A name or\nan address: "; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhoLooksOnSeesWordsWhole(t *testing.T) {
	var out bytes.Buffer
	p := replayFace{face: term.New(term.Options{Out: &out, Width: func() int { return 20 }})}
	if err := p.showUserMessage("tidy up all of it in /a/very/long/path/of/files"); err != nil || out.String() != "> tidy up all of it\n  in /a/very/long/\n  path/of/files\n" {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
