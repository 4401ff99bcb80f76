package supervisor_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/agent/conversation"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/authkey"
	"coder/internal/record/store/jsonl"
	"coder/testkit/faultdisk"
)

// logFiles reads the three logs of session "s".
func (w *desktop) logFiles() map[event.Log][]byte {
	w.t.Helper()
	all := make(map[event.Log][]byte)
	for _, l := range event.AllLogs {
		text, err := os.ReadFile(w.logFile(l))
		if err != nil {
			w.t.Fatal(err)
		}
		all[l] = text
	}
	return all
}

func (w *desktop) logFile(l event.Log) string {
	return filepath.Join(w.dir, "log", "s", l.String()+".jsonl")
}

// backup is a session as it was when all was well.
type backup struct {
	*desktop
	files string // where everything is once more
	logs  map[event.Log][]byte
}

func newBackup(t *testing.T) backup {
	t.Helper()
	w := &desktop{world: world{t: t, secret: authkey.NewTemporary()}, dir: filepath.Join(t.TempDir(), "w")}
	w.on(&faultdisk.Disk{NoSync: true}, diskScript, false).play()
	b := backup{w, filepath.Join(t.TempDir(), "w"), w.logFiles()}
	if err := os.CopyFS(b.files, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	return b
}

// with lays the session down anew, in its place, with some of its logs replaced
// and without some of its folders.
func (b backup) with(logs map[event.Log][]byte, without ...string) *desktop {
	t := b.t
	t.Helper()
	d := &desktop{world: world{t: t, secret: b.secret}, dir: b.dir}
	if err := errors.Join(os.RemoveAll(d.dir), os.CopyFS(d.dir, os.DirFS(b.files))); err != nil {
		t.Fatal(err)
	}
	for l, text := range logs {
		if err := os.WriteFile(d.logFile(l), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range without {
		if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// opens resumes a damaged session and holds what is left of it against what is
// promised. It reports whether the damage was noticed.
func (w *desktop) opens() (noticed bool) {
	t := w.t
	var repairs []jsonl.Repair
	p := w.on(&faultdisk.Disk{NoSync: true}, "say went on\nrepeat\n", false)
	inner := p.IsDamaged
	p.IsDamaged = func(id string, last uint64) bool { noticed = inner(id, last); return noticed }
	p.told = func(r jsonl.Repair) { repairs = append(repairs, r) }
	s, err := p.ResumeSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatalf("it cannot be opened: %v", err)
	}
	if _, err := s.Continue(t.Context(), event.Discard); err != nil && !errors.Is(err, supervisor.ErrFinished) {
		t.Fatalf("continue: %v", err)
	}
	if answer, err := s.RunText(t.Context(), "and now", event.Discard); err != nil || answer.Text != "went on" {
		t.Fatalf("run: %+v, %v", answer, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.wrote) > 0 {
		t.Fatalf("%v was done again", w.wrote)
	}
	w.canBeSent()
	for _, r := range repairs {
		if !strings.HasPrefix(r.File, w.dir) {
			t.Fatalf("%+v does not say where", r)
		}
	}
	if _, err := jsonl.Open(filepath.Join(w.dir, "log"), jsonl.Options{Heads: &jsonl.Heads{Dir: filepath.Join(w.dir, "heads"), Key: w.key}}).Verify("s"); err != nil {
		t.Fatalf("it does not verify after it was mended: %v", err)
	}
	return noticed || len(repairs) > 0
}

// canBeSent holds the conversation against what providers accept.
func (w *desktop) canBeSent() {
	var talk conversation.Conversation
	for _, r := range w.kept() {
		talk.Add(r)
	}
	open := map[string]bool{}
	for i, m := range talk.Messages() {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if !open[r.CallID] {
				w.t.Fatalf("message %d answers %q, which was not asked", i, r.CallID)
			}
			delete(open, r.CallID)
		}
		if m.Role != chat.Tool && len(open) > 0 {
			w.t.Fatalf("message %d comes before the results of %v", i, open)
		}
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
	}
}

// holds reports whether words are anywhere in the session's files.
func (w *desktop) holds(words string) (found bool) {
	_ = filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			found = found || bytes.Contains(text, []byte(words))
		}
		return nil
	})
	return found
}

func lines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// TestDamagedSessionsOpenAndSaySo damages the logs of a session in every way that
// files get damaged. Each is noticed, nothing is done again, no words are lost,
// and what is left opens, goes on and verifies.
func TestDamagedSessionsOpenAndSaySo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	b := newBackup(t)
	try := func(what string, l event.Log, text []byte) {
		t.Helper()
		if bytes.Equal(text, b.logs[l]) {
			return
		}
		spoiled := map[event.Log][]byte{l: text}
		if d := b.with(spoiled); !d.opens() {
			t.Fatalf("%s log, %s: not noticed", l, what)
		} else if !d.holds("I will") || !d.holds("all done") {
			t.Fatalf("%s log, %s: words were lost", l, what)
		}
		if bytes.HasPrefix(text, lines(b.logs[event.LogDomain])[0]) || l != event.LogDomain { // of one without its first record nothing is left
			b.with(spoiled, "heads", "sessions").opens()
		}
	}
	for _, l := range event.AllLogs {
		ls := lines(b.logs[l])
		for i := range ls {
			try("a line missing", l, bytes.Join(slices.Delete(slices.Clone(ls), i, i+1), nil))
			try("a line twice", l, bytes.Join(slices.Insert(slices.Clone(ls), i, ls[i]), nil))
			try("cut at the end of a line", l, bytes.Join(ls[:i], nil))
			try("cut in a line", l, slices.Concat(bytes.Join(ls[:i], nil), ls[i][:len(ls[i])/2]))
			if i > 0 {
				swapped := slices.Clone(ls)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				try("lines swapped", l, bytes.Join(swapped, nil))
			}
		}
		try("CRLF", l, bytes.ReplaceAll(b.logs[l], []byte("\n"), []byte("\r\n")))
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		l := event.AllLogs[chance.IntN(len(event.AllLogs))]
		text := bytes.Clone(b.logs[l])
		text[chance.IntN(len(text))] ^= 1 << chance.IntN(8)
		try("a bit flipped", l, text)
	}
}

// TestAllLogsCutAtTheEndOfARecord leaves nothing in the logs that is wrong, and
// yet what was cut off is known: from the head, or else from the session file,
// which is not lost.
func TestAllLogsCutAtTheEndOfARecord(t *testing.T) {
	b := newBackup(t)
	for last := range uint64(len(b.kept())) {
		if last == 0 {
			continue
		}
		cut := make(map[event.Log][]byte)
		for l, text := range b.logs {
			cut[l] = bytes.Join(slices.DeleteFunc(lines(text), func(line []byte) bool {
				seq, _ := event.PeekSeq(bytes.TrimSpace(line))
				return seq > last
			}), nil)
		}
		for _, without := range []string{"none", "heads", "sessions"} {
			d := b.with(cut, without)
			if !d.opens() {
				t.Fatalf("cut after record %d, without %s: not noticed", last, without)
			}
			if without != "sessions" && !d.holds("all done") {
				t.Fatalf("cut after record %d, without %s: the better session file is lost", last, without)
			}
		}
	}
}
