//go:build unix

package repl

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
)

func approval(id string, options ...string) uip.Request {
	q := uip.Request{ID: id, Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction}
	for _, o := range options {
		q.Options = append(q.Options, uip.Option{ID: o})
	}
	return q
}

var (
	lasting = approval("q", uip.OptionApprove, uip.OptionAlways, uip.OptionReject)
	edit    = approval("q", uip.OptionApprove, uip.OptionSession, uip.OptionAlways, uip.OptionAlwaysBelow, uip.OptionReject)
	once    = approval("q", uip.OptionApprove, uip.OptionReject)
	card    = uip.Request{
		ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Options: once.Options,
		Parts: []uip.Request{approval("a", uip.OptionApprove, uip.OptionReject), approval("b", uip.OptionApprove, uip.OptionReject), approval("c", uip.OptionApprove, uip.OptionReject)},
	}
	plan = uip.Request{
		ID: "q", Kind: uip.KindSelect, Options: []uip.Option{{ID: "go", Label: "Start editing, in default mode"}, {ID: "go:auto", Label: "Start editing, in auto-edit mode"}, {ID: "keep", Label: "Keep planning"}},
		Display: uip.Display{Metadata: map[string]string{uip.MetaOnYes: "go", uip.MetaOnNo: "keep", uip.MetaOnText: "keep", uip.MetaAliasPrefix + "go": "default", uip.MetaAliasPrefix + "go:auto": "auto-edit"}},
	}
	wait = uip.Request{
		ID: "q", Kind: uip.KindSelect, Options: []uip.Option{{ID: "wait", Label: "Wait and continue"}, {ID: "stop", Label: "Stop the turn"}},
		Display: uip.Display{Metadata: map[string]string{uip.MetaOnYes: "wait", uip.MetaOnNo: "stop"}},
	}
	recovery = uip.Request{ID: "q", Author: event.ActorRecovery, Kind: uip.KindSelect, Display: uip.Display{Metadata: map[string]string{uip.MetaOnEnter: "continue"}}, Options: []uip.Option{{ID: "continue", Label: "Continue the turn"}, {ID: "drop", Label: "Drop it"}}}
	choice   = uip.Request{ID: "q", Kind: uip.KindSelect, Options: []uip.Option{{ID: "1", Label: "red"}, {ID: "2", Label: "blue"}}}
)

// some is the answer that allows the parts given.
func some(ids ...string) (a uip.Response) {
	for _, part := range card.Parts {
		option := uip.OptionReject
		if slices.Contains(ids, part.ID) {
			option = uip.OptionApprove
		}
		a.Parts = append(a.Parts, uip.Response{ID: part.ID, Option: option})
	}
	return a
}

func TestAnswers(t *testing.T) {
	yes, no, always := uip.Response{Option: uip.OptionApprove}, uip.Response{Option: uip.OptionReject}, uip.Response{Option: uip.OptionAlways}
	remark := func(said string) uip.Response { return uip.Response{Option: uip.OptionApprove, Comment: said} }
	several := approval("q", uip.OptionApprove, uip.OptionSome, uip.OptionReject)
	cardOfHunks := card
	cardOfHunks.Parts = []uip.Request{card.Parts[0], card.Parts[1], approval("c", uip.OptionApprove, uip.OptionSome, uip.OptionReject)}
	because := func(why string) uip.Response { return uip.Response{Option: uip.OptionReject, Comment: why} }
	tests := []struct {
		name, line string
		q          uip.Request
		want       uip.Response
		ok         bool
	}{
		{"yes", " Y ", once, yes, true},
		{"yes in Chinese", "好的", once, yes, true},
		{"yes, but", "yes but not now", once, uip.Response{}, false},
		{"yes, but, with a comma", "yes, but not now", once, uip.Response{}, false},
		{"yes if", "ok if it is safe", once, uip.Response{}, false},
		{"yes and no", "y n", once, uip.Response{}, false},
		{"yes and something that may be anything", "yes rm", once, uip.Response{}, false},
		{"yes, but in Chinese", "好，但不要现在", once, uip.Response{}, false},
		{"yes and a remark", "y and keep the tests small", once, remark("keep the tests small"), true},
		{"yes and a remark after a comma", "Yes, use tabs next time", once, remark("use tabs next time"), true},
		{"yes and a remark in Chinese", "好，并写测试", once, remark("并写测试"), true},
		{"yes, but a wish", "y but please be brief", once, remark("please be brief"), true},
		{"yes, but a wish in Chinese", "y 但是请简短", once, remark("请简短"), true},
		{"yes, but a wish after a Chinese comma", "同意，但是请写测试", once, remark("请写测试"), true},
		{"yes, however a wish", "好，不过，请用制表符", once, remark("请用制表符"), true},
		{"yes, but a wish that takes it back", "y but please don't touch b", once, uip.Response{}, false},
		{"yes, but a wish that puts it off", "yes, but please wait", once, uip.Response{}, false},
		{"yes, but a wish that takes it back in Chinese", "y 但是请不要删除", once, uip.Response{}, false},
		{"yes, but a wish that puts it off in Chinese", "同意，但是请先备份", once, uip.Response{}, false},
		{"some hunks", "h 1,3", several, uip.Response{Option: uip.OptionSome, Input: "1,3"}, true},
		{"some hunks and a remark", "Hunks 1 2-3 the rest can wait", several, uip.Response{Option: uip.OptionSome, Input: "1 2-3", Comment: "the rest can wait"}, true},
		{"some hunks in Chinese", "块 1、2", several, uip.Response{Option: uip.OptionSome, Input: "1、2"}, true},
		{"hunks with and between them", "h 1 and 3", several, uip.Response{Option: uip.OptionSome, Input: "1 3"}, true},
		{"hunks with a Chinese and", "h 1 和 2和3 其余以后再说", several, uip.Response{Option: uip.OptionSome, Input: "1 2 3", Comment: "其余以后再说"}, true},
		{"a sign before a hunk", "h 1 +3", several, uip.Response{}, false},
		{"letters behind a hunk", "h 1-2x", several, uip.Response{}, false},
		{"letters between hunks", "h 1x3", several, uip.Response{}, false},
		{"hunks on a condition", "h 1 if the tests pass", several, uip.Response{}, false},
		{"calls with and between them", "1 and 3", card, some("a", "c"), true},
		{"calls and words that may mean anything", "1 3 second", card, uip.Response{}, false},
		{"calls and why not the other", "1 3, second is not needed", card, uip.Response{Parts: []uip.Response{{ID: "a", Option: uip.OptionApprove, Comment: "second is not needed"}, {ID: "b", Option: uip.OptionReject, Comment: "second is not needed"}, {ID: "c", Option: uip.OptionApprove, Comment: "second is not needed"}}}, true},
		{"hunks where there are none", "h 1", once, uip.Response{}, false},
		{"hunks of calls", "1 3.2 3.1", cardOfHunks, uip.Response{Parts: []uip.Response{{ID: "a", Option: uip.OptionApprove}, {ID: "b", Option: uip.OptionReject}, {ID: "c", Option: uip.OptionSome, Input: "2 1"}}}, true},
		{"a call and hunks of it", "3 3.1", cardOfHunks, uip.Response{Parts: []uip.Response{{ID: "a", Option: uip.OptionReject}, {ID: "b", Option: uip.OptionReject}, {ID: "c", Option: uip.OptionApprove}}}, true},
		{"hunks of a call that has none", "1.1", cardOfHunks, uip.Response{}, false},
		{"no", "n", once, no, true},
		{"no with a reason", "No, use b", once, because("use b"), true},
		{"no with a reason in Chinese", "不，用 b", once, because("用 b"), true},
		{"yes, said twice", "y 好", once, yes, true},
		{"the words of the card", "Yes, this once", lasting, yes, true},
		{"the words of the card in Chinese", "仅此一次，同意", lasting, yes, true},
		{"always, in the words of the card", "always in this project", lasting, always, true},
		{"always, in the words of the card, where it is not offered", "always in this project", once, uip.Response{}, false},
		{"no, in other words", "不要，名字不好", once, because("名字不好"), true},
		{"always", "always", lasting, always, true},
		{"for this session", "s", edit, uip.Response{Option: uip.OptionSession}, true},
		{"for this session in Chinese", "本次会话", edit, uip.Response{Option: uip.OptionSession}, true},
		{"below a folder", "D", edit, uip.Response{Option: uip.OptionAlwaysBelow}, true},
		{"below a folder where it is not offered", "d", lasting, uip.Response{}, false},
		{"always where it is not offered", "always", once, uip.Response{}, false},
		{"always, but", "a b", lasting, uip.Response{}, false},
		{"nothing", "  ", once, uip.Response{}, false},
		{"something else", "maybe", lasting, uip.Response{}, false},
		{"a number is no approval", "1", once, uip.Response{}, false},
		{"all", "y", card, yes, true},
		{"none", "n: wait", card, because("wait"), true},
		{"some", "1 3", card, some("a", "c"), true},
		{"some with commas", "3，1,", card, some("a", "c"), true},
		{"some twice", "2 2", card, some("b"), true},
		{"some, and words", "1 3 and leave the readme", card, uip.Response{Parts: []uip.Response{{ID: "a", Option: uip.OptionApprove, Comment: "leave the readme"}, {ID: "b", Option: uip.OptionReject, Comment: "leave the readme"}, {ID: "c", Option: uip.OptionApprove, Comment: "leave the readme"}}}, true},
		{"some, and a condition", "1 3 if the tests pass", card, uip.Response{}, false},
		{"too many", "1 4", card, uip.Response{}, false},
		{"none of them", "0", card, uip.Response{}, false},
		{"no numbers", ", ,", card, uip.Response{}, false},
		{"an option", "2", choice, uip.Response{Option: "2"}, true},
		{"a number that a question of the program's own does not have", "9", recovery, uip.Response{}, false},
		{"a yes to going on", "Yes", recovery, uip.Response{Option: "continue"}, true},
		{"the first words of a choice", "continue", recovery, uip.Response{Option: "continue"}, true},
		{"the first words of a choice, and more", "continue with b.go", recovery, uip.Response{Input: "continue with b.go"}, true},
		{"the beginning of a word", "dr", recovery, uip.Response{Input: "dr"}, true},
		{"a no to what may mean anything", "no", recovery, uip.Response{}, false},
		{"a letter", "x", recovery, uip.Response{}, false},
		{"which choices there are", "?", recovery, uip.Response{}, false},
		{"own words", "green", choice, uip.Response{Input: "green"}, true},
		{"what can be answered", "?", plan, uip.Response{}, false},
		{"a choice by its number, and words", "2 and be quick", plan, uip.Response{Option: "go:auto", Comment: "be quick"}, true},
		{"a choice by its number, a comma and words", "2, and be quick", plan, uip.Response{Option: "go:auto", Comment: "be quick"}, true},
		{"a choice by its number, and a condition", "2 but only the first step", plan, uip.Response{}, false},
		{"a number that the plan does not have", "9", plan, uip.Response{}, false},
		{"a number that begins a sentence", "2 files are missing", plan, uip.Response{}, false},
		{"the choice that takes any words, by its number", "3 think of the tests", plan, uip.Response{Option: "keep", Comment: "think of the tests"}, true},
		{"a choice by another name", "Auto-edit", plan, uip.Response{Option: "go:auto"}, true},
		{"a choice by another name, and words", "auto-edit, be quick", plan, uip.Response{Option: "go:auto", Comment: "be quick"}, true},
		{"a name that begins a sentence", "default values are missing", plan, uip.Response{Option: "keep", Comment: "default values are missing"}, true},
		{"a choice by its label", "keep planning", plan, uip.Response{Option: "keep"}, true},
		{"a choice by the beginning of its label", "start", plan, uip.Response{Option: "go"}, true},
		{"yes to a choice", "yes", plan, uip.Response{Option: "go"}, true},
		{"yes to a choice, and words", "好，并写测试", plan, uip.Response{Option: "go", Comment: "并写测试"}, true},
		{"yes to a choice, but", "yes but only step 1", plan, uip.Response{}, false},
		{"no to a choice", "No, think of the tests", plan, uip.Response{Option: "keep", Comment: "think of the tests"}, true},
		{"a sentence that begins with no", "no test covers this", plan, uip.Response{Option: "keep", Comment: "no test covers this"}, true},
		{"words that are for the model", "think of the tests", plan, uip.Response{Option: "keep", Comment: "think of the tests"}, true},
		{"yes, where words choose nothing", "ok", wait, uip.Response{Option: "wait"}, true},
		{"no, where words choose nothing", "n", wait, uip.Response{Option: "stop"}, true},
		{"words where they are a new prompt", "yes and more", uip.Request{ID: "q", Kind: uip.KindSelect, Options: choice.Options, Display: uip.Display{Metadata: map[string]string{uip.MetaOnEnter: "1"}}}, uip.Response{Input: "yes and more"}, true},
		{"words that choose nothing", "think of the tests", wait, uip.Response{}, false},
		{"a number that is no option", "3", choice, uip.Response{}, false},
		{"a number longer than those of the options", "8080", choice, uip.Response{Input: "8080"}, true},
		{"a long number that the plan does not have", "8080", plan, uip.Response{}, false},
		{"numbers", "1 2", choice, uip.Response{Input: "1 2"}, true},
		{"numbers of which one is no option", "1, 3", choice, uip.Response{}, false},
		{"a number and words", "3 of them", choice, uip.Response{Input: "3 of them"}, true},
		{"a label that is a number", "30", uip.Request{ID: "q", Kind: uip.KindSelect, Options: []uip.Option{{ID: "1", Label: "20"}, {ID: "2", Label: "30"}}}, uip.Response{Option: "2"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseAnswer(term.English{}, tt.q, tt.line)
			if ok != tt.ok || ok && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("read %+v, %v, want %+v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// Nothing but a yes or plain numbers on a card, alone or going on from them, lets anything run.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{"y", "yes", "y n", "n y", "y but please x", "同意，但是请简短", "1 3", "是", "always", "a\ty", "１", "\x00y", "+1", "2 +3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		word := strings.ToLower(strings.TrimRight(strings.TrimSpace(line), " ,，:：\t"))
		for _, q := range []uip.Request{once, lasting} {
			a, ok := parseAnswer(term.English{}, q, line)
			plain := a.Comment == "" || strings.HasSuffix(word, strings.ToLower(strings.TrimRight(a.Comment, " ,，:：\t")))
			first, _, _ := strings.Cut(strings.NewReplacer(",", " ", "，", " ", ":", " ", "：", " ", "\t", " ").Replace(word), " ")
			if ok && a.Option == uip.OptionApprove && (!slices.Contains(yesWords, first) || !plain || slices.Contains(conditionWords, strings.ToLower(strings.Split(a.Comment+" ", " ")[0]))) {
				t.Errorf("%q was taken for yes", line)
			}
			if ok && a.Option == uip.OptionAlways && (!slices.Contains(rememberWords[uip.OptionAlways], word) || !hasOption(q, uip.OptionAlways)) {
				t.Errorf("%q was taken for always", line)
			}
		}
		a, ok := parseAnswer(term.English{}, card, line)
		allowed := slices.ContainsFunc(a.Parts, func(p uip.Response) bool { return p.Option == uip.OptionApprove })
		goesOn := slices.ContainsFunc([]string{"and", "also", "then", "please", "&", "和", "与", "及", "并", "另外", "然后", "请", "同时", "顺便", ",", "，", ":", "："}, func(s string) bool {
			return strings.Contains(word, s)
		}) || slices.ContainsFunc(yesWords, func(s string) bool { return strings.HasSuffix(word, s) })
		if ok && allowed && strings.Trim(word, "123 ,，、\t0") != "" && !goesOn {
			t.Errorf("%q allowed some", line)
		}
	})
}

func draft(text string) lineedit.Draft {
	var e lineedit.Editor
	e.SetText(text)
	return e.Draft()
}

func texts(drafts []lineedit.Draft) (all []string) {
	for _, d := range drafts {
		all = append(all, d.Text())
	}
	return all
}

func TestTheQueueKeepsItsOrder(t *testing.T) {
	var q queue
	if _, ok := q.takeLast(func(lineedit.Draft) bool { return true }); ok || len(q.list()) > 0 || len(q.takeFirst(isPromptDraft)) > 0 {
		t.Error("an empty queue has something")
	}
	for _, text := range []string{"a", "b", "/mode", "c", "d"} {
		q.add(draft(text))
	}
	if d, _ := q.takeLast(func(lineedit.Draft) bool { return true }); d.Text() != "d" {
		t.Errorf("took back %q", d.Text())
	}
	if got := texts(q.takeFirst(isPromptDraft)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the turn got %q", got)
	}
	if got := texts(q.takeFirst(isPromptDraft)); got != nil {
		t.Errorf("the turn got a command or more: %q", got)
	}
	if got := texts(q.takeFirst(acceptFirst)); !slices.Equal(got, []string{"/mode"}) {
		t.Errorf("next is %q", got)
	}
	if got := q.list(); len(got) != 1 || got[0].String() != "c" {
		t.Errorf("left are %q", got)
	}
}

// TestAPromptAtAnApproval is words that do not begin as an answer does: a doubtful line is neither.
func TestAPromptAtAnApproval(t *testing.T) {
	q := uip.Request{Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction}
	for line, want := range map[string]bool{
		"please also rename the file": true, "fix the tests, too": true, "请也重命名这个文件": true,
		"yes if it is safe": false, "not now": false, "wait, stop": false, "don't do that": false, "hold on": false,
		"maybe": false, "y": false, "1 and more": false, "u and go": false, "好的然后测试一下": false, "": false,
	} {
		if got := isPrompt(q, line); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}
