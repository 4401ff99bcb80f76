package catalogue

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-4o": "gpt-4o", "GPT-4o": "gpt-4o", "gpt-4o-2024-11-20": "gpt-4o", "gpt-4o-2024-05-13": "gpt-4o-2024-05-13", "gpt-4o-mini-2024-07-18": "gpt-4o-mini",
		"openai/gpt-4.1-mini": "gpt-4.1-mini", "gpt-4.1": "gpt-4.1", "gpt-4": "gpt-4", "gpt-4-0613": "gpt-4", "gpt-4-turbo-preview": "gpt-4-turbo",
		"gpt-5-codex": "gpt-5", "gpt-5.1-codex": "gpt-5.1", "gpt-5.1-codex-mini": "gpt-5.1-codex-mini", "gpt-5-pro-2025-10-06": "gpt-5-pro",
		"o1": "o1", "o1-2024-12-17": "o1", "o3-mini-high": "o3-mini",
		"claude-sonnet-4-20250514": "claude-sonnet-4", "claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "anthropic/claude-sonnet-4.5": "claude-sonnet-4-5",
		"openrouter/anthropic/claude-3.5-sonnet:beta": "claude-3-5-sonnet", "claude-opus-4-5@20251101": "claude-opus-4-5",
		"us.anthropic.claude-3-5-sonnet-20241022-v2:0": "claude-3-5-sonnet", "anthropic.claude-opus-4-6-v1:0": "claude-opus-4-6",
		"models/gemini-2.5-pro": "gemini-2.5-pro", "gemini-2.5-flash-lite": "gemini-2.5-flash-lite", "gemini-2.5-flash-preview-05-20": "gemini-2.5-flash",
		"gemini-3-pro-preview": "gemini-3-pro", "kimi-k2-0905-preview": "kimi-k2-0905", "qwen/qwen3-coder:free": "qwen3-coder", "claude-3-7-sonnet-latest": "claude-3-7-sonnet",

		"": "", "gpt": "", "gpt-4x": "", "gpt-9": "", "gpt-5.9": "", "gpt-4.5-preview": "", "claude-opus-4-9": "", "claude-opus-4-9-20270101": "", "my-gpt-4o": "", "o11": "",
		"claude-3": "", "gpt-4o/other": "", "local": "", "/": "",
	} {
		m, ok := Lookup(name)
		if ok != (want != "") || ok && m.Name != want {
			t.Errorf("%q is %q, %v; want %q", name, m.Name, ok, want)
		}
		if m.Context <= 0 {
			t.Errorf("%q has no context", name)
		}
		if !ok && (m.Price.Known || m.Context != DefaultContext || !m.Tools) {
			t.Errorf("%q is unknown, but %+v", name, m)
		}
	}
}

func TestOwnEntries(t *testing.T) {
	own := []Model{{Name: "gpt-4o", Context: 5000}, {Name: "house-model", Context: 9000, Price: Price{In: 1, Out: 2}}, {Name: "gpt-5.4-mini", Output: 7}}
	if m, ok := Lookup("openai/gpt-4o-2024-11-20", own...); !ok || m.Context != 5000 || m.Output != 16384 || m.Price.In != 2.5 || !m.Vision {
		t.Errorf("%+v", m)
	}
	if m, ok := Lookup("house-model-v2", own...); !ok || m.Context != 9000 || !m.Price.Known || m.Price.Out != 2 || !m.Tools {
		t.Errorf("%+v", m)
	}
	if m, _ := Lookup("gpt-5.4-mini", own...); m.Context != DefaultContext || m.Output != 7 {
		t.Errorf("%+v", m)
	}
	if m, ok := Lookup("stranger", own...); ok || m.Context != DefaultContext {
		t.Errorf("%+v", m)
	}
}

// What a person says of a model wins; what they leave open is the table's.
func TestQuirks(t *testing.T) {
	warm := 0.9
	own := []Model{{Name: "gpt-5", Temperature: &warm, Refuses: []string{}}, {Name: "mine", Efforts: []string{"low"}}}
	if m, _ := Lookup("gpt-5"); !slices.Contains(m.Refuses, "temperature") || !slices.Equal(m.Efforts, []string{"minimal", "low", "medium", "high"}) || m.Temperature != nil {
		t.Errorf("%+v", m)
	}
	if m, _ := Lookup("gpt-5", own...); len(m.Refuses) != 0 || m.Temperature != &warm || len(m.Efforts) != 4 {
		t.Errorf("%+v", m)
	}
	if m, _ := Lookup("mine-v2", own...); !slices.Equal(m.Efforts, []string{"low"}) || !m.Guessed {
		t.Errorf("%+v", m)
	}
	if m, _ := Lookup("qwen2.5-coder:7b"); m.Temperature == nil || *m.Temperature != 0.1 || m.Guessed {
		t.Errorf("%+v", m)
	}
	if m, _ := Lookup("claude-sonnet-4-5"); m.Price.CacheWrite != 3.75 {
		t.Errorf("%+v", m)
	}
}

func TestCost(t *testing.T) {
	m, _ := Lookup("gpt-4o")
	if usd, ok := m.Price.Cost(1_000_000, 400_000, 0, 100_000); !ok || math.Abs(usd-(0.6*2.5+0.4*1.25+1)) > 1e-9 {
		t.Errorf("%v, %v", usd, ok)
	}
	if usd, ok := (Price{In: 1, Out: 1, Known: true}).Cost(10, 99, 0, 0); !ok || math.Abs(usd-10e-6) > 1e-12 {
		t.Errorf("cached without a price of its own: %v", usd)
	}
	if _, ok := (Price{In: 1}).Cost(1, 0, 0, 1); ok {
		t.Error("an unknown price was charged")
	}
	if m, _ := Lookup("qwen/qwen3-coder:free"); !m.Price.Known || m.Price.In != 0 {
		t.Errorf("free: %+v", m)
	}
}

func TestTheTableIsSound(t *testing.T) {
	lines := 0
	for line := range strings.Lines(tableText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines++
		}
	}
	var list []Model
	for _, line := range tableRows {
		if strings.Count(line, "|") != 7 {
			t.Fatalf("cannot be read: %s", line)
		}
		list = append(list, parseRow(line))
	}
	if len(list) != lines || lines < 60 {
		t.Errorf("%d of %d lines can be read", len(list), lines)
	}
	seen := make(map[string]bool)
	for _, m := range list {
		if seen[m.Name] {
			t.Errorf("%s stands twice", m.Name)
		}
		seen[m.Name] = true
		if m.Context < 0 || m.Context > 0 && m.Output > m.Context || m.Price.Known && (m.Price.In <= 0 || m.Price.Out < m.Price.In || m.Price.CachedIn > m.Price.In) {
			t.Errorf("%+v", m)
		}
		if m.Price.CacheWrite > 0 && m.Price.CacheWrite < m.Price.In || m.Temperature != nil && (*m.Temperature < 0 || *m.Temperature > 2 || slices.Contains(m.Refuses, "temperature")) {
			t.Errorf("%+v", m)
		}
		for _, p := range m.Refuses {
			if !slices.Contains([]string{"temperature", "max_tokens", "stop", "tools"}, p) {
				t.Errorf("%s refuses %s, which nobody sends", m.Name, p)
			}
		}
		levels := []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
		if !slices.IsSortedFunc(m.Efforts, func(a, b string) int { return slices.Index(levels, a) - slices.Index(levels, b) }) || slices.ContainsFunc(m.Efforts, func(e string) bool { return !slices.Contains(levels, e) }) {
			t.Errorf("%s has the effort levels %v", m.Name, m.Efforts)
		}
		if m.Tools == slices.Contains(m.Refuses, "tools") {
			t.Errorf("%s: tools", m.Name)
		}
		if got, ok := Lookup(m.Name); !ok || got.Name != m.Name {
			t.Errorf("%s is found as %s", m.Name, got.Name)
		}
	}
	if !strings.Contains(tableText, CheckedMonth) {
		t.Error("the table and the program differ on its date")
	}
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{"a/b/gpt-4o", "anthropic.", "o1-", ":free", "gpt-4-:x", "-", "claude-opus-4-1-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if m, ok := Lookup(name); m.Context <= 0 || ok && !strings.Contains(normalizeName(name), normalizeName(m.Name)) {
			t.Errorf("%q is %+v", name, m)
		}
	})
}
