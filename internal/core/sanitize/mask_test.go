package sanitize_test

import (
	"strings"
	"testing"

	"coder/internal/core/sanitize"
)

func TestWhatLooksLikeAKeyIsMasked(t *testing.T) {
	long := strings.Repeat("aB3", 14)
	for in, want := range map[string]string{
		"OPENAI: sk-proj-" + long:                     "OPENAI: sk-pro…[masked]",
		"ghp_" + long:                                 "ghp_aB…[masked]",
		"AKIAIOSFODNN7EXAMPLE is here":                "AKIAIO…[masked] is here",
		"Authorization: Bearer " + long:               "Authorization: Bearer …[masked]",
		`{"api_key": "` + long + `"}`:                 `{"api_key": "…[masked]"}`,
		"DB_PASSWORD=correct-horse-battery":           "DB_PASSWORD=…[masked]",
		"MY_SECRET_TOKEN: '" + long + "' # x":         "MY_SECRET_TOKEN: '…[masked]' # x",
		"-----BEGIN RSA PRIVATE KEY-----\nMII" + long: "-----B…[masked]",
	} {
		if got := sanitize.Mask(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	for _, s := range []string{
		"", "the token count is 12", "max_tokens: 4096", "func TokenFor(ctx context.Context) string", "task-runner", "risk-assessment-of-the-plan",
		"password must be set", "sk-short", "eyJ", "disk-usage-by-folder", "tokens := strings.Fields(s)", "passwd: x", "xoxo",
	} {
		if got := sanitize.Mask(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("token=abcdefghijklmnop")
	f.Fuzz(func(t *testing.T, s string) {
		if got := sanitize.Mask(s); !strings.Contains(got, "…[masked]") && got != s {
			t.Errorf("%q became %q without a mark", s, got)
		}
	})
}
