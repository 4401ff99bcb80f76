package display_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"

	"coder/internal/core/display"
)

func TestBlocksAreTheSameAfterJSON(t *testing.T) {
	want := display.Blocks{
		display.Text("a < b"), display.Code{Lang: "sh", Source: "ls"}, display.Diff{Unified: "+a\n", Added: 1, Deleted: 2},
		display.Table{Header: display.TextCells("name", ""), Rows: [][]display.Cell{display.DataCells("x", "y"), display.TextCells("more")}, FirstWidth: 3},
		display.Checklist{{State: display.StateInProgress, Text: "it"}}, display.Shell{Command: "ls", HasRun: true, ExitCode: 2, DurationMs: 3, Stdout: "o", Stderr: "e", Error: "w", Truncated: true},
		display.Shell{Command: "rm", Error: "denied"},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got display.Blocks
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`[{"kind":"film","text":"what it is"},{"kind":"shell"}]`), &got); err != nil || !reflect.DeepEqual(got, display.Blocks{display.Text("what it is"), display.Text("")}) {
		t.Errorf("of a kind that is not known: %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`[{"kind":"table","rows":[[7]]}]`), &got); err == nil {
		t.Error("a number is no cell")
	}
}

func TestBlocksAsText(t *testing.T) {
	blocks := display.Blocks{
		display.Text("all:"),
		display.Table{Header: display.TextCells("name", "state"), Rows: [][]display.Cell{{{Text: "state"}, {Text: "new", Words: true}}, display.DataCells("x"), display.DataCells("long name", "")}},
		display.Text(""),
		display.Table{FirstWidth: 6, Rows: [][]display.Cell{display.DataCells("/a", "one"), display.DataCells("/a [bc]", "two"), display.DataCells("/abcd", "three")}},
		display.Checklist{{State: display.StateCompleted, Text: "a"}, {State: display.StateInProgress, Text: "b"}, {State: "odd", Text: "c"}},
		display.NewDiff("@@ -1 +1 @@\n-- a\n+b"),
	}
	const want = "all:\nname   state\nstate  new\nx\nlong name\n\n/a    one\n/a [bc]\n      two\n/abcd three\n☑ a\n◐ b\n☐ c\n@@ -1 +1 @@\n-- a\n+b"
	if got := blocks.PlainText(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	got := blocks.Translate(strings.ToUpper, utf8.RuneCountInString)
	if !strings.HasPrefix(got, "ALL:\nNAME   STATE\nstate  NEW\nx\n") {
		t.Error(got)
	}
}

// Text on record has the columns that it always had.
func TestTablesAreLaidOutAsTabsWould(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var table display.Table
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for range 1 + r.IntN(6) {
			var row []string
			for range 1 + r.IntN(4) {
				row = append(row, strings.Repeat("é", r.IntN(5)))
			}
			table.Rows = append(table.Rows, display.DataCells(row...))
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush()
		var want []string
		for line := range strings.Lines(b.String()) {
			want = append(want, strings.TrimRight(line, " \n"))
		}
		if got := strings.Split((display.Blocks{table}).PlainText(), "\n"); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// The end of an output that was cut in its middle is what it ended with.
func TestTheEndOfALongOutput(t *testing.T) {
	s := display.Shell{HasRun: true, Truncated: true, Stdout: "1\n2\n3\n[9 characters left out]\n8\n9\n[output truncated]\n", Stderr: "e\n"}.Truncate(2)
	want := []display.OutputTail{{Stream: "stdout", Text: "3\n[9 characters left out]\n8\n9"}}
	if !slices.Equal(s.Tails, want) || s.Stderr != "e\n" {
		t.Errorf("ends with %+v, says %q on stderr", s.Tails, s.Stderr)
	}
}

func TestTheNameInATitleIsNotTranslated(t *testing.T) {
	loud := func(text string) string { return strings.ToUpper(text) }
	for _, tt := range []struct{ title, text, want string }{
		{"done", "done: no such file", "done - NO SUCH FILE"},
		{"x (no changes)", "no changes: is a folder", "no changes - IS A FOLDER"},
		{"a: b", "a: b: is a folder", "a: b - IS A FOLDER"},
		{"undone", "done: no such file", "DONE: NO SUCH FILE"},
		{"", "failed: exit 1", "FAILED: EXIT 1"},
	} {
		if got := display.TranslateResult(tt.title, tt.text, " - ", loud); got != tt.want {
			t.Errorf("%q of %q: %q, want %q", tt.text, tt.title, got, tt.want)
		}
	}
}
