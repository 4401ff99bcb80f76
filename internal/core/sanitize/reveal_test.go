package sanitize_test

import (
	"strings"
	"testing"

	"coder/internal/core/sanitize"
)

func TestWhatCannotBeSeenOrPassesForAnotherIsNamed(t *testing.T) {
	for in, want := range map[string]string{
		"go test ./...":                    "go test ./...",
		"p\u0430ypal.com":                  "p<U+0430>ypal.com", // Cyrillic a
		"rm -rf n\u043ede_modules":         "rm -rf n<U+043E>de_modules",
		"\u0440\u0430\u0441":               "<U+0440><U+0430><U+0441>", // nothing else says that it is Russian
		"\u0441\u0440 a b":                 "<U+0441><U+0440> a b",
		"\u039fpen":                        "<U+039F>pen", // Greek O
		"a\u2800b":                         "a<U+2800>b",
		"a\u200db \u200c\u200b":            "a<U+200D>b <U+200C><U+200B>",
		"a\u202eb":                         "a<U+202E>b",
		"a\u0335b\u0338":                   "a<U+0335>b<U+0338>",
		"a\u00a0b\u3164\ufe0f\u00ad\u2060": "a<U+00A0>b<U+3164><U+FE0F><U+00AD><U+2060>",
		"ls\u037e rm":                      "ls<U+037E> rm",
		"/etc\u2215passwd":                 "/etc<U+2215>passwd",
		"\uff52\uff4d x":                   "<U+FF52><U+FF4D> x",
		"\U0001d5cb\U0001d5c6 x":           "<U+1D5CB><U+1D5C6> x",
		"a\x1b[2Kb":                        "a^[[2Kb",
		"echo 'Привет, а это не ошибка'":    "echo 'Привет, а это не ошибка'",
		"git commit -m '修复：登录，重试（三次）'":      "git commit -m '修复：登录，重试（三次）'",
		"naïve café – “quoted” … 5μs Ωmega": "naïve café – “quoted” … 5μs Ωmega",
		"三～五天，3～5 天，～的 \uff5e/x":            "三～五天，3～5 天，～的 <U+FF5E>/x",
		"日本語 と 한국어":                         "日本語 と 한국어",
		"Δοκιμή":                            "Δοκιμή",
		"":                                  "",
		"\ue000":                            "<U+E000>",
	} {
		if got := sanitize.Reveal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzReveal(f *testing.F) {
	f.Add("p\u0430ypal \u200d\n\x1b[31m")
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitize.Reveal(s)
		if strings.ContainsAny(got, "\u2800\u200b\u200c\u200d\u202e\u00ad\u0335\x1b") {
			t.Errorf("%q lets through %q", s, got)
		}
		if sanitize.Reveal(got) != got {
			t.Errorf("%q: %q is not its own revelation", s, got)
		}
	})
}
