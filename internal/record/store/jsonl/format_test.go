package jsonl_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
	"coder/testkit/faultdisk"
)

// Earlier programs open logs as this test does, before they do anything else.
func TestEarlierProgramsRefuseASession(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{})
	release := eventtest.Claim(t, s, "a")
	if _, err := os.OpenFile(filepath.Join(dir, "a", "audit.jsonl"), os.O_RDONLY|disk.NoFollow, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("before the first record: %v", err)
	}
	eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	release()
	if _, err := os.OpenFile(filepath.Join(dir, "a", "audit.jsonl"), os.O_RDONLY|disk.NoFollow, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("after it: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a", "audit.jsonl")); err != nil || len(text) == 0 {
		t.Errorf("people read %q, %v", text, err)
	}
}

// downgrade makes of a session one as earlier programs left it.
func downgrade(t *testing.T, dir string) {
	t.Helper()
	link := filepath.Join(dir, "audit.jsonl")
	if err := errors.Join(os.Remove(link), os.Rename(filepath.Join(dir, "audit.2.jsonl"), link)); err != nil {
		t.Fatal(err)
	}
}

// A claim makes a session of an earlier format one of this, and at whatever operation
// the disk fails the records are all there.
func TestASessionOfAnEarlierFormatIsTakenOver(t *testing.T) {
	for at := 0; at < 12; at++ {
		dir := t.TempDir()
		s := jsonl.Open(dir, jsonl.Options{})
		release := eventtest.Claim(t, s, "a")
		eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
		release()
		downgrade(t, filepath.Join(dir, "a"))
		if n := jsonl.FormatOf(filepath.Join(dir, "a")); n != 1 {
			t.Fatalf("format %d, want 1", n)
		}
		faulty := jsonl.Open(dir, jsonl.Options{Disk: &faultdisk.Disk{At: at, Err: syscall.EIO, Ever: true}})
		if free, err := faulty.Claim(t.Context(), "a"); err == nil {
			_ = free()
		}
		eventtest.Expect(t, s, "a", 0, eventtest.Records("a", 0, eventtest.Samples()...))
		release = eventtest.Claim(t, s, "a")
		eventtest.Expect(t, s, "a", 0, eventtest.Records("a", 0, eventtest.Samples()...))
		if n := jsonl.FormatOf(filepath.Join(dir, "a")); n != jsonl.Format {
			t.Errorf("operation %d failed: format %d after a claim, want %d", at, n, jsonl.Format)
		}
		release()
	}
}

// Without links a session stays in the earlier format, and works.
func TestAFileSystemWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Disk: &faultdisk.Disk{What: "symlink", Err: syscall.EPERM}})
	for range 2 {
		last := uint64(0)
		for r := range s.Read(t.Context(), "a", 0) {
			last = r.Seq
		}
		release := eventtest.Claim(t, s, "a")
		eventtest.Append(t, s, "a", last, eventtest.Samples()...)
		release()
	}
	if n := jsonl.FormatOf(filepath.Join(dir, "a")); n != 1 {
		t.Errorf("format %d, want 1", n)
	}
}

// Lines that an earlier program added, without checks, stay in the session.
func TestWhatAnEarlierProgramAddedIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	var repairs []jsonl.Repair
	s := jsonl.Open(dir, jsonl.Options{OnRepair: func(r jsonl.Repair) { repairs = append(repairs, r) }})
	release := eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 0, event.TaskStarted{TaskID: "t1"}, event.LocalAdded{Input: "one"})
	release()
	unlink(t, filepath.Join(dir, "a"))
	for i, e := range []event.Event{event.TaskStarted{TaskID: "t2"}, event.LocalAdded{Input: "two"}} {
		line, err := event.Encode(eventtest.Records("a", uint64(2+i), e)[0])
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, filepath.Join(dir, "a", event.LogOf(e).String()+".jsonl"), string(line)+"\n")
	}
	release = eventtest.Claim(t, s, "a")
	if len(repairs) != 1 || !slices.Equal(repairs[0].Earlier, []uint64{3, 4}) || repairs[0].MayLackRecords() || len(repairs[0].Moved) > 0 {
		t.Errorf("repairs %+v", repairs)
	}
	eventtest.Append(t, s, "a", 4, event.LocalAdded{Input: "three"})
	release()
	if report, err := s.Verify("a"); err != nil || report.Lines != 5 || report.Unchecked != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	if torn, _ := filepath.Glob(filepath.Join(dir, "a", "torn-*")); len(torn) > 0 {
		t.Errorf("set aside: %v", torn)
	}
}

func unlink(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "audit.jsonl")); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestANewerFormatIsNotClaimed(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Version: func() string { return "5.0" }})
	release := eventtest.Claim(t, s, "a")
	eventtest.Append(t, s, "a", 0, eventtest.Samples()...)
	release()
	at := filepath.Join(dir, "a")
	if err := errors.Join(os.Remove(filepath.Join(at, "audit.jsonl")), os.Rename(filepath.Join(at, "audit.2.jsonl"), filepath.Join(at, "audit.9.jsonl")), os.Symlink("audit.9.jsonl", filepath.Join(at, "audit.jsonl"))); err != nil {
		t.Fatal(err)
	}
	_, err := s.Claim(t.Context(), "a")
	var newer *event.NewerFormatError
	if !errors.As(err, &newer) || newer.Format != 9 || newer.Writer != "5.0" || !strings.Contains(err.Error(), "continue it with coder 5.0") {
		t.Errorf("%v", err)
	}
	if err := jsonl.RemoveLogs(at); !errors.As(err, &newer) {
		t.Errorf("removed: %v", err)
	}
	eventtest.Expect(t, s, "a", 0, eventtest.Records("a", 0, eventtest.Samples()...))
}
