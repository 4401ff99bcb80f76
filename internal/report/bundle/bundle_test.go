package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/report/bundle"
)

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func sample() bundle.Bundle {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := bundle.Bundle{
		Manifest: bundle.Manifest{Session: "s", Root: "/home/ada/shop", Home: "/home/ada", Created: at},
		Contents: map[string][]byte{hash("one\n"): []byte("one\n"), hash(""): {}},
		Output:   map[string][]byte{"bash-0001.log": []byte("$ ls\n")},
	}
	for i, e := range []event.Event{
		event.TaskCreated{TaskID: "t", Intent: "look at /home/ada/shop/a.go"},
		event.MessageAdded{Message: chat.TextMessage(chat.User, "look at /home/ada/shop/a.go, not at /home/ada/shopping or /home/adam, and .coder/runs/s/bash-0001.log")},
		event.ToolCallRequested{CallID: "c", Input: json.RawMessage(`{"command":"cd \/home\/ada\/shop && ls /home/ada/shop"}`)},
		event.ToolCallCompleted{CallID: "c", Output: json.RawMessage(`{"stdout":"/home/ada/x\n"}`), Changes: []event.FileChange{{After: event.FileState{Path: "a.go", Hash: hash("one\n")}}}},
		event.Unknown{Log: event.LogConversation, Type: "FromTheFuture", Version: 9, Payload: json.RawMessage(`{"x":1}`)},
	} {
		b.Records = append(b.Records, event.Record{Seq: uint64(i + 1), Time: at, Session: "s", Task: "t", Actor: "main", Event: e, Seal: "of another machine"})
	}
	return b
}

func packed(t testing.TB, b bundle.Bundle) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := bundle.Write(&w, b); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func TestABundleIsReadAsItWasWritten(t *testing.T) {
	b := sample()
	got, err := bundle.Read(bytes.NewReader(packed(t, b)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Records {
		b.Records[i].Seal = "" // seals stay where they hold
	}
	b.Format, b.Version, b.Manifest.Records = bundle.Format, bundle.Version, 5
	if !reflect.DeepEqual(got, b) {
		t.Errorf("got  %+v\nwant %+v", got, b)
	}
	if again := packed(t, got); !bytes.Equal(again, packed(t, b)) {
		t.Error("the same session gave another file")
	}
}

func TestPathsAreRewritten(t *testing.T) {
	got := sample().Relocate(bundle.Location{Session: "s2", Root: "/srv/work", Home: "/home/eva"})
	text := got.Records[1].Event.(event.MessageAdded).Message.Text()
	if text != "look at /srv/work/a.go, not at /home/eva/shopping or /home/adam, and .coder/runs/s2/bash-0001.log" {
		t.Error(text)
	}
	if in := string(got.Records[2].Event.(event.ToolCallRequested).Input); !strings.Contains(in, `"cd /srv/work && ls /srv/work"`) {
		t.Error(in)
	}
	done := got.Records[3].Event.(event.ToolCallCompleted)
	if string(done.Output) != `{"stdout":"/home/eva/x\n"}` || done.Changes[0].After.Path != "a.go" {
		t.Errorf("%+v", done)
	}
	for _, r := range got.Records {
		if r.Session != "s2" {
			t.Errorf("record %d is of session %s", r.Seq, r.Session)
		}
	}
	if same := sample().Relocate(bundle.Location{Session: "s", Root: "/home/ada/shop", Home: "/home/ada"}); !reflect.DeepEqual(same.Records, sample().Records) {
		t.Error("at the same place it is another")
	}
}

// entry is one of an archive that somebody else made.
type entry struct {
	name string
	data string
	kind byte
}

// forged is an archive of what b holds, after change.
func forged(t *testing.T, change func([]entry) []entry) []byte {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(packed(t, sample())))
	if err != nil {
		t.Fatal(err)
	}
	var all []entry
	for r := tar.NewReader(unpacked); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		data, _ := io.ReadAll(r)
		all = append(all, entry{head.Name, string(data), head.Typeflag})
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, e := range change(all) {
		head := tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o600}
		if e.kind == tar.TypeReg {
			head.Size = int64(len(e.data))
		} else {
			head.Linkname = e.data
		}
		if err := w.WriteHeader(&head); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			_, _ = io.WriteString(w, e.data)
		}
	}
	_, _ = w.Close(), zip.Close()
	return out.Bytes()
}

// summed puts the sums of what is there in place of those that were.
func summed(all []entry) []entry {
	sums := make(map[string]string)
	for _, e := range all[:len(all)-1] {
		sums[e.name] = hash(e.data)
	}
	text, _ := json.Marshal(sums)
	all[len(all)-1].data = string(text)
	return all
}

func edit(name string, change func(string) string) func([]entry) []entry {
	return func(all []entry) []entry {
		for i := range all {
			if all[i].name == name {
				all[i].data = change(all[i].data)
			}
		}
		return summed(all)
	}
}

func with(more entry) func([]entry) []entry {
	return func(all []entry) []entry {
		return summed(append([]entry{more}, all...))
	}
}

func TestBundlesThatAreDamagedOrHostileAreRefused(t *testing.T) {
	whole := packed(t, sample())
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"nothing":            nil,
		"text":               []byte("hello"),
		"cut":                whole[:len(whole)*2/3],
		"a flipped bit":      flipped,
		"an empty archive":   forged(t, func([]entry) []entry { return nil }),
		"a path up":          forged(t, with(entry{"../../etc/passwd", "x", tar.TypeReg})),
		"a path up below":    forged(t, with(entry{"output/../../x", "x", tar.TypeReg})),
		"an absolute path":   forged(t, with(entry{"/etc/passwd", "x", tar.TypeReg})),
		"a hidden file":      forged(t, with(entry{"output/.bashrc", "x", tar.TypeReg})),
		"another name":       forged(t, with(entry{"run.sh", "x", tar.TypeReg})),
		"a link":             forged(t, with(entry{"output/x", "/etc/passwd", tar.TypeSymlink})),
		"a hard link":        forged(t, with(entry{"output/x", "/etc/passwd", tar.TypeLink})),
		"a device":           forged(t, with(entry{"output/x", "", tar.TypeChar})),
		"a folder":           forged(t, with(entry{"output/", "", tar.TypeDir})),
		"twice":              forged(t, with(entry{"events.jsonl", "", tar.TypeReg})),
		"no sums":            forged(t, func(all []entry) []entry { return all[:len(all)-1] }),
		"other sums":         forged(t, func(all []entry) []entry { all[1].data += "\n"; return all }),
		"a lost log":         forged(t, func(all []entry) []entry { return append(all[:1], all[2:]...) }),
		"a lost record":      forged(t, edit("events.jsonl", func(string) string { return "" })),
		"a forged hash":      forged(t, edit("contents/"+hash("one\n"), func(string) string { return "two\n" })),
		"another's record":   forged(t, edit("events.jsonl", func(s string) string { return strings.ReplaceAll(s, `"sessionId":"s"`, `"sessionId":"q"`) })),
		"in the wrong log":   forged(t, edit("audit.jsonl", func(s string) string { return strings.ReplaceAll(s, "ToolCallRequested", "TaskCreated") })),
		"no records":         forged(t, edit("audit.jsonl", func(string) string { return "no record\n" })),
		"a later version":    forged(t, edit("manifest.json", func(s string) string { return strings.ReplaceAll(s, `"version":1`, `"version":2`) })),
		"another format":     forged(t, edit("manifest.json", func(s string) string { return strings.ReplaceAll(s, "coder bundle", "zoo") })),
		"an altered record":  forged(t, edit("audit.jsonl", func(s string) string { return strings.ReplaceAll(s, "&& ls", "&& rm") })),
		"an altered message": forged(t, edit("conversation.jsonl", func(s string) string { return strings.ReplaceAll(s, "look at", "delete") })),
		"an altered result":  forged(t, edit("audit.jsonl", func(s string) string { return strings.ReplaceAll(s, `/home/ada/x`, `/home/ada/y`) })),
		"a check taken away": forged(t, edit("audit.jsonl", func(s string) string { return s[:strings.LastIndex(s, `,"sum":"`)] + "}\n" })),
		"records in turn": forged(t, edit("conversation.jsonl", func(s string) string {
			first, second, _ := strings.Cut(s, "\n")
			return strings.TrimSuffix(second, "\n") + "\n" + first + "\n"
		})),
		"a hole in the order": forged(t, edit("conversation.jsonl", func(s string) string { return strings.ReplaceAll(s, `"seq":5`, `"seq":6`) })),
	} {
		_, err := bundle.Read(bytes.NewReader(data))
		var refused *bundle.Error
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 250 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What says that it is large is refused before it is read.
func TestABundleThatGrowsWithoutEndIsRefused(t *testing.T) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	if err := w.WriteHeader(&tar.Header{Name: "output/x", Typeflag: tar.TypeReg, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	_ = zip.Close()
	if _, err := bundle.Read(&out); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(packed(f, sample()))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := bundle.Read(bytes.NewReader(data))
		if err == nil && len(b.Records) == 0 {
			t.Error("a bundle of nothing")
		}
	})
}
