package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/record/session"
)

// longer is a session of so many turns.
func longer(turns int) session.Snapshot {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := session.Snapshot{Head: session.Head{ID: "a", Created: at, Updated: at.Add(time.Duration(turns) * time.Minute), Meta: session.Meta{Title: "long", Turns: turns}}, Model: "m", LastSeq: uint64(7 * turns)}
	s.Tools = []json.RawMessage{json.RawMessage(`{"type":"function"}`)}
	for i := range turns {
		for _, role := range []string{"user", "assistant"} {
			s.Notes = append(s.Notes, session.Note{Index: len(s.Messages), Time: at.Add(time.Duration(i) * time.Minute), Task: fmt.Sprint("task", i)})
			s.Messages = append(s.Messages, json.RawMessage(fmt.Sprintf(`{"role":%q,"content":"turn %d: %s"}`, role, i, strings.Repeat("word ", 10))))
		}
		if i%10 == 0 {
			s.Local = append(s.Local, session.Local{Before: len(s.Messages), Time: at, Local: true, Input: "/status", Output: "fine"})
		}
	}
	return s
}

// loaded reads a session with another store, as another process would.
func loaded(t *testing.T, dir string) session.Snapshot {
	t.Helper()
	got, err := OpenSessions(dir, FsyncNever).Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func saveAll(t *testing.T, ss *Sessions, from, to, step int) {
	t.Helper()
	whole := longer(to)
	for n := from; n <= to; n += step {
		s := whole
		s.Head = longer(0).Head
		s.Updated, s.Meta.Turns, s.LastSeq = s.Updated.Add(time.Duration(n)*time.Minute), n, uint64(7*n)
		s.Messages, s.Notes, s.Local = whole.Messages[:2*n], whole.Notes[:2*n], whole.Local[:(n+9)/10]
		if err := ss.Save(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// written is how many bytes this process has written so far.
func written(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("the system does not count what is written")
	}
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", new(int64), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALongSessionIsWrittenAsItGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	dir := t.TempDir()
	ss := OpenSessions(dir, FsyncNever)
	const turns = longTurns
	before := written(t)
	saveAll(t, ss, 1, turns, 1)
	total := written(t) - before
	info, err := os.Stat(ss.path("a"))
	if err != nil || total > 20*info.Size() {
		t.Errorf("%d bytes written for a file of %v, %v", total, info.Size(), err)
	}
	t.Logf("%d turns: %.1f times the file is written", turns, float64(total)/float64(info.Size()))
	if got, want := loaded(t, dir), longer(turns); !reflect.DeepEqual(got, want) {
		t.Error("it is not what was saved")
	}
	for h, err := range OpenSessions(dir, FsyncNever).List(t.Context()) {
		if err != nil || h.Meta.Turns != turns {
			t.Errorf("listed as %+v, %v", h, err)
		}
	}
}

// What is not simply longer than before is written anew.
func TestALongSessionThatChangesIsWrittenWhole(t *testing.T) {
	for name, change := range map[string]func(*session.Snapshot){
		"shorter":        func(s *session.Snapshot) { s.Messages, s.Notes = s.Messages[:50], s.Notes[:50] },
		"another begin":  func(s *session.Snapshot) { s.Messages[0] = json.RawMessage(`{"role":"system"}`) },
		"another tool":   func(s *session.Snapshot) { s.Tools = append(s.Tools, json.RawMessage(`{}`)) },
		"another note":   func(s *session.Snapshot) { s.Notes[3].Interrupted = true },
		"another local":  func(s *session.Snapshot) { s.Local[0].Output = "" },
		"a long title":   func(s *session.Snapshot) { s.Meta.Title = strings.Repeat("t", 1000) },
		"another model":  func(s *session.Snapshot) { s.Model = "n" },
		"many notes":     func(s *session.Snapshot) { s.Notes = append(s.Notes, longer(900).Notes...) },
		"nothing at all": func(*session.Snapshot) {},
	} {
		dir := t.TempDir()
		ss := OpenSessions(dir, FsyncNever)
		saveAll(t, ss, 400, 500, 50)
		want := longer(501)
		change(&want)
		if err := ss.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got := loaded(t, dir); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: it is not what was saved", name)
		}
	}
}

// Whoever is killed between two writes leaves a file that is known as torn, and
// that the next one replaces.
func TestATornSessionIsNoticed(t *testing.T) {
	for n := range 4 {
		dir := t.TempDir()
		ss := OpenSessions(dir, FsyncNever)
		saveAll(t, ss, 500, 500, 1)
		c, err := encodeSnapshot(longer(511), nil)
		if err != nil {
			t.Fatal(err)
		}
		writes, _, ok := ss.lastLayout.extend(c)
		if !ok || len(writes) != 4 {
			t.Fatalf("%d writes, %v", len(writes), ok)
		}
		f, err := os.OpenFile(ss.path("a"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes[:n] {
			if _, err := f.WriteAt(w.text, w.offset); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		other := OpenSessions(dir, FsyncNever)
		_, err = other.Load(t.Context(), "a")
		if torn := other.IsTorn("a"); torn != (n > 0) || torn != (err != nil) || torn && !errors.Is(err, ErrTorn) {
			t.Errorf("after %d writes: torn %v, %v", n, torn, err)
		}
		saveAll(t, ss, 512, 512, 1)
		if got := loaded(t, dir); !reflect.DeepEqual(got, longer(512)) {
			t.Errorf("after %d writes it cannot be replaced", n)
		}
	}
}

func TestASessionSomebodyElseWroteIsReplaced(t *testing.T) {
	dir := t.TempDir()
	ss := OpenSessions(dir, FsyncNever)
	saveAll(t, ss, 500, 501, 1)
	saveAll(t, OpenSessions(dir, FsyncNever), 300, 300, 1)
	saveAll(t, ss, 502, 502, 1)
	if got := loaded(t, dir); !reflect.DeepEqual(got, longer(502)) {
		t.Error("it is a mixture")
	}
}
