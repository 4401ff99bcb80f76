package term

import (
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/ui/term/ink"
)

// marked is a diff with its bold parts in stars.
func marked(unified string) string {
	var b strings.Builder
	drawDiff(diffLines(unified), false, func(l ink.Style, text string) {
		if l.Role == ink.Dim { // a number
			return
		}
		if l.Bold && text != "" {
			text = "*" + text + "*"
		}
		b.WriteString(text)
	})
	return b.String()
}

func TestTheWordsThatDifferAreMarked(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"a word":             {"-return old value\n+return new value\n", "-return *old* value\n+return *new* value\n"},
		"a part of a word":   {"-x := userName + 1\n+x := userNames + 1\n", "-x := *userName* + 1\n+x := *userNames* + 1\n"},
		"a sign":             {"-if a < b {\n+if a <= b {\n", "-if a < b {\n+if a <*=* b {\n"},
		"words added":        {"-f(a, b)\n+f(a, b, c)\n", "-f(a, b)\n+f(a, b*, c*)\n"},
		"beginning":          {"-old value here\n+new value here\n", "-*old* value here\n+*new* value here\n"},
		"little in common":   {"-abc def\n+xyz uvw\n", "-abc def\n+xyz uvw\n"},
		"much longer":        {"-// adds a and b to a sum\n+// new\n", "-// adds a and b to a sum\n+// new\n"},
		"two for two":        {"-a = 1 x\n-b = 1 x\n+a = 2 x\n+b = 2 x\n", "-a = *1* x\n-b = *1* x\n+a = *2* x\n+b = *2* x\n"},
		"two for one":        {"-a = 1 x\n-b = 1 x\n+a = 2 x\n", "-a = 1 x\n-b = 1 x\n+a = 2 x\n"},
		"only added":         {"+a = 2 x\n", "+a = 2 x\n"},
		"the same":           {"-a b c\n+a b c\n", "-a b c\n+a b c\n"},
		"of many bytes":      {"-见 文件 甲\n+见 文件 乙\n", "-见 文件 *甲*\n+见 文件 *乙*\n"},
		"blanks":             {"-  a b c\n+\ta b c\n", "-*  *a b c\n+*\t*a b c\n"},
		"and again":          {"-a = 1 x\n+a = 2 x\n-b = 1 x\n+b = 2 x\n", "-a = *1* x\n+a = *2* x\n-b = *1* x\n+b = *2* x\n"},
		"between kept lines": {"-a = 1 x\n+a = 2 x\n k\n-b = 1 x\n+b = 2 x\n", "-a = *1* x\n+a = *2* x\n k\n-b = *1* x\n+b = *2* x\n"},
	} {
		minus, plus, kept := 0, 0, 0
		for line := range strings.Lines(tt.body) {
			switch line[0] {
			case '-':
				minus++
			case '+':
				plus++
			default:
				kept++
			}
		}
		head := "@@ -1," + string(rune('0'+minus+kept)) + " +1," + string(rune('0'+plus+kept)) + " @@\n"
		if got := marked(head + tt.body); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzDiffers(f *testing.F) {
	f.Add("-return old value\n", "+return new value\n")
	f.Add("-见 甲", "+见 乙")
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.TrimRight(a, "\n"), strings.TrimRight(b, "\n")
		if a == "" || b == "" || !utf8.ValidString(a) || !utf8.ValidString(b) || a[0] >= utf8.RuneSelf || b[0] >= utf8.RuneSelf {
			return
		}
		if from, to, _ := differingPart(a, b); from < 1 || from > to || to > len(a) || !utf8.ValidString(a[from:to]) {
			t.Fatalf("%q, %q: %d to %d", a, b, from, to)
		}
	})
}

func TestLinesOfADiffHaveNumbers(t *testing.T) {
	lines := diffLines("--- a/x.go\n+++ b/x.go\n@@ -8,3 +8,4 @@  [hunk 1]\n a\n-b\n+B\n+C\n c\n@@ -40,1 +41,1 @@\n-d\n+D\n\\ No newline at end of file\n")
	draw := func(title string) string {
		var b strings.Builder
		drawDiff(below(title, lines), true, func(_ ink.Style, text string) { b.WriteString(text) })
		return b.String()
	}
	body := "     [hunk 1]\n   8  a\n   9 -b\n   9 +B\n  10 +C\n  11  c\n   :\n  40 -d\n  41 +D\n\\ No newline at end of file\n"
	if got := draw("edit x.go"); got != body {
		t.Errorf("below a title with the name:\n%s", got)
	}
	if got := draw("patch"); got != "--- a/x.go\n+++ b/x.go\n"+body {
		t.Errorf("below another title:\n%s", got)
	}
}
