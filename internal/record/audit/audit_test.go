package audit_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"coder/internal/core/event"
	"coder/internal/record/audit"
	"coder/testkit/eventtest"
)

// session is the three logs of a session of n records as the store writes them,
// a line each; of them every third is a call, the rest is what was said. Lines
// up to plain are of the earlier form, without checks.
func session(t testing.TB, n, plain int) (logs [3][][]byte, heads []audit.Head) {
	t.Helper()
	var head audit.Head
	prev := ""
	for i, l := range event.AllLogs {
		head.Ends[i].Link = audit.FirstLink(l)
	}
	for i := range n {
		var e event.Event = event.LocalAdded{Input: strings.Repeat("x", i)}
		switch {
		case i%3 == 0:
			e = event.ToolCallRequested{CallID: "c", Tool: strings.Repeat("x", i), Input: []byte("{}")}
		case i%5 == 0:
			e = event.TaskCompleted{TaskID: "t", Summary: strings.Repeat("x", i)}
		}
		r := eventtest.Records("s", uint64(i), e)[0]
		line, err := event.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(event.AllLogs, event.LogOf(e))
		if i >= plain {
			line, _ = audit.AddChecksum(line, head.Ends[at].Link)
		} else if event.LogOf(e) == event.LogAudit {
			if prev != "" {
				line = fmt.Appendf(line[:len(line)-1], `,"prev":"%s"}`, prev)
			}
			prev = fmt.Sprintf("%x", sha256.Sum256(line))
		}
		logs[at] = append(logs[at], append(slices.Clone(line), '\n'))
		head.Seq, head.Ends[at] = r.Seq, audit.End{Seq: r.Seq, Link: audit.LinkAfter(line)}
		if i%4 == 3 || i == n-1 {
			heads = append(heads, signed(head))
		}
	}
	return logs, heads
}

// signed is a head as it is kept: a log without records has no end.
func signed(h audit.Head) audit.Head {
	for i := range h.Ends {
		if h.Ends[i].Seq == 0 {
			h.Ends[i] = audit.End{}
		}
	}
	return h
}

func verify(logs [3][][]byte, heads []audit.Head) (audit.Report, error) {
	var sources []audit.Source
	for i, l := range event.AllLogs {
		sources = append(sources, audit.Source{Log: l, Name: l.String() + ".jsonl", Data: bytes.NewReader(slices.Concat(logs[i]...))})
	}
	return audit.Verify(sources, heads)
}

func TestVerifyWhole(t *testing.T) {
	for n := range 25 {
		for _, plain := range []int{0, n / 2, n} {
			logs, heads := session(t, n, plain)
			report, err := verify(logs, heads)
			if err != nil || report.Lines != n || report.Unchecked != plain || report.Covered != uint64(n) {
				t.Errorf("%d records, %d of the earlier form: %+v, %v", n, plain, report, err)
			}
			if _, err := verify(logs, heads[:len(heads)/2]); err != nil {
				t.Errorf("logs that go on beyond their head: %v", err)
			}
		}
	}
}

// damage is one way of spoiling a log, of which some line is the first bad one.
var damage = map[string]func(log [][]byte) (spoiled [][]byte, line int){
	"changed": func(l [][]byte) ([][]byte, int) {
		l[2] = bytes.Replace(l[2], []byte("xx"), []byte("xy"), 1)
		return l, 3
	},
	"removed":  func(l [][]byte) ([][]byte, int) { return slices.Delete(l, 2, 3), 3 },
	"beheaded": func(l [][]byte) ([][]byte, int) { return l[1:], 1 },
	"swapped":  func(l [][]byte) ([][]byte, int) { l[1], l[2] = l[2], l[1]; return l, 2 },
	"doubled":  func(l [][]byte) ([][]byte, int) { return slices.Insert(l, 2, l[1]), 3 },
	"spaced": func(l [][]byte) ([][]byte, int) {
		l[0] = bytes.Replace(l[0], []byte(`,"v"`), []byte(`, "v"`), 1)
		return l, 1
	},
	"torn":          func(l [][]byte) ([][]byte, int) { l[5] = l[5][:len(l[5])-1]; return l[:6], 6 },
	"garbage":       func(l [][]byte) ([][]byte, int) { l[3] = []byte("garbage\n"); return l, 4 },
	"an empty line": func(l [][]byte) ([][]byte, int) { return append(l, []byte("\n")), len(l) + 1 },
	"unchecked": func(l [][]byte) ([][]byte, int) {
		body, _, _ := event.SplitSum(bytes.TrimSuffix(l[4], []byte("\n")))
		l[4] = append(body, "}\n"...)
		return l, 5
	},
}

func TestVerifyNamesTheFirstBadLineOfAnyLog(t *testing.T) {
	for name, spoil := range damage {
		for i, l := range event.AllLogs {
			logs, heads := session(t, 90, 0)
			var want int
			logs[i], want = spoil(logs[i])
			for _, hs := range [][]audit.Head{heads, nil} {
				_, err := verify(logs, hs)
				var broken *audit.BreakError
				if !errors.As(err, &broken) || broken.Line != want || broken.File != l.String()+".jsonl" || broken.Record == 0 {
					t.Errorf("%s log %s: %v, want a break in line %d", l, name, err, want)
				}
			}
		}
	}
}

// What was given new checks by somebody holds together in itself. Only what is kept
// elsewhere tells.
func TestVerifyHoldsLogsAgainstTheirHeads(t *testing.T) {
	whole, heads := session(t, 40, 0)
	cut := func(logs [3][][]byte, seq uint64) [3][][]byte {
		for i := range logs {
			logs[i] = slices.Clone(logs[i])
			logs[i] = slices.DeleteFunc(logs[i], func(line []byte) bool { n, _ := event.PeekSeq(bytes.TrimSpace(line)); return n > seq })
		}
		return logs
	}
	for seq := uint64(1); seq < 40; seq++ {
		_, err := verify(cut(whole, seq), heads)
		var broken *audit.BreakError
		if !errors.As(err, &broken) || broken.Record != seq+1 || broken.File == "" {
			t.Errorf("all logs cut after record %d: %v", seq, err)
		}
	}
	forged, _ := session(t, 40, 0)
	const from = 5 // the line of the audit log that is not what it was: record 16
	link := audit.LinkAfter(bytes.TrimSuffix(forged[1][from-1], []byte("\n")))
	for i := from; i < len(forged[1]); i++ {
		body, _, _ := event.SplitSum(bytes.TrimSuffix(forged[1][i], []byte("\n")))
		line := bytes.Replace(append(slices.Clone(body), '}'), []byte("toolCallId"), []byte("toolCallID"), 1)
		line, link = audit.AddChecksum(line, link)
		forged[1][i] = append(line, '\n')
	}
	if _, err := verify(forged, nil); err != nil {
		t.Errorf("the forger made a mistake: %v", err)
	}
	_, err := verify(forged, heads)
	var broken *audit.BreakError
	if !errors.As(err, &broken) || broken.File != "audit.jsonl" || broken.Record > 16 || broken.Record < 13 {
		t.Errorf("a tail with new checks: %v", err)
	}
	unsealed, _ := session(t, 40, 40)
	if _, err := verify(unsealed, heads); !errors.As(err, &broken) || broken.Record != 1 {
		t.Errorf("logs whose checks were all taken off: %v", err)
	}
	gone := whole
	gone[2] = nil
	if _, err := verify(gone, heads); !errors.As(err, &broken) || broken.File != "conversation.jsonl" || broken.Record != 2 {
		t.Errorf("a log that is gone: %v", err)
	}
}

// A session that was cut and mended verifies again, and says that it was.
func TestVerifyKnowsWhatWasMended(t *testing.T) {
	logs, _ := session(t, 23, 0)
	_, before := session(t, 40, 0)
	short, atCut := session(t, 20, 0)
	mended := atCut[len(atCut)-1]
	mended.Repaired = true
	report, err := verify(logs, append(before, mended))
	if err != nil || !slices.Equal(report.Lost, []uint64{20}) || report.Covered != 20 {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := verify(short, before); err == nil {
		t.Error("a cut that nobody noticed verifies")
	}
}

func TestVerifyNoticesChangedLineEnds(t *testing.T) {
	logs, heads := session(t, 12, 0)
	for i, line := range logs[0] {
		logs[0][i] = append(bytes.TrimSuffix(line, []byte("\n")), "\r\n"...)
	}
	report, err := verify(logs, heads)
	var broken *audit.BreakError
	if !errors.As(err, &broken) || broken.File != "events.jsonl" || !strings.Contains(broken.Why, "CRLF") || report.Lines != 12 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestVerifyPassesOnAReadError(t *testing.T) {
	logs, _ := session(t, 3, 0)
	in := io.MultiReader(bytes.NewReader(slices.Concat(logs[1]...)), iotest.ErrReader(io.ErrClosedPipe))
	if _, err := audit.Verify([]audit.Source{{Log: event.LogAudit, Data: in}}, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// Every bit of every line of every log matters.
func TestEveryBitFlipIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	logs, _ := session(t, 7, 0)
	for i := range logs {
		text := slices.Concat(logs[i]...)
		for at := range text {
			for bit := range 8 {
				text[at] ^= 1 << bit
				spoiled := logs
				spoiled[i] = [][]byte{text}
				if _, err := verify(spoiled, nil); err == nil {
					t.Fatalf("bit %d of byte %d of the %s log went unnoticed: %s", bit, at, event.AllLogs[i], text)
				}
				text[at] ^= 1 << bit
			}
		}
	}
}

func requested(id string) event.Event { return event.ToolCallRequested{CallID: id} }
func completed(id string, failed bool) event.Event {
	return event.ToolCallCompleted{CallID: id, IsError: failed}
}

func pair(events ...event.Event) ([]audit.Call, error) {
	return audit.PairCalls(func(yield func(event.Record, error) bool) {
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
		case c.IsOpen():
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
	if _, err := audit.PairCalls(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
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
			if !c.IsOpen() {
				t.Error("a list given out was changed")
			}
		}
	}
	open := slices.DeleteFunc(cs.All(), func(c audit.Call) bool { return !c.IsOpen() })
	if len(open) != 1 || open[0].Requested.CallID != "b" {
		t.Errorf("open are %+v", open)
	}
}
