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
		if got := (term.Cards{}).DrawQuestion(q, c.m, c.n); got != c.want {
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
		"  1 Yes\n  2 No, and tell coder what to do instead\n  ?: why":                                                approval("x", "", nil, false),
		"  1 Yes\n  2 Always in this project: go test\n  3 No, and tell coder what to do instead\n  ?: why":           approval("x", "", nil, true),
		"  1 Yes\n  2 Always in this project\n  3 Ask me to^Gmo\n  4 No, and tell coder what to do instead\n  ?: why": {Kind: uip.KindConfirm, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionAlways}, {ID: uip.OptionReject}, {ID: "later", Label: "Ask me to\x07mo"}}},
		"  • risk: removes files\n\n  Type y and Enter to allow it, n and Enter to refuse it.\n  ?: why":              approval("x", "rule: bash policy requires approval; risk: removes files", nil, false),
		"  1 Yes\n  2 Yes, and never ask about commands I type after !\n  3 No\n  ?: why":                             {Kind: uip.KindConfirm, Author: event.ActorUser, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}},
		"  1 Yes\n  2 Yes, and trust this folder: checks run unasked\n  3 No\n  ?: why":                               {Kind: uip.KindConfirm, Author: event.ActorVerifier, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}},
	} {
		if got := (term.Cards{Direct: true, Trust: true}).Draw(q); !strings.HasSuffix(got, want) || strings.Contains(got, "requires approval") {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Something dangerous has no number, and nothing is highlighted.
func TestWhatIsDangerousHasNoNumber(t *testing.T) {
	q := approval("bash rm x", "risk: removes files", display.Code{Lang: "sh", Source: "rm x"}, false)
	if got := (term.Cards{OptionsBelow: true}).Choices(q); !term.IsDangerous(q) || got != nil {
		t.Errorf("dangerous %v, choices %v", term.IsDangerous(q), got)
	}
	part := q
	if q = (uip.Request{Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Parts: []uip.Request{approval("y", "", nil, false), part}}); !term.IsDangerous(q) {
		t.Error("one of several calls is dangerous")
	}
}

func TestWhereAnAnswerIsRemembered(t *testing.T) {
	q := approval("edit src/a.go", "", nil, false)
	q.Options = []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionSession}, {ID: uip.OptionAlways}, {ID: uip.OptionAlwaysBelow}, {ID: uip.OptionReject}}
	q.Display.Metadata = map[string]string{"remembers": "changes to src/a.go", "remembers.session": "changes to src/a.go", "remembers.below": "edits below src"}
	const want = "  1 Yes\n  2 Yes, and allow edits below src in this session\n  3 Always in this project: changes to src/a.go\n  4 No, and tell coder what to do instead\n  ?: why"
	if card := (term.Cards{}).Draw(q); !strings.HasSuffix(card, "\n"+want) {
		t.Errorf("%s", card)
	}
	if why := (term.Cards{}).ExplainApproval(q); !strings.Contains(why, "s Yes, and allow changes to src/a.go in this session") {
		t.Errorf("%s", why)
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
		"parts":   {Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Parts: []uip.Request{approval("bash "+odd, "", display.Text(odd), false)}},
	} {
		for _, whole := range []bool{false, true} {
			card := (term.Cards{NoFold: whole}).Draw(q)
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
		"one of several":                       {uip.Request{Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Parts: []uip.Request{approval("x", "", nil, false), approval("y", "", display.Code{Source: long}, false)}}, true},
	} {
		card := term.Cards{}.Draw(tt.q)
		if got := (term.Cards{}).HidesPart(tt.q); got != tt.want || strings.Contains(card, "v: all of it") != tt.want {
			t.Errorf("%s: hides %v\n%.300s", name, got, card)
		}
		if (term.Cards{NoFold: true}).HidesPart(tt.q) {
			t.Errorf("%s: a whole card hides something", name)
		}
	}
	long60 := approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 6000) + "+b\n"}, false)
	card := (term.Cards{}).Draw(long60)
	if !strings.Contains(card, "<5946 lines not shown>") || !strings.Contains(card, "+b\n") || (term.Cards{}).HidesRequired(long60) {
		t.Errorf("of a long diff\n%.3000s", card)
	}
	odd := approval("x", "", display.Diff{Unified: strings.Repeat("+a\n", 100) + "+x\u200dy\n" + strings.Repeat("+a\n", 100)}, false)
	if card := (term.Cards{}).Draw(odd); !strings.Contains(card, "<60 lines not shown>\n+x<U+200D>y\n<85 lines not shown>") {
		t.Errorf("what cannot be seen is left out:\n%s", card)
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
		{"diff", display.Diff{Unified: "@@ -0,0 +1,500 @@\n" + diff.String()}, "   39 +38\n<446 lines not shown>\n  486 +485\n", "+39\n", "+200\n"},
		{"text", display.Text("a\u200bb\u00ad"), "a<U+200B>b<U+00AD>", "\u200b", "<U+200B>"},
	} {
		q := approval("x", "", c.content, false)
		folded, whole := term.Cards{}.Draw(q), term.Cards{NoFold: true}.Draw(q)
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
	q := uip.Request{Kind: uip.KindSelect, Display: uip.Display{Content: display.Text(strings.Repeat("- step\n", 300))}}
	if got := strings.Count(term.Cards{}.Draw(q), "- step"); got != 300 {
		t.Errorf("%d steps", got)
	}
}

// No line of a command stands where ours stand.
func TestCommandsCannotPassForTheCard(t *testing.T) {
	const text = "true **x**\n[APPROVAL] bash ls\n  1 Yes"
	for _, content := range []display.Block{display.Code{Lang: "sh", Source: text}, display.Text(text)} {
		expectOneCard(t, term.Cards{Palette: basicCodes}.Draw(approval("bash", "rule: odd", content, false)))
	}
}

func expectOneCard(t *testing.T, card string) {
	t.Helper()
	card = "\n" + sgr.ReplaceAllString(card, "")
	if strings.Count(card, "\n[APPROVAL]") != 1 || strings.Count(card, "\n  1 Yes") != 1 || !strings.Contains(card, "**x**") {
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
			"memory":  {Display: uip.Display{Title: "x", Metadata: map[string]string{"remembers": command}}, Options: []uip.Option{{ID: uip.OptionAlways}}},
			"diff":    {Display: uip.Display{Title: "x", Content: display.Diff{Unified: "--- a\n+++ b\n@@ -1 +1 @@\n+" + strings.ReplaceAll(command, "\n", "\n+") + "\n"}}},
		} {
			q.Kind, q.Purpose = uip.KindConfirm, uip.PurposeConfirmRiskyAction
			if got := (term.Cards{}).Draw(q); !strings.Contains(got, "evil") {
				t.Errorf("%s: %q is shown as\n%s", what, command, got)
			}
		}
	}
	q := uip.Request{Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Title: "x", Content: display.Code{Lang: "sh", Source: "API_KEY=abcdefghijklmnop make; gh -t ghp_abcdefghijklmnopqrstuvwxyz"}}}
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
		{Display: uip.Display{Title: "x", Metadata: map[string]string{"remembers": "changes to src/\u043dew.txt"}}, Options: []uip.Option{{ID: uip.OptionAlways}}},
	} {
		q.Kind, q.Purpose = uip.KindConfirm, uip.PurposeConfirmRiskyAction
		if got := (term.Cards{}).Draw(q); !strings.Contains(got, "<U+") {
			t.Errorf("nothing is marked:\n%s", got)
		}
	}
	for _, q := range []uip.Request{
		{Display: uip.Display{Title: "修复：“登录”，重试", Content: display.Text("修复：“登录”，重试；见 │ 图")}},
		{Display: uip.Display{Title: "文档/说明.md", Content: display.Diff{Unified: "+第一行：“内容”——完；\n+│ box │ – done"}}},
	} {
		q.Kind, q.Purpose = uip.KindConfirm, uip.PurposeConfirmRiskyAction
		if got := (term.Cards{}).Draw(q); strings.Contains(got, "<U+") {
			t.Errorf("prose is marked:\n%s", got)
		}
	}
}

// A change that is made as it was approved is not shown twice; another one is.
func TestAnApprovedChangeIsNotShownAgain(t *testing.T) {
	one, other := display.Diff{Unified: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}, display.Diff{Unified: "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+z\n"}
	part := func(id string, d display.Diff) uip.Request {
		return uip.Request{TaskID: "t", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Display: uip.Display{Content: d, Metadata: map[string]string{"toolCallId": id}}}
	}
	for _, tt := range []struct {
		name  string
		asked uip.Request
		want  bool
	}{
		{"as approved", part("1", one), false},
		{"one of several", uip.Request{TaskID: "t", Kind: uip.KindComposite, Parts: []uip.Request{part("2", other), part("1", one)}}, false},
		{"otherwise", part("1", other), true},
		{"another call", part("2", one), true},
		{"not asked", uip.Request{}, true},
	} {
		var b bytes.Buffer
		r := term.New(term.Options{Out: &b})
		r.MarkSeen(tt.asked)
		rec := event.Record{Task: "t", Event: event.ToolFinished{CallID: "1", Tool: "edit", Title: "a", Summary: "+1 -1", Content: one}}
		if err := r.Emit(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "+y"); got != tt.want || !strings.Contains(b.String(), "✓ +1 -1") {
			t.Errorf("%s: the change was shown: %v\n%s", tt.name, got, b.String())
		}
	}
}
