package i18n_test

import (
	"testing"

	"coder/internal/i18n"
)

func TestSentencesMadeElsewhereAreKnownByTheirShape(t *testing.T) {
	zh := i18n.For(i18n.Chinese)
	for in, want := range map[string]string{
		"bash policy requires approval":                             "bash 策略要求审批",
		"rule: bash policy requires approval":                       "规则：bash 策略要求审批",
		"risk: matches dangerous command policy: removes files: rm": "风险：命中危险命令策略：会删除文件：rm",
		"rule: bash policy requires approval; risk: other":          "规则：bash 策略要求审批；风险：other",
		"nothing anybody knows 100%":                                "nothing anybody knows 100%",
		"":                                                          "",
		"bash policy requires approval\n  removes files: a\nx":      "bash 策略要求审批\n  会删除文件：a\nx",
	} {
		if got := zh.Said(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := i18n.For(i18n.English).Said(in); got != in {
			t.Errorf("English changed %q to %q", in, got)
		}
	}
	var none *i18n.Printer
	if none.T("%d calls", 2) != "2 calls" || none.Said("x") != "x" {
		t.Error("a nil Printer does not speak English")
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
	f.Fuzz(func(t *testing.T, s string) {
		_ = i18n.For(i18n.Chinese).Said(s)
		if i18n.For(i18n.English).Said(s) != s {
			t.Error("English changed it")
		}
	})
}
