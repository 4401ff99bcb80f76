package i18n_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"coder/internal/core/message"
	"coder/internal/ui/i18n"
)

func TestSentencesMadeElsewhereAreKnownByTheirShape(t *testing.T) {
	zh := i18n.For(i18n.Chinese)
	for in, want := range map[string]string{
		"bash policy requires approval":                             "需要审批：bash policy requires approval",
		"rule: bash policy requires approval":                       "规则：需要审批：bash policy requires approval",
		"risk: matches dangerous command policy: removes files: rm": "风险：命中危险命令（matches dangerous command policy）：会删除文件：rm",
		"rule: bash policy requires approval; risk: other":          "规则：需要审批：bash policy requires approval；风险：other",
		"nothing anybody knows 100%":                                "nothing anybody knows 100%",
		// errors wrap errors, of the system's too
		"open session s1: open /x/y: permission denied":            "打开会话 s1：打开 /x/y：权限不够",
		"ask the model: rate limited: no such host":                "请求模型：请求过于频繁：没有这个主机",
		"a.json:1:2: ui.lang: expected a string, found 1":          "a.json:1:2：ui.lang：应为字符串，实为 1",
		"x: ignored in an untrusted project: k (names a variable)": "x：项目未受信任，已忽略：k（引用了变量）",
		// what stands within a sentence is in the same language
		"session s is in use by process 7 (coder) on vm since noon": "会话 s 正被主机 vm 上的进程 7（coder，自 noon 起）使用",
		"session s is in use by process 7 (coder)":                  "会话 s 正被进程 7（coder）使用",
		"allow (user); rule: write policy requires approval":        "允许（用户）；规则：需要审批：write policy requires approval",
		"#12 approve": "#12 同意",
		"cannot reach the provider: what it said": "无法连接提供方：what it said",
		`/a/b.txt: script line 1: unknown verb "x"; a line starts with say, reason, call, usage, stop, wait, cut, fail, to, want, else or repeat`: `/a/b.txt：脚本第 1 行：未知动词 "x"；每行应以 say、reason、call、usage、stop、wait、cut、fail、to、want、else 或 repeat 开头`,
		"#3 go test ./...: exit 1":                            "#3 go test ./...：退出码 1",
		`ui.theme: expected auto, dark or mono, found "pink"`: `ui.theme：应为 auto、dark 或 mono，实为 "pink"`,
		"not JSON: invalid literal: bad":                      "不是 JSON：无效的字面量：bad",
		"not JSON: parsing value: unexpected EOF":             "不是 JSON：读取值时意外结束",
		"not JSON: invalid character 'x' after object name":   "不是 JSON：对象的名称之后有无效字符 'x'",
		"install your system's clangd package":                "安装系统的软件包 clangd",
		`--allowed-tools: "bash(go test *" is not a rule; rules look like read, bash(go test *), edit(src/**)`: `--allowed-tools："bash(go test *" 不是规则；规则形如 read、bash(go test *)、edit(src/**)`,
		`failed: start npx: exec: "npx": executable file not found in $PATH`:                                   `失败：启动 npx："npx"：在 $PATH 中找不到可执行文件`,
		"MCP server notes: a program on this machine needs no login":                                           "MCP 服务器 notes：本机上的程序不需要登录",
		`--profile: unknown profile "work"`:                                                                    `--profile：没有名为 "work" 的配置方案`,
		`c.json:3: provider.model_info.m: unknown key "input"; use one of: context, output`:                    `c.json:3: provider.model_info.m：未知的键 "input"；可用的键：context、output`,
		// a command stays as it is, whatever it looks like
		"risk: removes files: rm a; ls b":                  "风险：会删除文件：rm a; ls b",
		"risk: overwrites an existing file: refused: done": "风险：会覆盖已有文件：refused: done",
		`unknown flag --x; coder help all lists them`:      "未知参数 --x；coder help all 会列出全部参数",
		"this folder is trusted":                           "此目录已受信任",
		"this folder is not trusted":                       "此目录未受信任",
		// what somebody wrote stays, though it has the shape of a sentence
		"commands like sleep 0; exit 4":                           "形如 sleep 0; exit 4 的命令",
		"for f in a b; do touch $f; done":                         "for f in a b; do touch $f; done",
		"1. always: this exact command line: while :; do x; done": "1. 始终允许：这一条命令行：while :; do x; done",
		"changes to exit 3":                                       "对 exit 3 的改动",
		"changes to 12 lines":                                     "对 12 lines 的改动",
		"refused by the user: exit 9":                             "用户不同意：exit 9",
		"refused by the user: no such file; rule: x":              "用户不同意：no such file; rule: x",
		"denied: refused by the user: exit 9":                     "已拒绝：用户不同意：exit 9",
		"folder exit 3 does not exist":                            "没有目录 exit 3",
		"verified: make 2 lines passed":                           "验证通过：make 2 lines",
		"undone: exit 3\n  restored: 12 lines, exit 4":            "已撤销：exit 3\n  已恢复：12 lines, exit 4",
		// names stay where a word stands alone
		"canceled: old_string is not in the file; re-read the file":                            "canceled：文件中没有 old_string；请重新读取",
		"done: old_string is in 2 places; add lines around it to pick one, or set replace_all": "done：old_string 出现在 2 places；请加上前后几行以便区分，或设置 replace_all",
		"trusted: done":              "已信任：done",
		"switch to interrupted mode": "切换到 interrupted 模式",
		// a repeated argument is the same both times
		"session a already exists; continue it with --resume a": "会话 a 已存在；可用 --resume a 继续",
		"session a already exists; continue it with --resume b": "session a already exists; continue it with --resume b",
		// short ones that commas part, if all are known
		"2 items, 1 in progress":   "2 项，1 项进行中",
		"2 items, 1 to be guessed": "2 items, 1 to be guessed",
		"":                         "",
		"bash policy requires approval\n  removes files: a\nx": "需要审批：bash policy requires approval\n  会删除文件：a\nx",
	} {
		if got := zh.TranslateText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := i18n.For(i18n.English).TranslateText(in); got != in {
			t.Errorf("English changed %q to %q", in, got)
		}
	}
	var none *i18n.Printer
	if none.T("%d calls", 2) != "2 calls" || none.TranslateText("x") != "x" {
		t.Error("a nil Printer does not speak English")
	}
}

func TestErrorsAreTranslatedByTheirFormats(t *testing.T) {
	zh := i18n.For(i18n.Chinese)
	denied := &fs.PathError{Op: "open", Path: "/x/y", Err: errors.New("permission denied")}
	for want, err := range map[string]error{
		"打开会话 s1：打开 /x/y：权限不够":              message.Errorf("open session %s: %w", "s1", denied),
		"打开会话 this folder is trusted：x":     message.Errorf("open session %s: %w", "this folder is trusted", errors.New("x")),
		"a.json:1:2：打开会话 s：x":               message.Errorf("%s:%d:%d: %w", "a.json", 1, 2, message.Errorf("open session %s: %w", "s", errors.New("x"))),
		"打开会话 s1：100%":                      message.Errorf("open session %s: %w", "s1", errors.New("100%")),
		"此目录已受信任；打开会话 s1：x":                 message.Errorf("%w; %w", errors.New("this folder is trusted"), message.Errorf("open session %s: %w", "s1", errors.New("x"))),
		"打开会话 s1：此目录已受信任":                   message.Errorf("open session %s: %w", "s1", errors.New("this folder is trusted")),
		"nothing anybody knows 3: %s":       message.Errorf("nothing anybody knows %d: %s", 3, "%s"),
		"打开保存的内容 012345678901：打开 /x/y：权限不够": message.Errorf("open saved content %.12s: %w", "0123456789012345", denied),
	} {
		if got := zh.TranslateError(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
		if got := i18n.For(i18n.English).TranslateError(err); got != err.Error() {
			t.Errorf("English changed %v to %q", err, got)
		}
	}
}

func TestTheLanguageIsTheOneAskedForOrThatOfTheEnvironment(t *testing.T) {
	for _, tt := range []struct{ asked, all, lang, want string }{
		{"", "", "", "en"},
		{"", "", "zh_CN.UTF-8", "zh-CN"},
		{"en", "", "zh_CN.UTF-8", "en"},
		{"zh-CN", "", "en_US.UTF-8", "zh-CN"},
		{"", "C", "zh_CN.UTF-8", "en"},
		{"", "zh_TW", "", "zh-CN"},
	} {
		env := map[string]string{"LC_ALL": tt.all, "LANG": tt.lang}
		if got := i18n.Choose(tt.asked, func(k string) string { return env[k] }); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func FuzzSaidLeavesWhatItDoesNotKnow(f *testing.F) {
	f.Add("rule: x; y")
	f.Add("%s %d %[2]s")
	f.Add("bash, read-only  allow  x (names a variable): a, b")
	zh, en := i18n.For(i18n.Chinese), i18n.For(i18n.English)
	f.Fuzz(func(t *testing.T, s string) {
		if said := zh.TranslateText(s); strings.Count(said, "\n") != strings.Count(s, "\n") && !strings.Contains(s, "%") {
			t.Errorf("%q has other lines: %q", s, said)
		}
		if en.TranslateText(s) != s {
			t.Error("English changed it")
		}
	})
}

// The program's own signs are ASCII where no more can be shown; people's data stays.
func TestSignsOfSentencesCanBeASCII(t *testing.T) {
	for _, p := range []*i18n.Printer{i18n.For(i18n.English).ASCII(), new(i18n.Printer).ASCII()} {
		if got, want := p.T("%s · %s · Esc stops it", "a · b…", "1s"), "a · b…, 1s, Esc stops it"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := p.T("… %d lines omitted", 3), "... 3 lines omitted"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := i18n.For(i18n.Chinese).ASCII().T("type to search · Up, Down · Enter selects · Esc cancels"); strings.ContainsAny(got, "·…") || !strings.Contains(got, "Esc") {
		t.Errorf("got %q", got)
	}
	var none *i18n.Printer
	if got := none.DisplaySigns(" · "); got != " · " {
		t.Errorf("got %q", got)
	}
}
