package audit_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"coder/internal/audit"
	"coder/internal/event"
	"coder/internal/event/eventtest"
)

// chain writes an audit log of n lines as the store does.
func chain(t testing.TB, n int) [][]byte {
	t.Helper()
	var lines [][]byte
	prev := ""
	for i := range n {
		r := eventtest.Records("s", uint64(i*3), event.ToolCallRequested{CallID: "c", Tool: strings.Repeat("x", i), Input: []byte("{}")})[0]
		b, err := event.Encode(r, prev)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, append(b, '\n'))
		prev = audit.Hash(b)
	}
	return lines
}

func verify(lines [][]byte) (int, error) {
	return audit.Verify(bytes.NewReader(slices.Concat(lines...)))
}

func TestVerifyWhole(t *testing.T) {
	for n := range 6 {
		if got, err := verify(chain(t, n)); got != n || err != nil {
			t.Errorf("verified %d of %d, %v", got, n, err)
		}
	}
	long := chain(t, 1)
	long[0] = bytes.Replace(long[0], []byte(`"toolName":"`), append([]byte(`"toolName":"`), bytes.Repeat([]byte("x"), 1<<20)...), 1)
	if n, err := verify(long); n != 1 || err != nil {
		t.Errorf("verified %d, %v of a long line", n, err)
	}
}

func TestVerifyNamesTheFirstBreak(t *testing.T) {
	const n = 6
	edit := func(f func([][]byte) [][]byte) [][]byte { return f(chain(t, n)) }
	for name, c := range map[string]struct {
		lines [][]byte
		line  int
	}{
		"changed":       {edit(func(l [][]byte) [][]byte { l[2] = bytes.Replace(l[2], []byte("xx"), []byte("xy"), 1); return l }), 4},
		"removed":       {edit(func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }), 3},
		"beheaded":      {edit(func(l [][]byte) [][]byte { return l[1:] }), 1},
		"swapped":       {edit(func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }), 2},
		"doubled":       {edit(func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) }), 3},
		"inserted":      {edit(func(l [][]byte) [][]byte { return slices.Insert(l, 3, chain(t, 1)[0]) }), 4},
		"spaced":        {edit(func(l [][]byte) [][]byte { l[0] = bytes.Replace(l[0], []byte(`,"v"`), []byte(`, "v"`), 1); return l }), 2},
		"torn":          {edit(func(l [][]byte) [][]byte { l[5] = l[5][:len(l[5])-1]; return l }), 6},
		"garbage":       {edit(func(l [][]byte) [][]byte { l[3] = []byte("garbage\n"); return l }), 4},
		"an empty line": {edit(func(l [][]byte) [][]byte { return append(l, []byte("\n")) }), 7},
	} {
		got, err := verify(c.lines)
		var broken *audit.BreakError
		if !errors.As(err, &broken) || broken.Line != c.line || got != c.line-1 {
			t.Errorf("%s: verified %d, %v, want a break in line %d", name, got, err, c.line)
		}
	}
}

func TestVerifyPassesOnAReadError(t *testing.T) {
	lines := chain(t, 3)
	in := io.MultiReader(bytes.NewReader(slices.Concat(lines...)), iotest.ErrReader(io.ErrClosedPipe))
	if n, err := audit.Verify(in); n != 3 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("verified %d, %v", n, err)
	}
}

func requested(id string) event.Event { return event.ToolCallRequested{CallID: id} }
func completed(id string, failed bool) event.Event {
	return event.ToolCallCompleted{CallID: id, IsError: failed}
}

func pair(events ...event.Event) ([]audit.Call, error) {
	return audit.Pair(func(yield func(event.Record, error) bool) {
		for _, r := range eventtest.Records("s", 0, events...) {
			if !yield(r, nil) {
				return
			}
		}
	})
}

func TestPair(t *testing.T) {
	calls, err := pair(requested("a"), event.LocalAdded{}, requested("b"), completed("b", true), requested("c"), completed("a", false), requested("a"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range calls {
		s := c.Requested.CallID
		switch {
		case c.Open():
			s += " open"
		case c.Completed.IsError:
			s += " failed"
		}
		got = append(got, s)
	}
	if want := []string{"a", "b failed", "c open", "a open"}; !slices.Equal(got, want) {
		t.Errorf("calls are %q, want %q", got, want)
	}
	if calls[1].Seq != 3 || calls[1].Time.IsZero() {
		t.Errorf("call is %+v", calls[1])
	}
}

func TestPairRefusesWhatWasNeverAsked(t *testing.T) {
	for _, events := range [][]event.Event{
		{completed("a", false)},
		{requested("a"), completed("a", false), completed("a", false)},
	} {
		if calls, err := pair(events...); err == nil {
			t.Errorf("%d events: %+v", len(events), calls)
		}
	}
	broken := func(yield func(event.Record, error) bool) { yield(event.Record{}, io.ErrUnexpectedEOF) }
	if _, err := audit.Pair(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want the reader's error", err)
	}
}

func TestOpenCalls(t *testing.T) {
	var cs audit.Calls
	for _, r := range eventtest.Records("s", 0, requested("a"), requested("b"), completed("a", false)) {
		before := cs.All()
		if err := cs.Add(r); err != nil {
			t.Fatal(err)
		}
		for _, c := range before {
			if !c.Open() {
				t.Error("a list given out was changed")
			}
		}
	}
	if open := cs.Open(); len(open) != 1 || open[0].Requested.CallID != "b" {
		t.Errorf("open are %+v", open)
	}
}
