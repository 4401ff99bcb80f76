package patch_test

import (
	"strings"
	"testing"

	"coder/internal/host/patch"
)

func TestNearestTellsWhy(t *testing.T) {
	for _, c := range []struct{ text, wanted, at, why string }{
		{"alpha\nbeta\n", `alpha\nbeta`, "alpha", "backslash"},
		{"x\nsay(\"hi\")\n", `say(\"hi\")`, `say("hi")`, "backslash"},
		{"if (a < b && c) {\n", "if (a &lt; b &amp;&amp; c) {", "if (a < b && c) {", "&lt;"},
		{"a\nbeta\nc\n", "     2\tbeta\n     3\tc", "beta", "numbers"},
		{"a\nbeta\nc\n", "2→beta", "beta", "numbers"},
		{"a\nbeta\nc\n", "2: beta", "beta", "numbers"},
		{"a\nbeta\nc\n", "```go\nbeta\nc\n```", "beta", "```"},
		{"Hello World\n", "hello world", "Hello World", "letter case"},
		{"x\nfunc long() {\n1\n2\n3\n}\n", "func long() {\n  // ...\n}", "func long() {", "leaves lines out"},
		{"x\nfunc long() {\n1\n2\n3\n}\n", "func long() {\n// ... existing code ...\n}", "func long() {", "leaves lines out"},
		{"cafe\u0301 x\n", "caf\u00e9 x", "cafe\u0301 x", "U+00E9"},
		{"foo\u200bbar\n", "foobar", "foo\u200bbar", "U+200B"},
		{"wait…\n", "wait...", "wait…", "U+2026"},
		{"Ηello world\n", "Hello world", "Ηello world", "U+0397"},
		{"\tindented(x)\n", "indented(x)", "\tindented(x)", "only whitespace"},
		{"return compute(a)\n", "return compute(b)", "return compute(a)", ""},
	} {
		lines := strings.Split(c.text, "\n")
		at, n, why := patch.Nearest(lines, strings.Split(c.wanted, "\n"))
		if n == 0 || lines[at] != c.at || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%q in %q: line %d of %d: %s", c.wanted, c.text, at, n, why)
		}
	}
	if _, n, _ := patch.Nearest([]string{"alpha", "beta"}, []string{"something else entirely"}); n != 0 {
		t.Error("something comes near")
	}
}

func TestAHunkThatIsNotThereShowsTheNearest(t *testing.T) {
	for wanted, why := range map[string]string{"return Compute(a)": "case", "return compute(b)": "return compute(a)", `\treturn compute(a)`: "backslash"} {
		p, err := patch.Parse("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-" + wanted + "\n+x\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Apply(map[string][]byte{"f": []byte("x\n\treturn compute(a)\n")}); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "the nearest are") {
			t.Errorf("%s: %v", wanted, err)
		}
	}
}
