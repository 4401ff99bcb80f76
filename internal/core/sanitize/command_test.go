package sanitize_test

import (
	"strings"
	"testing"

	"coder/internal/core/sanitize"
)

func TestOrdinaryCommandsAreLeftAsTheyAre(t *testing.T) {
	for _, s := range []string{
		"",
		"go test ./... && git commit -m 'done'",
		// Chinese, Japanese, Korean
		"git commit -m '修复：登录，重试（三次）；见“说明”——完成！'",
		`git commit -m "feat: 支持 UTF-8 编码（默认）…"`,
		"cat 文档/说明.md",
		"ls 报告（终稿）.docx 《红楼梦》.txt 会议：纪要.txt",
		"mkdir 新建文件夹 && cd 新建文件夹",
		"cp 第一章v2.md 备份/",
		"cat '目录 一/x.txt' 目录\\ 一/x.txt docs/一.md test一.md && touch v一",
		"echo '完成？是的。共 3 项、4 页'",
		"echo 三～五天 约3～5天 好？ok 涨了3％ 共￥5 '价格：￥5；＃1，＠你'",
		"git commit -F - <<EOF\n修复：“登录”问题\n\n- 重试（三次）；见说明…\nEOF\ngit push",
		"grep -rn 'エラー' src/データ.go",
		"echo 'サーバーのテスト、完了。'",
		"echo '안녕하세요, 테스트 (완료)'",
		// German, French, Spanish, Polish, Turkish, Vietnamese
		"mv Übersicht.txt Größe_straße.txt",
		"git commit -m 'Größe geändert – siehe „Anhang“ § 3, 5 €'",
		"git commit -m \"Corrige l’erreur à l'accueil : « été » … œuvre\"",
		"touch Noël/été.txt",
		"echo '¿Qué tal? ¡Mañana! 20 °C ± 1'",
		"cat zażółć_gęślą.txt",
		"echo 'Çok güzel şey'",
		"echo 'Tiếng Việt được hỗ trợ'",
		// Russian, Ukrainian, Greek, others
		"git commit -m 'Привет, а это не ошибка — исправлено'",
		"cat документы/отчёт.txt",
		"echo 'Це їжа і вода'",
		"echo 'Δοκιμή και έλεγχος'",
		"echo 'שלום עולם' 'مرحبا بالعالم؟' 'नमस्ते दुनिया।' 'สวัสดี'",
		// pictures and signs of prose
		"git commit -m '✨ add ❤️ → done ✓ ≤ 5'",
		"echo 🚀 launched",
		"echo '2019–2020, 10 − 3'",
	} {
		if got := sanitize.RevealCommand(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestDeceptiveCommandsAreMarked(t *testing.T) {
	for _, s := range []string{
		"rm \u2212rf x", "rm \u2013rf x", "rm \u2010rf x", "rm \u2011rf x", "git push \u2014\u2014force", "sh -c 'rm \u2013rf x'", "sh -c 'git push \u2212f'", "cat my\u2013file",
		"cat a\ufffcb", "cd etc\u2216x", "scp host\u02d0x .", "scp host\ua789x .", "cat f\u2c9f\u2c9f", "cat p\u0430sswd", "\u0441\u0440 a b", "\u0441\u0440 a 'Привет'",
		"cat \uff50\uff41\uff53", "\U0001d5cb\U0001d5c6 x", "cat /etc\u2044passwd", "cat /etc\u2215passwd", "cat /etc\u29f8passwd", "ls\u037e rm x", "cat a\ufe68b", "ls\uff1b rm x",
		"rm -rf 旧文件\uff1b /home", "a\u00adb", "a\u180eb", "a\u2060b\u2064", "a\u115fb", "a\u3164b", "a\U000e0041b", "a\ufe01b", "a\u202eb", "a\u2066b",
		"echo \u201dabc ; rm x ; echo \u201c", "echo \u2019; rm x; \u2018", "ls \uff06\uff06 rm", "ls \uff5c sh", "echo \uff04HOME", "cat /etc\u30cepasswd", "rm \u30fcrf x", "rm \u4e00rf x",
		"ls \u4e28 sh", "ls\u3000-la", "cat a\u00a0b", "cat a\u2003b", "curl https://ex\u0430mple.com/", "curl https://example\u3002com/", "curl https://example.com\u2024evil.org/", "cat \u1d0dain.go",
		"cat \u0391GENTS.md", "cat \u13aaGENTS.md", "cat \ua4d0GENTS.md", "cat ma\u0131n.go", "cat \u0261o.mod", "cat x\u0338y", "cat /\u0301etc", "ls \u2502 sh", "ls \u2571etc", "git log \u2026x",
		"echo '\u043e\u0440\u0435'", "cat \u0660\u0661", "echo 'sk\u0456p'", "cat 5\u03bcs", "cat \u2160", "cat x\u00b2", "cat \u0501ata", "echo \"a\u200bb\"", "echo hi \uff03 rm",
		"ls \uff5e/文件", "ls '文件' \uff5e", "cat '\uff5e/文件'", "cat 文件\uff1c\uff1cEOF", "echo 你好\uff02; ls \uff02", "echo '文件\uff07; ls'", "echo 好 \uff03 ls",
	} {
		if got := sanitize.RevealCommand(s); !strings.Contains(got, "<U+") {
			t.Errorf("%q stays %q", s, got)
		}
	}
}

func TestWhatIsMarkedSaysWhere(t *testing.T) {
	for in, want := range map[string]string{
		"rm \u2212rf 文件":                    "rm <U+2212>rf 文件",
		"cat p\u0430th 'Привет, \u0430 ты'": "cat p<U+0430>th 'Привет, \u0430 ты'",
		"echo '会议：纪要' ： b":                  "echo '会议：纪要' <U+FF1A> b",
		"echo don't \u201cx":                "echo don't <U+201C>x",
		"go test ./very/long/na…":           "go test ./very/long/na…", // cut by us
		"a\x1b[2Kb":                         "a^[[2Kb",
		"cat <<A\n说：好\nA\nls ： x":           "cat <<A\n说：好\nA\nls <U+FF1A> x",
	} {
		if got := sanitize.RevealCommand(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzRevealCommand(f *testing.F) {
	f.Add("p\u0430ypal \u200d\n\x1b[31m 'a\u2013b' <<X\n\u201c\nX")
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitize.RevealCommand(s)
		if strings.ContainsAny(got, "\u2800\u200b\u200c\u200d\u202e\u00ad\u0335\x1b\u2010\u2044\u2215\u037e\ufffc") {
			t.Errorf("%q lets through %q", s, got)
		}
	})
}
