// Package fulltext finds sessions by words: those of prompts and answers, of
// commands, paths and patches.
//
// A session is read once and kept as a [Document], line by line, bounded, which
// says by a stamp of the logs what it was made of. It is a copy that can be made
// anew at any time: one that is damaged or of another version is none.
package fulltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
)

// MaxText is how much of a session is kept. A line is kept as pieces, each with the
// end of the one before it, so that no word is cut in two; of a very long one, such
// as no person reads, its beginning.
const (
	MaxText  = 4 << 20
	maxLine  = 16 << 10
	maxPiece = 400
	overlap  = 100
)

// version is that of the form of documents.
const version = 6

// Kind is what a line is of.
type Kind string

// The kinds of lines.
const (
	Prompt  Kind = "prompt"
	Answer  Kind = "answer"
	Command Kind = "command"
	Output  Kind = "output" // of a command of the person's own
	Path    Kind = "path"
	Patch   Kind = "patch"
)

// Head says what a document is of.
type Head struct {
	Stamp   string    `json:"stamp"` // of the logs it was made of
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Damage  string    `json:"damage,omitempty"` // what of it could not be read, and why
}

// Document is a session as words are looked for in it.
type Document struct {
	Head
	folded []byte // all lines in small letters, to look in
	lines  []byte // the same as they are, each behind its record and its kind
}

// Hit is the line of a document that words were found in.
type Hit struct {
	Record uint64 `json:"record"`
	Kind   Kind   `json:"kind"`
	Line   string `json:"line"`
}

// Found is a session in which words were found.
type Found struct {
	Project string `json:"project"`
	Session string `json:"session_id"`
	Head
	Hit
}

// Build makes a document of the records of a session, as far as they can be
// read.
func Build(stamp string, records iter.Seq2[event.Record, error]) Document {
	b := builder{Document: Document{Head: Head{Stamp: stamp}}, paths: make(map[string]bool)}
	for r, err := range records {
		if err != nil {
			break
		}
		b.add(r)
	}
	return b.Document
}

type builder struct {
	Document
	paths map[string]bool // that were named
	calls []chat.ToolCall // of the last reply that made some
}

func (b *builder) add(r event.Record) {
	b.Updated = r.Time
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if b.Title == "" && e.ParentID == "" {
			b.Title = e.Title
		}
	case event.MessageAdded:
		switch {
		case e.Message.Role == chat.User && r.Actor == event.ActorUser:
			b.put(r.Seq, Prompt, e.Message.Text())
		case e.Message.Role == chat.Assistant && e.Blocks != nil:
			b.put(r.Seq, Output, e.Message.Text())
		case e.Message.Role == chat.Assistant:
			b.put(r.Seq, Answer, e.Message.Text())
		}
		if calls := e.Message.Calls(); len(calls) > 0 {
			b.calls = calls
		}
	case event.InteractionRequested: // it may wait for long, or never run
		for _, c := range b.calls {
			if e.CallID() == c.ID || slices.ContainsFunc(e.Parts, func(part uip.Request) bool { return part.CallID() == c.ID }) {
				b.call(r.Seq, c.Args)
			}
		}
	case event.ToolCallRequested:
		b.call(r.Seq, e.Input)
	case event.ToolCallCompleted:
		for _, c := range e.Changes {
			b.path(r.Seq, c.After.Path)
		}
		var out struct{ Diff string }
		if json.Unmarshal(e.Output, &out) == nil {
			for sign, line := range display.DiffLines(out.Diff) {
				if sign == '+' || sign == '-' {
					b.put(r.Seq, Patch, line)
				}
			}
		}
	}
}

// call takes in the arguments of a call.
func (b *builder) call(seq uint64, args json.RawMessage) {
	var in struct{ Command, Path string }
	_ = json.Unmarshal(args, &in) // what does not fit has neither
	b.put(seq, Command, in.Command)
	b.path(seq, in.Path)
}

func (b *builder) path(seq uint64, name string) {
	if name != "" && name != "." && !b.paths[name] {
		b.paths[name] = true
		b.put(seq, Path, name)
	}
}

// put adds the lines of text.
func (b *builder) put(seq uint64, kind Kind, text string) {
	for line := range strings.Lines(text) {
		rest := strings.Join(strings.Fields(strings.ToValidUTF8(line[:min(len(line), maxLine)], "\uFFFD")), " ")
		for rest != "" && len(b.lines) <= MaxText {
			piece := rest
			if len(rest) > maxPiece {
				piece, rest = strings.ToValidUTF8(rest[:maxPiece], "")+"…", strings.ToValidUTF8(rest[maxPiece-overlap:], "")
			} else {
				rest = ""
			}
			b.lines = fmt.Appendf(b.lines, "%d %s %s\n", seq, kind, piece)
			b.folded = append(append(b.folded, strings.ToLower(piece)...), '\n')
		}
	}
}

// Words are what is looked for by a line: its words, and what stands between
// quotes as it is.
func Words(line string) (words []string) {
	parts := strings.Split(quotes.Replace(line), `"`)
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 { // the last quote has an end
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return strings.TrimSpace(w) == "" })
}

// quotes are those that people's keyboards and editors write for one another.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "「", `"`, "」", `"`)

// Find looks for words. All of them have to be in the session, its title
// included, somewhere; the line is the last of those that have most of them.
func (d Document) Find(words []string) (Hit, bool) {
	title := []byte(strings.ToLower(d.Title))
	folded := make([][]byte, len(words))
	for i, w := range words {
		folded[i] = []byte(strings.ToLower(w))
		if !bytes.Contains(d.folded, folded[i]) && !bytes.Contains(title, folded[i]) {
			return Hit{}, false
		}
	}
	most, best, n := 0, -1, 0
	for line := range bytes.Lines(d.folded) {
		has := 0
		for _, w := range folded {
			if bytes.Contains(line, w) {
				has++
			}
		}
		if has > 0 && has >= most {
			most, best = has, n
		}
		n++
	}
	n = 0
	for line := range bytes.Lines(d.lines) {
		if n == best {
			seq, rest, _ := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
			kind, text, _ := strings.Cut(rest, " ")
			record, _ := strconv.ParseUint(seq, 10, 64)
			return Hit{record, Kind(kind), text}, true
		}
		n++
	}
	return Hit{}, true
}

// kept is the first line of a document on disk; the two texts follow.
type kept struct {
	Version int `json:"v"`
	Head
	Folded int    `json:"folded"`
	Lines  int    `json:"lines"`
	Sum    uint32 `json:"sum"` // of both
}

// Encode writes a document.
func (d Document) Encode() []byte {
	texts := slices.Concat(d.folded, d.lines)
	head := jsonx.Must(kept{version, d.Head, len(d.folded), len(d.lines), crc32.ChecksumIEEE(texts)})
	return slices.Concat(head, []byte("\n"), texts)
}

// Decode reads what Encode wrote. What is damaged is no document.
func Decode(text []byte) (d Document, ok bool) {
	first, texts, ok := bytes.Cut(text, []byte("\n"))
	var k kept
	if !ok || json.Unmarshal(first, &k) != nil || k.Version != version || k.Folded < 0 || k.Folded+k.Lines != len(texts) || crc32.ChecksumIEEE(texts) != k.Sum {
		return Document{}, false
	}
	return Document{Head: k.Head, folded: texts[:k.Folded], lines: texts[k.Folded:]}, true
}

// Mark puts marks around words in a line, however these are written.
func Mark(line string, words []string, begin, end string) string {
	folded := strings.ToLower(line)
	if len(folded) != len(line) { // letters that change their length
		return line
	}
	marked := make([]bool, len(line))
	for _, w := range words {
		w = strings.ToLower(w)
		for at := 0; w != ""; {
			i := strings.Index(folded[at:], w)
			if i < 0 {
				break
			}
			for j := at + i; j < at+i+len(w); j++ {
				marked[j] = true
			}
			at += i + len(w)
		}
	}
	var b strings.Builder
	for i := range len(line) {
		if marked[i] && (i == 0 || !marked[i-1]) {
			b.WriteString(begin)
		}
		b.WriteByte(line[i])
		if marked[i] && (i+1 == len(line) || !marked[i+1]) {
			b.WriteString(end)
		}
	}
	return b.String()
}
