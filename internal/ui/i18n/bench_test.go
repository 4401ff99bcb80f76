package i18n_test

import (
	"strings"
	"testing"

	"coder/internal/ui/i18n"
)

func BenchmarkSaid(b *testing.B) {
	zh := i18n.For(i18n.Chinese)
	for name, text := range map[string]string{
		"known":   "risk: matches dangerous command policy: matches dangerous command policy (rm removes files): rm -r build",
		"unknown": "+	if err := r.render.Break(); err != nil { return fmt.Errorf(x) }",
		"long":    strings.Repeat("a: b, c; (d)  ", 250),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = zh.TranslateText(text)
			}
		})
	}
}

func BenchmarkFirstWord(b *testing.B) {
	for b.Loop() {
		_ = i18n.For(i18n.Chinese).TranslateText("nobody to ask")
	}
}
