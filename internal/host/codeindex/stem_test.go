package codeindex

import (
	"strings"
	"testing"
)

func TestStemMakesFormsOfAWordOne(t *testing.T) {
	for _, forms := range []string{
		"parse parses parsed parsing parser parsers",
		"config configs",
		"configure configured configures configuring configuration configurations",
		"generate generates generated generating generator generation",
		"create creates created creating creator creation",
		"validate validates validated validating validator validation",
		"iterate iterator iterators iteration iter",
		"map maps mapped mapping mapper",
		"log logs logging logged logger",
		"buffer buffers buffered buffering buf",
		"cache caches cached caching",
		"match matches matched matching matcher",
		"format formats formatted formatting formatter",
		"retry retries retried retrying",
		"cookie cookies",
		"entry entries",
		"class classes",
		"process processes processed processing processor",
		"alias aliases",
		"string strings",
		"embed embeds embedded embedding",
		"render renders rendered rendering renderer",
		"write writes writing writer written wrote",
		"id ids", "api apis", "url urls",
		"need needs", "speed speeds", "status", "tree trees", "type types typed",
		"encode encodes encoded encoding encoder", "connect connects connected connecting connection connector",
		"compress compresses compressed compressing compression compressor",
	} {
		words := strings.Fields(forms)
		for _, w := range words {
			if got, want := stem(w), stem(words[0]); got != want {
				t.Errorf("stem(%q) = %q, stem(%q) = %q", w, got, words[0], want)
			}
		}
	}
}

func TestStemKeepsWordsApart(t *testing.T) {
	for _, pair := range []string{"string str", "format form", "need nee", "user us", "color col", "speed spe", "status stat", "address addres", "utf8 utf"} {
		a, b, _ := strings.Cut(pair, " ")
		if stem(a) == stem(b) {
			t.Errorf("%q and %q are both %q", a, b, stem(a))
		}
	}
}
