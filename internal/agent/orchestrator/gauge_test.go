package orchestrator

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/core/chat"
)

func TestTheGaugeLearnsHowTheProviderCounts(t *testing.T) {
	var g tokenGauge
	if g.forModel("m").effectiveScale() != 1 || g.maxRequestTokens(1000) != 1000 || g.maxRequestTokens(0) != 0 {
		t.Errorf("at first: %+v", g)
	}
	g.learnUsage(1000, 1500)
	if g.effectiveScale() != 1.5 {
		t.Errorf("more than expected counts at once: %v", g.effectiveScale())
	}
	g.learnUsage(1000, 1000)
	if f := g.effectiveScale(); f >= 1.5 || f <= 1.3 {
		t.Errorf("less counts little by little: %v", f)
	}
	g.learnUsage(1000, 1_000_000)
	if g.effectiveScale() != maxScale {
		t.Errorf("what cannot be is bounded: %v", g.effectiveScale())
	}
	g.learnRefusal(10_000, 0)
	g.learnRefusal(20_000, 0)
	if g.maxRequestTokens(128_000) != 8500 || g.maxRequestTokens(0) != 8500 || g.maxRequestTokens(4000) != 4000 {
		t.Errorf("after a refusal: %d", g.maxRequestTokens(128_000))
	}
	if g.forModel("another").maxRequestTokens(128_000) != 128_000 {
		t.Error("what was learnt of one model counts for another")
	}
}

func TestTheGaugeBelievesTheServer(t *testing.T) {
	var g tokenGauge
	g.learnRefusal(10_000, 4096)
	if g.maxRequestTokens(128_000) != 4096 || g.maxRequestTokens(2000) != 2000 || g.ceiling != 0 {
		t.Errorf("a window that is told: %+v", g)
	}
	g.learnRefusal(4000, 4096) // it counts more than we do
	if g.maxRequestTokens(128_000) != 3400 {
		t.Errorf("after a shorter request was rejected: %d", g.maxRequestTokens(128_000))
	}
	for _, tt := range []struct {
		estimated, counted, cached int
		cut                        bool
		window                     int
	}{
		{6720, 4096, 0, true, 4096}, {40_000, 8190, 0, true, 8190}, {40_000, 9000, 0, true, 128_000}, // the last is told, and no window
		{6720, 5400, 0, false, 128_000}, {6720, 0, 0, false, 128_000}, {6720, 12, 0, false, 128_000}, {500, 100, 0, false, 128_000}, {3000, 2048, 0, false, 128_000},
		{6720, 4096, 100, false, 128_000}, // it may not count what came from its cache
	} {
		g = tokenGauge{}
		if g.isCut(tt.estimated, chat.Usage{In: tt.counted, Cached: tt.cached}) != tt.cut || g.maxRequestTokens(128_000) != tt.window {
			t.Errorf("%+v: %+v", tt, g)
		}
	}
	g = tokenGauge{scale: 2}
	if !g.isCut(6720, chat.Usage{In: 6720}) {
		t.Error("what was learnt of how the server counts is forgotten")
	}
}

func TestToolsAreDescribedInShortByDroppingWordsOnly(t *testing.T) {
	schema := `{"type":"object","description":"all","properties":{"description":{"type":"string","description":"what"},"n":{"type":"integer","enum":[1]}},"required":["n"]}`
	var v struct {
		Description *string
		Properties  map[string]map[string]any
		Required    []string
	}
	if err := json.Unmarshal(stripDescriptions(json.RawMessage(schema)), &v); err != nil {
		t.Fatal(err)
	}
	if v.Description != nil || len(v.Properties) != 2 || v.Properties["description"]["description"] != nil || len(v.Required) != 1 {
		t.Errorf("%+v", v)
	}
	if got := firstParagraph("\nReads a file.\nAll of it.\n\nMore"); got != "Reads a file.\nAll of it." || len(firstParagraph(strings.Repeat("x", 999))) > 410 {
		t.Errorf("%q", got)
	}
}
