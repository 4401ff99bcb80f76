package cli

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{"": 30 * day, "30d": 30 * day, "2w": 14 * day, "12h": 12 * time.Hour, "0d": 0, "90m": 90 * time.Minute} {
		if got, err := parseAge(text); got != want || err != nil {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"d", "-1d", "soon", "30", "1y", "99999999999d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
