package app

import (
	"testing"
	"time"
)

// A server is asked for a window that is unknown or old, or that a request nearly fills.
func TestAServerIsAskedForAWindowWhenItIsDue(t *testing.T) {
	const here, away = "http://127.0.0.1:1/v1", "https://api.example.com/v1"
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, tt := range map[string]struct {
		base, model string
		heard       reportedWindow
		estimate    int
		want        bool
	}{
		"unknown":                     {here, "m", reportedWindow{}, 10, true},
		"heard":                       {here, "m", reportedWindow{Tokens: 8192, Seen: now}, 10, false},
		"silent":                      {here, "m", reportedWindow{Seen: now.Add(-windowMaxAge + 1)}, 1e6, false},
		"silent, a day ago":           {here, "m", reportedWindow{Seen: now.Add(-windowMaxAge)}, 10, true},
		"heard, a day ago":            {here, "m", reportedWindow{Tokens: 8192, Seen: now.Add(-windowMaxAge)}, 10, true},
		"in the future":               {here, "m", reportedWindow{Tokens: 8192, Seen: now.Add(time.Hour)}, 10, true},
		"tight":                       {here, "m", reportedWindow{Tokens: 8192, Seen: now}, 5000, true},
		"tight, heard just now":       {here, "m", reportedWindow{Tokens: 8192, Seen: now, current: true}, 5000, false},
		"elsewhere":                   {away, "m", reportedWindow{}, 10, true},
		"elsewhere, in the catalogue": {away, "gpt-5.4", reportedWindow{}, 10, false},
		"here, in the catalogue":      {here, "gpt-5.4", reportedWindow{}, 10, true},
	} {
		s := newStudio(t, "", func(env *Env, _ *Options) { env.Now = func() time.Time { return now } })
		s.windows = serverFacts[reportedWindow]{loaded: true, facts: map[string]reportedWindow{modelKey(tt.base, tt.model): tt.heard}}
		if got := s.needsWindowLookup(tt.base, tt.model, tt.estimate); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The next process knows what a server said, and which model replied.
func TestAnotherModelAtAnAddressIsNoticed(t *testing.T) {
	const base = "http://127.0.0.1:1/v1"
	s := newStudio(t, "", nil)
	if s.recordReplyModel(base, "m", "a") {
		t.Error("the first reply of all is no change")
	}
	s.saveWindow(base, "m", 4096)
	for i, tt := range []struct {
		by   string
		want bool
	}{{"a", false}, {"a", false}, {"b", true}, {"b", false}, {"", true}, {"m", false}} {
		s.windows = serverFacts[reportedWindow]{} // as in the next process
		if got := s.recordReplyModel(base, "m", tt.by); got != tt.want {
			t.Errorf("reply %d: %t", i, got)
		}
	}
	s.saveWindow(base, "m", 0)
	s.windows = serverFacts[reportedWindow]{}
	if w := s.windows.get(s.factsFile(windowsFile), modelKey(base, "m")); w.Tokens != 4096 || w.Model != "m" || w.current {
		t.Errorf("%+v", w)
	}
}
