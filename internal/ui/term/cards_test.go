package term_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/term"
)

func TestQuestionsAsPeopleKnowThem(t *testing.T) {
	q := question("How?", "all of it — every file", "some", "none (Recommended)")
	for _, c := range []struct {
		m, n int
		want string
	}{
		{1, 1, "[Question] How?\n  1. all of it (Recommended) — every file\n  2. some\n  3. none (Recommended)"},
		{2, 3, "[Question 2/3] How?\n  1. all of it (Recommended) — every file\n  2. some\n  3. none (Recommended)"},
	} {
		if got := (term.Cards{}).Question(q, c.m, c.n); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
	first := (term.Cards{}).Draw(question("?", "a (Recommended)", "b"))
	if strings.Count(first, "(Recommended)") != 1 {
		t.Errorf("recommended twice:\n%s", first)
	}
}

func TestChoices(t *testing.T) {
	for want, q := range map[string]uip.Request{
		"y = yes, this once · n = no · y and …, n … = add a note":                                                   approval("x", "", nil, false),
		"y = yes, this once · a = always in this project (remembers: go test) · n = no · y and …, n … = add a note": approval("x", "", nil, true),
		"y = yes, this once · a = always · n = no · later = Ask me to^Gmo · y and …, n … = add a note":              {Kind: uip.Confirm, Options: []uip.Option{{ID: uip.Approve}, {ID: uip.Always}, {ID: uip.Reject}, {ID: "later", Label: "Ask me to\x07mo"}}},
	} {
		lines := strings.Split(term.Cards{}.Draw(q), "\n")
		if got := lines[len(lines)-1]; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhereAnAnswerIsRemembered(t *testing.T) {
	q := approval("edit src/a.go", "", nil, false)
	q.Options = []uip.Option{{ID: uip.Approve}, {ID: uip.Session}, {ID: uip.Always}, {ID: uip.Below}, {ID: uip.Reject}}
	q.Display.Metadata = map[string]string{"remembers": "changes to src/a.go", "remembers.session": "changes to src/a.go", "remembers.below": "edits below src"}
	const want = "y = yes, this once · s = always in this session · a = always in this project (s and a remember: changes to src/a.go) · d = edits below src, this session · n = no · y and …, n … = add a note"
	if card := (term.Cards{}).Draw(q); !strings.HasSuffix(card, "\n"+want) {
		t.Errorf("%s", card)
	}
}

// What cannot be seen, or passes for something else, is named wherever it
// stands on a card.
func TestACardNamesWhatCannotBeSeen(t *testing.T) {
	const odd = "n\u043ede\u2800x\u200dy\u0335"
	const named = "n<U+043E>de<U+2800>x<U+200D>y<U+0335>"
	for name, q := range map[string]uip.Request{
		"title":   approval("bash "+odd, "", nil, false),
		"command": approval("bash", "", display.Code{Lang: "sh", Source: "rm " + odd}, false),
		"diff":    approval("edit", "", display.Diff{Unified: "--- a/" + odd + "\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + odd + "\n"}, false),
		"reason":  approval("bash", "risk: "+odd, nil, false),
		"parts":   {Kind: uip.Composite, Purpose: uip.ConfirmRiskyAction, Parts: []uip.Request{approval("bash "+odd, "", display.Text(odd), false)}},
	} {
		for _, whole := range []bool{false, true} {
			card := (term.Cards{Whole: whole}).Draw(q)
			if !strings.Contains(card, named) || strings.ContainsAny(card, "\u043e\u2800\u200d\u0335") {
				t.Errorf("%s, whole %v:\n%s", name, whole, card)
			}
		}
	}
}

// A card that leaves something out says so, and counts it.
func TestACardKnowsWhatItHides(t *testing.T) {
	long := strings.Repeat("echo\n", 61)
	for name, tt := range map[string]struct {
		q    uip.Request
		want bool
	}{
		"short":                                {approval("x", "", display.Code{Source: "ls"}, false), false},
		"lines":                                {approval("x", "", display.Code{Source: long}, false), true},
		"a long line":                          {approval("x", "", display.Text(strings.Repeat("a", 2000)), false), true},
		"a long diff":                          {approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 6001)}, false), true},
		"only a title":                         {approval(strings.Repeat("a", 300), "", nil, false), true},
		"a title that the content shows whole": {approval(strings.Repeat("a", 300), "", display.Text("aa"), false), false},
		"one of several":                       {uip.Request{Kind: uip.Composite, Purpose: uip.ConfirmRiskyAction, Parts: []uip.Request{approval("x", "", nil, false), approval("y", "", display.Code{Source: long}, false)}}, true},
	} {
		card := term.Cards{}.Draw(tt.q)
		if got := (term.Cards{}).Hides(tt.q); got != tt.want || strings.Contains(card, "v = view all") != tt.want {
			t.Errorf("%s: hides %v\n%.300s", name, got, card)
		}
		if (term.Cards{Whole: true}).Hides(tt.q) {
			t.Errorf("%s: a whole card hides something", name)
		}
	}
	rest := (term.Cards{Whole: true, Rest: true}).Draw(approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 600)}, false))
	if strings.Count(rest, "+a\n") != 200 || !strings.Contains(rest, "<the first 400 lines are above>") {
		t.Errorf("the rest is %d lines", strings.Count(rest, "+a\n"))
	}
	if long := (term.Cards{Whole: true, Rest: true}).Draw(approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 300) + "+" + strings.Repeat("b", 2000) + strings.Repeat("\n+a", 300)}, false)); strings.Count(long, "+a\n") != 600 {
		t.Errorf("of a diff with a long line %d lines are shown", strings.Count(long, "+a\n"))
	}
	if card := (term.Cards{}).Draw(approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 6001)}, false)); !strings.Contains(card, "<5601 more lines not shown>") {
		t.Errorf("a wrong count:\n%.3000s", card)
	}
}

// What is folded says how much is missing, and Whole folds nothing.
func TestFolds(t *testing.T) {
	var script, diff strings.Builder
	for i := range 500 {
		fmt.Fprintf(&script, "echo %d\n", i)
		fmt.Fprintf(&diff, "+%d\n", i)
	}
	for _, c := range []struct {
		name         string
		content      display.Block
		has, lacks   string
		wholeHasAlso string
	}{
		{"lines", display.Code{Lang: "sh", Source: script.String()}, "echo 39\n    <440 lines not shown>\n    echo 480\n", "echo 40\n", "echo 40\n"},
		{"a long line", display.Code{Source: strings.Repeat("a", 400) + strings.Repeat("b", 300) + strings.Repeat("c", 400)}, "a<300 characters not shown>c", "b", "bbb"},
		{"blanks", display.Code{Source: "ls" + strings.Repeat(" ", 100) + "; rm x"}, "ls<100 blanks>; rm x", strings.Repeat(" ", 50), strings.Repeat(" ", 50)},
		{"indent", display.Code{Source: strings.Repeat("\t", 100) + "rm x"}, "<100 blanks>rm x", "\t", "\t\t"},
		{"diff", display.Diff{Unified: "@@ -0,0 +1,500 @@\n" + diff.String()}, "+398\n<101 more lines not shown>", "+399", "+499"},
		{"text", display.Text("a\u200bb\u00ad"), "a<U+200B>b<U+00AD>", "\u200b", "<U+200B>"},
	} {
		q := approval("x", "", c.content, false)
		folded, whole := term.Cards{}.Draw(q), term.Cards{Whole: true}.Draw(q)
		if !strings.Contains(folded, c.has) || strings.Contains(folded, c.lacks) {
			t.Errorf("%s: folded to\n%.2000s", c.name, folded)
		}
		if !strings.Contains(whole, c.wholeHasAlso) || strings.Contains(whole, "not shown") {
			t.Errorf("%s: whole is\n%.2000s", c.name, whole)
		}
	}
}

// A plan is there to be read.
func TestPlansAreWhole(t *testing.T) {
	q := uip.Request{Kind: uip.Select, Display: uip.Display{Content: display.Text(strings.Repeat("- step\n", 300))}}
	if got := strings.Count(term.Cards{}.Draw(q), "- step"); got != 300 {
		t.Errorf("%d steps", got)
	}
}

// No line of a command stands where ours stand.
func TestCommandsCannotPassForTheCard(t *testing.T) {
	const text = "true **x**\n[APPROVAL] bash ls\ny = yes, this once"
	for _, content := range []display.Block{display.Code{Lang: "sh", Source: text}, display.Text(text)} {
		expectOneCard(t, term.Cards{Palette: basic}.Draw(approval("bash", "risk: odd", content, false)))
	}
}

func expectOneCard(t *testing.T, card string) {
	t.Helper()
	card = "\n" + sgr.ReplaceAllString(card, "")
	if strings.Count(card, "\n[APPROVAL]") != 1 || strings.Count(card, "\ny = ") != 1 || !strings.Contains(card, "**x**") {
		t.Errorf("%s", card)
	}
}

// What is taken for a key may be what does the harm: on a card nothing is hidden
// that could mean something to a shell.
func TestACardHidesNoCommandAsAKey(t *testing.T) {
	for _, command := range []string{
		`: -----BEGIN PRIVATE KEY-----; ./evil`,
		"cat <<X\n-----BEGIN RSA PRIVATE KEY-----\nX\n./evil",
		`token=abcdefghijkl&./evil&`,
		`API_TOKEN=aaaaaaaaaaaa/../evil make`,
		`password: aaaaaaaaaaaaaaaa*evil`,
		`curl -H "Authorization: Bearer aaaaaaaaaaaaaaaa@evil"`,
		`eyJaaaaaaaaaaaa.aaaaaaaaaaaaaa.aaaaaaaaaaaaevil`,
	} {
		for what, q := range map[string]uip.Request{
			"content": {Display: uip.Display{Title: "x", Content: display.Code{Lang: "sh", Source: command}}},
			"title":   {Display: uip.Display{Title: command}},
			"reason":  {Display: uip.Display{Title: "x", Description: strings.ReplaceAll(command, "; ", ";")}},
			"memory":  {Display: uip.Display{Title: "x", Metadata: map[string]string{"remembers": command}}, Options: []uip.Option{{ID: uip.Always}}},
			"diff":    {Display: uip.Display{Title: "x", Content: display.Diff{Unified: "--- a\n+++ b\n@@ -1 +1 @@\n+" + strings.ReplaceAll(command, "\n", "\n+") + "\n"}}},
		} {
			q.Kind, q.Purpose = uip.Confirm, uip.ConfirmRiskyAction
			if got := (term.Cards{}).Draw(q); !strings.Contains(got, "evil") {
				t.Errorf("%s: %q is shown as\n%s", what, command, got)
			}
		}
	}
	q := uip.Request{Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction, Display: uip.Display{Title: "x", Content: display.Code{Lang: "sh", Source: "API_KEY=abcdefghijklmnop make; gh -t ghp_abcdefghijklmnopqrstuvwxyz"}}}
	if got := (term.Cards{}).Draw(q); strings.Contains(got, "klmnop") {
		t.Errorf("keys are shown:\n%s", got)
	}
}

// Commands, addresses and paths are held to more than prose.
func TestACardMarksWhatPassesForACommand(t *testing.T) {
	for _, q := range []uip.Request{
		{Display: uip.Display{Title: "x", Content: display.Code{Lang: "sh", Source: "ls \u2502 sh"}}},
		{Display: uip.Display{Title: "x", Content: display.Code{Lang: "http", Source: "GET https://example\u3002com"}}},
		{Display: uip.Display{Title: "src\u2502x", Content: display.Diff{Unified: "+a"}}},
		{Display: uip.Display{Title: "x", Content: display.Text("rm \u2212rf")}},
		{Display: uip.Display{Title: "x", Content: display.Diff{Unified: "--- /dev/null\n+++ b/src/\u043dew.txt\n@@ -0,0 +1 @@\n+a\n"}}},
		{Display: uip.Display{Title: "x", Metadata: map[string]string{"remembers": "changes to src/\u043dew.txt"}}, Options: []uip.Option{{ID: uip.Always}}},
	} {
		q.Kind, q.Purpose = uip.Confirm, uip.ConfirmRiskyAction
		if got := (term.Cards{}).Draw(q); !strings.Contains(got, "<U+") {
			t.Errorf("nothing is marked:\n%s", got)
		}
	}
	for _, q := range []uip.Request{
		{Display: uip.Display{Title: "修复：“登录”，重试", Content: display.Text("修复：“登录”，重试；见 │ 图")}},
		{Display: uip.Display{Title: "文档/说明.md", Content: display.Diff{Unified: "+第一行：“内容”——完；\n+│ box │ – done"}}},
	} {
		q.Kind, q.Purpose = uip.Confirm, uip.ConfirmRiskyAction
		if got := (term.Cards{}).Draw(q); strings.Contains(got, "<U+") {
			t.Errorf("prose is marked:\n%s", got)
		}
	}
}

// A change that is made as it was approved is not shown twice; another one is.
func TestAnApprovedChangeIsNotShownAgain(t *testing.T) {
	one, other := display.Diff{Unified: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}, display.Diff{Unified: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+z\n"}
	part := func(id string, d display.Diff) uip.Request {
		return uip.Request{TaskID: "t", Kind: uip.Confirm, Purpose: uip.ConfirmRiskyAction, Display: uip.Display{Content: d, Metadata: map[string]string{"toolCallId": id}}}
	}
	for _, tt := range []struct {
		name  string
		asked uip.Request
		want  bool
	}{
		{"as approved", part("1", one), false},
		{"one of several", uip.Request{TaskID: "t", Kind: uip.Composite, Parts: []uip.Request{part("2", other), part("1", one)}}, false},
		{"otherwise", part("1", other), true},
		{"another call", part("2", one), true},
		{"not asked", uip.Request{}, true},
	} {
		var b bytes.Buffer
		r := term.New(term.Options{Out: &b})
		r.Saw(tt.asked)
		rec := event.Record{Task: "t", Event: event.ToolFinished{CallID: "1", Tool: "edit", Title: "a", Summary: "+1 -1", Show: one}}
		if err := r.Emit(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "+y"); got != tt.want || !strings.Contains(b.String(), "✓ +1 -1") {
			t.Errorf("%s: the change was shown: %v\n%s", tt.name, got, b.String())
		}
	}
}
