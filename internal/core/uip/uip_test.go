package uip_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/core/uip"
)

func TestCheck(t *testing.T) {
	options := []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}
	confirm := uip.Request{ID: "q", TaskID: "t", Kind: uip.KindConfirm, Options: options}
	choose := uip.Request{ID: "q", TaskID: "t", Kind: uip.KindSelect, Options: options}
	typed := uip.Request{ID: "q", TaskID: "t", Kind: uip.KindInput, Validation: &uip.Validation{Regex: `^\d+$`, Required: true}}
	free := uip.Request{ID: "q", Kind: uip.KindInput}
	several := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeRequestInfo, Parts: []uip.Request{{ID: "q.1", Kind: uip.KindSelect, Options: options}, {ID: "q.2", Kind: uip.KindInput}}}
	for _, c := range []struct {
		name string
		q    uip.Request
		a    uip.Response
		why  string // part of the refusal; empty: accepted
	}{
		{"approve", confirm, uip.Response{ID: "q", TaskID: "t", Option: uip.OptionApprove}, ""},
		{"reject with a comment", confirm, uip.Response{ID: "q", Option: uip.OptionReject, Comment: "no"}, ""},
		{"another question", confirm, uip.Response{ID: "q2", Option: uip.OptionApprove}, "interaction"},
		{"no question", confirm, uip.Response{Option: uip.OptionApprove}, "interaction"},
		{"another task", confirm, uip.Response{ID: "q", TaskID: "t2", Option: uip.OptionApprove}, "task"},
		{"an option not offered", confirm, uip.Response{ID: "q", Option: uip.OptionAlways}, "unknown option"},
		{"confirm in words", confirm, uip.Response{ID: "q", Input: "yes"}, "must be chosen"},
		{"nothing", confirm, uip.Response{ID: "q"}, "must be chosen"},
		{"pick", choose, uip.Response{ID: "q", Option: uip.OptionReject}, ""},
		{"an answer of one's own", choose, uip.Response{ID: "q", Input: "neither"}, ""},
		{"no pick", choose, uip.Response{ID: "q"}, "must be chosen"},
		{"number", typed, uip.Response{ID: "q", Input: "12"}, ""},
		{"no number", typed, uip.Response{ID: "q", Input: "12a"}, "does not match"},
		{"required", typed, uip.Response{ID: "q"}, "required"},
		{"not required", free, uip.Response{ID: "q"}, ""},
		{"one of two", several, uip.Response{ID: "q"}, "must be chosen"},
		{"none of two", several, uip.Response{ID: "q", Dismissed: true}, ""},
		{"an approval is not dismissed", uip.Request{ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: options}, uip.Response{ID: "q", Dismissed: true}, "must be chosen"},
		{"broken rule", uip.Request{ID: "q", Validation: &uip.Validation{Regex: "("}}, uip.Response{ID: "q", Input: "x"}, "rule is invalid"},
	} {
		err := uip.CheckResponse(c.q, c.a)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	for kind, option := range map[uip.Kind]string{uip.KindConfirm: uip.OptionReject, uip.KindSelect: "", uip.KindInput: ""} {
		a, err := uip.NoInteractor.Ask(t.Context(), uip.Request{ID: "q", TaskID: "t", Kind: kind})
		want := uip.Response{ID: "q", TaskID: "t", Author: "nobody", Option: option, Comment: "nobody to ask"}
		if err != nil || !a.IsUnanswered() || !reflect.DeepEqual(a, want) {
			t.Errorf("%s: %+v, %v; want %+v", kind, a, err, want)
		}
	}
	if (uip.Response{Author: "user"}).IsUnanswered() {
		t.Error("the answer of a user counts as none")
	}
}

const diff = `--- a/x.sql
+++ b/x.sql
@@ -1,3 +1,4 @@
 keep
--- a comment
+++ plus
+more
 keep
@@ -9 +10,0 @@ func
-gone
\ No newline at end of file
--- a/y
+++ b/y
@@ -0,0 +1 @@
+<new> & "quoted"
`

func TestDisplayRoundTrip(t *testing.T) {
	for _, c := range []struct {
		content display.Block
		kind    string
		back    display.Block
	}{
		{nil, "", nil},
		{display.Text("<a>\n没有"), "PlainText", display.Text("<a>\n没有")},
		{display.Text(""), "PlainText", display.Text("")},
		{display.Code{Lang: "sh", Source: "ls > x"}, "PlainText", display.Text("ls > x")},
		{display.Code{Lang: "json", Source: `{"a":"<"}`}, "Json", display.Code{Lang: "json", Source: `{"a":"<"}`}},
		{display.Code{Lang: "json", Source: `{"a":`}, "PlainText", display.Text(`{"a":`)},
		{display.Diff{Unified: diff, Added: 3, Deleted: 2}, "Diff", display.Diff{Unified: diff, Added: 3, Deleted: 2}},
		{display.Table{Header: display.DataCells("h"), Rows: [][]display.Cell{display.DataCells("a<"), display.TextCells("b")}}, "Table", display.Table{Header: display.DataCells("h"), Rows: [][]display.Cell{display.DataCells("a<"), display.TextCells("b")}}},
	} {
		want := uip.Display{Title: "t & u", Description: "d", Content: c.back, Metadata: map[string]string{"toolCallId": "c1"}}
		sent := want
		sent.Content = c.content
		b, err := sent.MarshalJSON()
		if err != nil {
			t.Fatalf("%#v: %v", c.content, err)
		}
		var w struct{ ContentKind string }
		if err := json.Unmarshal(b, &w); err != nil || w.ContentKind != c.kind {
			t.Errorf("%s: kind %q, %v, want %q", b, w.ContentKind, err, c.kind)
		}
		if strings.Contains(string(b), `\u003c`) || strings.Contains(string(b), `\u0026`) {
			t.Errorf("%s is not as people read it", b)
		}
		var got uip.Display
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s gave back\n%#v, %v, want\n%#v", b, got, err, want)
		}
	}
}

func TestDisplayFromElsewhere(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"title":"t"}`: true, `{"title":"t","contentKind":"Diff"}`: true, `{"title":"t","content":"x"}`: true,
		`{"title":"t","content":"x","contentKind":"Markdown"}`: true, `{"content":5,"contentKind":"PlainText"}`: false,
		`{"content":5,"contentKind":"Table"}`: false, `[]`: false, `{"content":"@@ -1,99999999999999999999 +1 @@\n-x\n+y","contentKind":"Diff"}`: true,
	} {
		var d uip.Display
		if err := json.Unmarshal([]byte(text), &d); (err == nil) != ok {
			t.Errorf("%s: %#v, %v", text, d, err)
		}
	}
}

func TestAnswerIsBoundToACall(t *testing.T) {
	q := uip.Request{Display: uip.Display{Metadata: map[string]string{"toolCallId": "c1"}}}
	if q.CallID() != "c1" || (uip.Request{}).CallID() != "" {
		t.Errorf("bound to %q and %q", q.CallID(), uip.Request{}.CallID())
	}
}

func TestHunksOfAnAnswer(t *testing.T) {
	for input, want := range map[string]string{
		"1": "[1]", "3, 1": "[1 3]", "2-4": "[2 3 4]", "1、2 2": "[1 2]", "4,1-2": "[1 2 4]",
		"": "", "0": "", "5": "", "2-1": "", "1-9": "", "x": "", "1.5": "", "-1": "", "1-": "", "1 and 2": "", "99999999999999999999": "",
	} {
		q := uip.Request{ID: "q", Kind: uip.KindConfirm, Options: []uip.Option{{ID: uip.OptionSome}}, Display: uip.Display{Metadata: map[string]string{uip.MetaHunks: "4"}}}
		a := uip.Response{ID: "q", Option: uip.OptionSome, Input: input}
		got, err := a.Hunks(4)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q is %v, %v, want %s", input, got, err, want)
		}
		if fits := uip.CheckResponse(q, a); (fits == nil) != (want != "") {
			t.Errorf("%q fits: %v", input, fits)
		}
		q.Display.Metadata = nil
		if uip.CheckResponse(q, a) == nil {
			t.Errorf("%q answers a question without hunks", input)
		}
	}
}
