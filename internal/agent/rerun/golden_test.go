package rerun

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/golden"
)

// learnt is the golden session of a rerun that a call in it changed files in.
func learnt(t *testing.T) (*rig, *golden.Golden) {
	t.Helper()
	kept := keeper{contents: map[string]string{"h1": "one", "h2": "made in COPY, was /ws", "h3": "by others", "h4": "key"}}
	done := func(hash string) event.Record {
		return of("t", "", event.ToolCallCompleted{CallID: "c", Tool: "bash", Output: []byte(`{"stdout":"in /ws"}`), DurationMs: 7, Changes: []event.FileChange{
			{Before: file("a", "h1"), After: file("a", hash)}, {Before: file("b", "h1"), After: file("b", "h1")}, {After: file(".env", "h4")}, {After: event.FileState{Path: "d", Hash: "dir"}},
		}})
	}
	asked := of("t", "", event.ToolCallRequested{CallID: "c", Tool: "bash", Tree: "tree", Repository: "state", Sandbox: "x", Before: []event.FileState{file("a", "h1")}})
	later := map[uint64][]event.FileState{4: {file("o", "h3")}}
	take := New("s", "/ws", numbered(created("t"), replied("t", "look at /ws"), asked, done("h2"), replied("t", "end")))
	r := follow(t, take, kept, later, file("a", "h1"), file("b", "h1"))
	kept.contents["h2"] = strings.Replace(kept.contents["h2"], "COPY", r.workCopy.Dir(), 1)
	here := strings.NewReplacer("/ws", r.workCopy.Dir())
	for _, rec := range take.Records {
		line, err := event.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := event.Decode([]byte(here.Replace(string(line))), event.LogConversation)
		if err != nil {
			t.Fatal(err)
		}
		again.Seal = "sealed"
		if err := r.make(again); err != nil {
			t.Fatal(err)
		}
	}
	g, err := r.ToGolden(t.Context(), golden.Golden{Session: "s", Root: "/workspace/x", Platform: "p", SkippedRecords: []uint64{4, 9}})
	if err != nil {
		t.Fatal(err)
	}
	return r, g
}

// TestAGoldenSessionTellsNothingOfWhereItWasMade, and has all that it takes to be run again.
func TestAGoldenSessionTellsNothingOfWhereItWasMade(t *testing.T) {
	r, g := learnt(t)
	dir := filepath.Join(t.TempDir(), "in", "golden")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(dir); err == nil {
		t.Error("it is written over another one")
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		text, _ := os.ReadFile(name)
		for _, private := range []string{r.dir, `/ws"`, "in /ws", "sealed", "key", `"tree"`, `"state"`} {
			if strings.Contains(string(text), private) {
				t.Errorf("%s tells of %s:\n%s", name, private, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := golden.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Records) != 5 || read.Records[3].Seq != 4 || !slices.Equal(read.SkippedRecords, []uint64{4}) || read.Records[3].Time != began.Add(3*time.Second) || read.Format != golden.Format || len(read.Start) != 2 {
		t.Errorf("it is read as %+v", read)
	}
	kept := golden.StoredFiles{Dir: dir}
	content := func(s event.FileState) string {
		text, err := kept.Content(context.Background(), s, maxContentBytes)
		if err != nil {
			t.Errorf("%s: %v", s.Path, err)
		}
		return string(text)
	}
	changes := read.Records[3].Event.(event.ToolCallCompleted).Changes
	if got := content(changes[0].After); got != "made in /workspace/x, was /workspace/x" {
		t.Errorf("a becomes %q", got)
	}
	if got := content(read.LaterChanges[4][0]); got != "by others" {
		t.Errorf("others left %q", got)
	}
	if got := content(read.Start[0]) + content(changes[1].After); got != "oneone" {
		t.Errorf("the start holds %q", got)
	}
	if _, err := kept.Content(t.Context(), changes[2].After, maxContentBytes); err == nil {
		t.Error("a secret file is in it")
	}
	if list, err := kept.Expand(t.Context(), changes[0]); len(list) != 1 || err != nil {
		t.Errorf("a change becomes %d: %v", len(list), err)
	}
}

// TestWhatIsNotMadeAgainIsKeptWhole: a rerun puts it where the call left it. Of any other call a
// file is compared, and a long one by its sum.
func TestWhatIsNotMadeAgainIsKeptWhole(t *testing.T) {
	long := strings.Repeat("x", maxMaskedBytes+1)
	for net, want := range map[bool]int{true: 1, false: 0} {
		asked := event.ToolCallRequested{CallID: "c", Tool: "fetch", Verdict: event.VerdictAllowed}
		if net {
			asked.Effects = []event.Effect{{Kind: event.EffectNet, Target: "https://x.org"}}
		}
		done := event.ToolCallCompleted{CallID: "c", Tool: "fetch", Changes: []event.FileChange{{Before: event.FileState{Path: "a"}, After: event.FileState{Path: "a", Hash: "h", Size: int64(len(long))}}}}
		r := follow(t, New("s", "/ws", numbered(created("t"), of("t", "", asked), of("t", "", done))), keeper{contents: map[string]string{"h": long}}, nil)
		if err := r.make(created("t"), of("t", "", asked), of("t", "", done)); err != nil {
			t.Fatal(err)
		}
		g, err := r.ToGolden(t.Context(), golden.Golden{Session: "s", Root: "/workspace/x"})
		if err != nil || len(g.Contents) != want {
			t.Errorf("by the network %v: %d contents: %v", net, len(g.Contents), err)
		}
	}
}
