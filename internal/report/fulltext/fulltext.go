// Package fulltext searches sessions by words: those in prompts and answers, commands, paths and patches.
//
// A session is read once and saved as a [Document], line by line and limited in
// size, with the stamp of its logs. The document is a copy that can be rebuilt
// at any time: a damaged one, or one of another version, is ignored.
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

// MaxText limits how much of a session is saved. A line is saved in pieces, each with the end of the
// one before, so that no word is cut in two. Only the beginning of a very long line is saved.
const (
	MaxText      = 4 << 20
	maxLine      = 16 << 10
	maxChunk     = 400
	chunkOverlap = 100
)

// formatVersion is the version of the document format.
const formatVersion = 6

// Kind is the kind of a line.
type Kind string

// The kinds of lines.
const (
	Prompt  Kind = "prompt"
	Answer  Kind = "answer"
	Command Kind = "command"
	Output  Kind = "output" // of a command of the user's own
	Path    Kind = "path"
	Patch   Kind = "patch"
)

// Head describes a document.
type Head struct {
	Stamp   string    `json:"stamp"` // of its logs
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Damage  string    `json:"damage,omitempty"` // what could not be read, and why
}

// Document is a session prepared for searching.
type Document struct {
	Head
	folded []byte // all lines in lower case, for searching
	lines  []byte // the original lines, each after its record and kind
}

// Hit is a matching line of a document.
type Hit struct {
	Record uint64 `json:"record"`
	Kind   Kind   `json:"kind"`
	Line   string `json:"line"`
}

// Result is a matching session.
type Result struct {
	Project string `json:"project"`
	Session string `json:"session_id"`
	Head
	Hit
}

// Build builds a document from the readable records of a session.
func Build(stamp string, records iter.Seq2[event.Record, error]) Document {
	b := builder{Document: Document{Head: Head{Stamp: stamp}}, paths: make(map[string]bool)}
	for r, err := range records {
		if err != nil {
			break
		}
		b.addRecord(r)
	}
	return b.Document
}

type builder struct {
	Document
	paths map[string]bool // the named paths
	calls []chat.ToolCall // of the last reply with calls
}

func (b *builder) addRecord(r event.Record) {
	b.Updated = r.Time
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if b.Title == "" && e.ParentID == "" {
			b.Title = e.Title
		}
	case event.MessageAdded:
		switch {
		case e.Message.Role == chat.User && r.Actor == event.ActorUser:
			b.addLines(r.Seq, Prompt, e.Message.Text())
		case e.Message.Role == chat.Assistant && e.Blocks != nil:
			b.addLines(r.Seq, Output, e.Message.Text())
		case e.Message.Role == chat.Assistant:
			b.addLines(r.Seq, Answer, e.Message.Text())
		}
		if calls := e.Message.Calls(); len(calls) > 0 {
			b.calls = calls
		}
	case event.InteractionRequested: // the call may wait for long, or never run
		for _, c := range b.calls {
			if e.CallID() == c.ID || slices.ContainsFunc(e.Parts, func(part uip.Request) bool { return part.CallID() == c.ID }) {
				b.addCall(r.Seq, c.Args)
			}
		}
	case event.ToolCallRequested:
		b.addCall(r.Seq, e.Input)
	case event.ToolCallCompleted:
		for _, c := range e.Changes {
			b.addPath(r.Seq, c.After.Path)
		}
		var out struct{ Diff string }
		if json.Unmarshal(e.Output, &out) == nil {
			for sign, line := range display.DiffLines(out.Diff) {
				if sign == '+' || sign == '-' {
					b.addLines(r.Seq, Patch, line)
				}
			}
		}
	}
}

// addCall adds the arguments of a call.
func (b *builder) addCall(seq uint64, args json.RawMessage) {
	var in struct{ Command, Path string }
	_ = json.Unmarshal(args, &in) // mismatching arguments have neither
	b.addLines(seq, Command, in.Command)
	b.addPath(seq, in.Path)
}

func (b *builder) addPath(seq uint64, name string) {
	if name != "" && name != "." && !b.paths[name] {
		b.paths[name] = true
		b.addLines(seq, Path, name)
	}
}

// addLines adds the lines of text.
func (b *builder) addLines(seq uint64, kind Kind, text string) {
	for line := range strings.Lines(text) {
		rest := strings.Join(strings.Fields(strings.ToValidUTF8(line[:min(len(line), maxLine)], "\uFFFD")), " ")
		for rest != "" && len(b.lines) <= MaxText {
			piece := rest
			if len(rest) > maxChunk {
				piece, rest = strings.ToValidUTF8(rest[:maxChunk], "")+"…", strings.ToValidUTF8(rest[maxChunk-chunkOverlap:], "")
			} else {
				rest = ""
			}
			b.lines = fmt.Appendf(b.lines, "%d %s %s\n", seq, kind, piece)
			b.folded = append(append(b.folded, strings.ToLower(piece)...), '\n')
		}
	}
}

// SplitQuery splits a search line into words; text in quotes is one word.
func SplitQuery(line string) (words []string) {
	parts := strings.Split(quoteReplacer.Replace(line), `"`)
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 { // the last quote is closed
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return strings.TrimSpace(w) == "" })
}

// quoteReplacer maps typographic quotes to plain ones.
var quoteReplacer = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "「", `"`, "」", `"`)

// Find searches for words. The session, including its title, must contain
// all of them; the hit is the last of the lines with the most words.
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

// diskHeader is the first line of a document on disk; the two texts follow.
type diskHeader struct {
	Version int `json:"v"`
	Head
	FoldedSize int    `json:"folded"`
	LinesSize  int    `json:"lines"`
	Checksum   uint32 `json:"sum"` // of both
}

// Encode encodes a document.
func (d Document) Encode() []byte {
	texts := slices.Concat(d.folded, d.lines)
	head := jsonx.MustMarshal(diskHeader{formatVersion, d.Head, len(d.folded), len(d.lines), crc32.ChecksumIEEE(texts)})
	return slices.Concat(head, []byte("\n"), texts)
}

// Decode decodes the result of Encode, and returns false for damaged text.
func Decode(text []byte) (d Document, ok bool) {
	first, texts, ok := bytes.Cut(text, []byte("\n"))
	var k diskHeader
	if !ok || json.Unmarshal(first, &k) != nil || k.Version != formatVersion || k.FoldedSize < 0 || k.FoldedSize+
		k.LinesSize != len(texts) || crc32.ChecksumIEEE(texts) != k.Checksum {
		return Document{}, false
	}
	return Document{Head: k.Head, folded: texts[:k.FoldedSize], lines: texts[k.FoldedSize:]}, true
}

// Highlight puts marks around words in a line, in any case.
func Highlight(line string, words []string, begin, end string) string {
	folded := strings.ToLower(line)
	if len(folded) != len(line) { // letters whose length changes
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
