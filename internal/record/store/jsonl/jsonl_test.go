package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/audit"
	"coder/internal/record/session"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
	"coder/testkit/sessiontest"
)

func TestStore(t *testing.T) {
	for _, mode := range []jsonl.Fsync{jsonl.FsyncDecisions, jsonl.FsyncAlways, jsonl.FsyncNever} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			eventtest.TestStore(t, func(t *testing.T) event.Store {
				return jsonl.Open(filepath.Join(t.TempDir(), "new", "log"), jsonl.Options{Fsync: mode, OnRepair: noRepair(t)})
			})
		})
	}
}

func TestSimulation(t *testing.T) {
	eventtest.Simulate(t, true, func(dir string) event.Store {
		return jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever, OnRepair: noRepair(t)})
	})
}

func TestSessions(t *testing.T) {
	for _, mode := range []jsonl.Fsync{jsonl.FsyncDecisions, jsonl.FsyncAlways} {
		sessiontest.TestStore(t, func(t *testing.T) session.Store {
			return jsonl.OpenSessions(filepath.Join(t.TempDir(), "new", "sessions"), mode)
		})
	}
}

func noRepair(t testing.TB) func(jsonl.Repair) {
	return func(r jsonl.Repair) { t.Errorf("repaired without need: %+v", r) }
}

func TestOpenTouchesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	s := jsonl.Open(dir, jsonl.Options{})
	eventtest.Expect(t, s, "a", 0, nil)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made %s: %v", dir, err)
	}
	release := eventtest.Claim(t, s, "a")
	if got := names(t, filepath.Join(dir, "a")); got != "audit.jsonl lock" {
		t.Errorf("a claim made %s, want the link and the lock only", got)
	}
	eventtest.Append(t, s, "a", 0, event.LocalAdded{})
	release()
	if got := names(t, filepath.Join(dir, "a")); got != "audit.jsonl conversation.jsonl lock" {
		t.Errorf("session holds %s", got)
	}
}

func names(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestEachLogHasItsDuty(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{})
	eventtest.Claim(t, s, "a")
	all := eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	for _, l := range event.AllLogs {
		var seqs []uint64
		for _, line := range encodeLines(t, dir, l) {
			r, _, err := event.Decode(line, l)
			if err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, r.Seq)
		}
		var want []uint64
		for _, r := range all {
			if event.LogOf(r.Event) == l {
				want = append(want, r.Seq)
			}
		}
		if fmt.Sprint(seqs) != fmt.Sprint(want) {
			t.Errorf("%s log holds %v, want %v", l, seqs, want)
		}
	}
}

func encodeLines(t testing.TB, dir string, l event.Log) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "a", l.String()+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

// Every line of every log carries a check of itself and of those before it,
// however many processes wrote them.
func TestLogsAreChained(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)})
		release := eventtest.Claim(t, s, "a")
		last := uint64(round * 2 * len(eventtest.Samples()))
		eventtest.Append(t, s, "a", last, eventtest.Samples()...)
		eventtest.Append(t, s, "a", last+uint64(len(eventtest.Samples())), eventtest.Samples()...)
		release()
	}
	total := 0
	for _, l := range event.AllLogs {
		link := audit.FirstLink(l)
		var checker audit.Checker
		for i, line := range encodeLines(t, dir, l) {
			if holds, checked := checker.Check(line, link); !holds || !checked {
				t.Fatalf("%s log, line %d: checked %v, holds %v", l, i+1, checked, holds)
			}
			link = audit.LinkAfter(line)
			total++
		}
	}
	report, err := jsonl.Open(dir, jsonl.Options{}).Verify("a")
	if err != nil || report.Lines != total || report.Unchecked != 0 {
		t.Errorf("verified %+v, %v, want %d lines", report, err, total)
	}
}

func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on this system")
	}
	dir := filepath.Join(t.TempDir(), "log")
	s := jsonl.Open(dir, jsonl.Options{})
	eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	sessions := jsonl.OpenSessions(filepath.Join(dir, "sessions"), jsonl.FsyncDecisions)
	if err := sessions.Save(t.Context(), sessiontest.Sample("a")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusesNamesThatAreNotFiles(t *testing.T) {
	root := t.TempDir()
	s := jsonl.Open(filepath.Join(root, "log"), jsonl.Options{})
	sessions := jsonl.OpenSessions(filepath.Join(root, "sessions"), jsonl.FsyncDecisions)
	bad := []string{"", ".", "..", "../x", "a/b", `a\b`, "/etc", ".hidden", "a\x00b", "a b", "ä", strings.Repeat("x", 129), "a\n"}
	for _, id := range bad {
		if _, err := s.Claim(t.Context(), id); err == nil {
			t.Errorf("claimed %q", id)
		}
		var last error
		for _, err := range s.Read(t.Context(), id, 0) {
			last = err
		}
		if last == nil {
			t.Errorf("read %q", id)
		}
		if _, err := sessions.Load(t.Context(), id); err == nil || errors.Is(err, session.ErrNotFound) {
			t.Errorf("load %q: %v", id, err)
		}
		if err := sessions.Save(t.Context(), session.Snapshot{Head: session.Head{ID: id}}); err == nil {
			t.Errorf("saved %q", id)
		}
	}
	if got := names(t, root); got != "" {
		t.Errorf("bad names made %s", got)
	}
	for _, id := range []string{"a", "A.b-c_9", strings.Repeat("x", 128), "20251115-030405-abc", "-"} {
		eventtest.Claim(t, s, id)
	}
}

func TestRefusedClaimNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	since := time.Date(2025, 11, 15, 3, 4, 5, 0, time.UTC)
	o := jsonl.Options{Program: "coder 1", Now: func() time.Time { return since }}
	release := eventtest.Claim(t, jsonl.Open(dir, o), "a")
	_, err := jsonl.Open(dir, o).Claim(t.Context(), "a")
	var claimed *event.ClaimedError
	if !errors.As(err, &claimed) {
		t.Fatalf("%v, want a ClaimedError", err)
	}
	host, _ := os.Hostname()
	want := fmt.Sprintf("process %d (coder 1) on %s since 2025-11-15T03:04:05Z", os.Getpid(), host)
	if claimed.Holder != want {
		t.Errorf("holder is %q, want %q", claimed.Holder, want)
	}
	release()
	eventtest.Claim(t, jsonl.Open(dir, o), "a")
}

// A lock file is only a note: whatever it says, it holds nobody up.
func TestStaleLockFileBlocksNobody(t *testing.T) {
	for _, note := range []string{"", "garbage", `{"pid":1,"host":"elsewhere"}` + strings.Repeat(" ", 9000)} {
		dir := t.TempDir()
		pendingWrite(t, filepath.Join(dir, "a", "lock"), note)
		s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)})
		eventtest.Claim(t, s, "a")
		eventtest.Append(t, s, "a", 0, event.LocalAdded{})
		b, err := os.ReadFile(filepath.Join(dir, "a", "lock"))
		if err != nil || bytes.Count(b, []byte("\n")) != 1 || !bytes.Contains(b, fmt.Appendf(nil, `"pid":%d`, os.Getpid())) {
			t.Errorf("lock file holds %q, %v", b, err)
		}
	}
}

func pendingWrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPlacesThatCannotBeWritten(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string){
		"a file where the store should be":   func(t *testing.T, root string) { pendingWrite(t, filepath.Join(root, "log"), "x") },
		"a file above the store":             func(t *testing.T, root string) { os.Remove(root); pendingWrite(t, root, "x") },
		"a file where the session should be": func(t *testing.T, root string) { pendingWrite(t, filepath.Join(root, "log", "a"), "x") },
		"a link where the session should be": func(t *testing.T, root string) {
			link(t, t.TempDir(), filepath.Join(root, "log", "a"))
		},
		"a link where the lock should be": func(t *testing.T, root string) {
			link(t, filepath.Join(t.TempDir(), "x"), filepath.Join(root, "log", "a", "lock"))
		},
		"a link where a log should be": func(t *testing.T, root string) {
			target := filepath.Join(t.TempDir(), "x")
			pendingWrite(t, target, "precious")
			link(t, target, filepath.Join(root, "log", "a", "events.jsonl"))
		},
		"a directory where a log should be": func(t *testing.T, root string) {
			pendingWrite(t, filepath.Join(root, "log", "a", "audit.jsonl", "x"), "x")
		},
		"a read-only store": func(t *testing.T, root string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write anywhere")
			}
			if err := os.Mkdir(filepath.Join(root, "log"), 0o500); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			spoil(t, root)
			s := jsonl.Open(filepath.Join(root, "log"), jsonl.Options{})
			_, err := s.Claim(t.Context(), "a")
			var path *fs.PathError
			if !errors.As(err, &path) || !strings.HasPrefix(err.Error(), "claim session a: ") {
				t.Errorf("claim: %v, want an error that says where", err)
			}
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// A line may be longer than any buffer, and a reader must not mix it up with
// the ones around it.
func TestLinesOfAnyLength(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
	release := eventtest.Claim(t, s, "a")
	var want []event.Record
	for _, n := range []int{0, 1, 65000, 65400, 65536, 65537, 200_000, 1 << 20, 5} {
		long := strings.Repeat("x", n)
		want = append(want, eventtest.Append(t, s, "a", uint64(len(want)), event.LocalAdded{Input: long}, event.TaskFailed{Reason: long})...)
	}
	eventtest.Expect(t, s, "a", 0, want)
	release()
	eventtest.Expect(t, s, "a", 0, want)
	eventtest.Claim(t, jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)}), "a")
}

// While we hold a session nothing in it may break; if it does all the same,
// the reader is told rather than given half a session.
func TestReadReportsDamageToASessionWeHold(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{})
	eventtest.Claim(t, s, "a")
	want := eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	path := filepath.Join(dir, "a", "events.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndexByte(b[:len(b)-1], '\n')+9] ^= 0x80
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for _, err := range s.Read(context.Background(), "a", 0) {
		if last = err; err == nil {
			n++
		}
	}
	if last == nil || n >= len(want) {
		t.Errorf("read %d records of a broken log, then %v", n, last)
	}
}
