// Package provenance finds which call of which session a line of a file comes from. It replays the
// file's changes in the audit logs, from content to content, and follows lines by their text, not by
// their position: a line keeps its origin through later edits around it, through undo and redo, when it
// is moved, and when the file is renamed, by a call or a user.
//
// A change by a user or another program shows where a call found something else than the call before it
// had left. The package executes and trusts nothing in the records: they are only displayed.
package provenance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/patch"
)

// MaxFile is the maximum size of a followed file.
const MaxFile = 8 << 20

// Change is a call that changed files.
type Change struct {
	Place   string // where its session is stored, if elsewhere
	Session string
	Seq     uint64 // of its request; zero if that was not read
	Done    uint64 // of its end
	Time    time.Time
	Tool    string
	Files   []event.FileChange

	callID        string
	restores      bool // an undo or a redo
	input, output json.RawMessage
}

// Origin is where a line comes from. The zero Origin means that
// the line existed before any session changed the file.
type Origin struct {
	// By is the call that wrote the line; for a line from outside, the last call before.
	By *Change
	// Outside means that a user or another program wrote it.
	Outside bool
	// Until is when the next call after By found the line; zero if none did.
	Until time.Time
	// Perhaps is a call without a recorded end that may have written the line.
	Perhaps *Change
	// Unsure means that somebody else may have written it, shortly before
	// or after the call: the file's content then was not saved.
	Unsure bool
	// Others means that another program may have written the line
	// while By ran or, if it is [event.DoubtOther], that it did.
	Others event.Doubt
}

// BySession reports whether a call wrote the line, as far as is known.
func (o Origin) BySession() bool { return o.By != nil && !o.Outside }

// Line is a line of a file.
type Line struct {
	Text string // including its line end
	Origin
}

// Contents reads saved file contents.
type Contents interface {
	// Content returns a file's content, if it was saved and is no longer than limit.
	Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error)
	// Expand lists the changes that were recorded as one.
	Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error)
}

// Changes collects the calls of a session that changed files. Records of irrelevant calls may be
// missing, as may requests if only the end of a call matters.
func Changes(records iter.Seq2[event.Record, error]) (list []*Change, err error) {
	open := make(map[string]*Change)
	for r, err := range records {
		if err != nil {
			return list, err
		}
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			open[e.CallID] = &Change{Seq: r.Seq, input: e.Input}
		case event.ToolCallCompleted:
			c := open[e.CallID]
			delete(open, e.CallID)
			if len(e.Changes) == 0 {
				continue
			}
			if c == nil {
				c = new(Change)
			}
			c.Session, c.Tool, c.callID = r.Session, e.Tool, e.CallID
			c.Done, c.Time, c.Files, c.output = r.Seq, r.Time, e.Changes, e.Output
			c.restores = e.Author == event.ActorUser && (e.Tool == "undo" || e.Tool == "redo")
			list = append(list, c)
		}
	}
	return list, nil
}

// Sort sorts the changes of several sessions by time.
func Sort(all []*Change) {
	slices.SortStableFunc(all, func(a, b *Change) int { return a.Time.Compare(b.Time) })
}

// Trace finds the origins of a file's current lines: of all, or of one line, counted from 1. all are
// the changes of every session, in order of time. Trace goes back change by change until every line is
// accounted for. gone, which may be nil, reports whether a file no longer exists, so that it may be
// this file under an earlier name. others reads the changes of another file from which a call moved
// lines into this one. names are the file's earlier names, the latest first. A binary file is one line.
func Trace(ctx context.Context, name string, now []byte, line int, all []*Change, kept Contents, gone func(name string) bool, others func(name string) []*Change) (lines []Line, names []string, err error) {
	texts := linesOf(now)
	t := tracer{
		ctx: ctx, kept: kept, now: now, name: name, hash: hashOf(now), nowHash: hashOf(now), text: texts,
		lines: make([]Line, len(texts)), gone: gone, others: others, read: make(map[string][]*Change), calls: make(map[call]*Change),
	}
	for i, text := range texts {
		t.lines[i].Text = text
		if line == 0 || i == line-1 {
			t.open = append(t.open, place{i, i})
		}
	}
	for _, c := range all {
		t.calls[call{c.Session, c.Done}] = c
		if gone != nil {
			c.Expand(ctx, kept)
		}
	}
	if err := t.follow(all); err != nil {
		return nil, nil, err
	}
	return t.lines, t.names, nil
}

// follow goes back through changes until every line is accounted for.
func (t *tracer) follow(all []*Change) error {
	for at := len(all) - 1; at >= 0 && len(t.open) > 0; at-- {
		c := all[at]
		c.Expand(t.ctx, t.kept)
		if t.gone != nil && !slices.ContainsFunc(all[:at+1], func(c *Change) bool { return c.touches(t.name) }) {
			t.rename(all[:at+1])
		}
		if i := slices.IndexFunc(c.Files, func(f event.FileChange) bool { return f.After.Path == t.name }); i >= 0 && !made(all[:at], c.Files[i]) {
			t.find(c, c.Files[i])
			if next, ok := t.restored(all[:at], c); ok {
				at = next
			} else {
				t.leave(c, c.Files[i])
			}
			t.until = c.Time
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
	}
	for _, p := range t.open {
		if t.lines[p.line].Origin = t.doubt; t.doubt == (Origin{}) {
			t.lines[p.line].Until = t.until
		}
	}
	return nil
}

// made reports whether a call left the content that a command attributed to another program.
func made(before []*Change, f event.FileChange) bool {
	return f.Doubt == event.DoubtOther && slices.ContainsFunc(before, func(c *Change) bool {
		return slices.ContainsFunc(c.Files, func(g event.FileChange) bool { return g.Doubt != event.DoubtOther && g.After == f.After })
	})
}

// touches reports whether a call changed the file with that name.
func (c *Change) touches(name string) bool {
	return slices.ContainsFunc(c.Files, func(f event.FileChange) bool { return f.After.Path == name || f.Before.Path == name })
}

// Touches returns a function that reports whether a record's
// line may be about a call that changed one of these files.
func Touches(names []string) func(line []byte) bool {
	// The searched text begins with a letter: a quote precedes every other word.
	var marks [][]byte
	for _, name := range names {
		marks = append(marks, fmt.Appendf(nil, `path":%s`, jsonx.Must(event.RecordedName(name))))
	}
	marks = append(marks, []byte(`hash":"tree:`))
	request, whole := []byte(`"type":"ToolCallRequested"`), []byte(`"content":`)
	return func(line []byte) bool {
		if bytes.Contains(line[:min(len(line), 64)], request) && !bytes.Contains(line, whole) {
			return false
		}
		return slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(line, m) })
	}
}

// maxSources limits how many files are examined as sources of a new one.
const maxSources = 8

// sources returns the files that disappeared in the call that created f, as candidates for its earlier name.
func (c *Change) sources(f event.FileChange) (list []event.FileChange) {
	if f.Before.Hash != "" || f.Before.Lost || f.After.Hash == "" {
		return nil
	}
	for _, g := range c.Files {
		if g.After.Hash != "" || g.After.Lost || !holds(g.Before) || path.Ext(g.Before.Path) != path.Ext(f.After.Path) {
			continue
		}
		if g.Before.Hash == f.After.Hash {
			return []event.FileChange{g}
		}
		if len(list) < maxSources {
			list = append(list, g)
		}
	}
	return list
}

// holds reports whether a file with content exists.
func holds(s event.FileState) bool {
	return s.Hash != "" && s.Hash != "dir" && s.Hash != "link" && !s.Lost
}

// tracer follows a file back through changes.
type tracer struct {
	ctx     context.Context
	kept    Contents
	now     []byte // the file's content
	nowHash string
	lines   []Line // its lines with their origins

	// The file at the current point in time, and which of its lines have no known author yet.
	name, hash string
	names      []string // its earlier names
	text       []string
	open       []place
	doubt      Origin // origin of what is new since the last known content
	until      time.Time

	gone   func(name string) bool
	others func(name string) []*Change
	read   map[string][]*Change // results of others
	calls  map[call]*Change     // one Change for each call, whichever file it was read for
}

// call identifies the end of a call.
type call struct {
	session string
	done    uint64
}

// called continues with the file under an earlier name.
func (t *tracer) called(name string) {
	t.name, t.names = name, append(t.names, name)
}

// place is the earlier position of a line of the file.
type place struct{ line, at int }

// Expand lists the files of a change one by one, if they were recorded as one and their states were saved.
func (c *Change) Expand(ctx context.Context, kept Contents) {
	for i, f := range c.Files {
		if !strings.HasPrefix(f.Before.Hash, "tree:") {
			continue
		}
		if list, err := kept.Expand(ctx, f); err == nil { // else its changes are attributed to others
			c.Files = slices.Concat(c.Files[:i], list, c.Files[i+1:])
		}
		return
	}
}

// find goes back to the file as a call left it. Differences since then are somebody else's.
func (t *tracer) find(c *Change, f event.FileChange) {
	if t.hash == f.After.Hash && t.doubt == (Origin{}) {
		return
	}
	text, err := t.outcome(c, f)
	if err != nil {
		t.doubt = Origin{By: c, Unsure: true}
		t.hash = ""
		return
	}
	t.goBack(text, f.After.Hash, Origin{By: c, Outside: true, Until: t.until})
}

// leave goes back to the file as a call found it. Differences since then are the call's.
func (t *tracer) leave(c *Change, f event.FileChange) {
	origin := Origin{By: c, Others: f.Doubt, Outside: f.Doubt == event.DoubtOther}
	if origin.Outside {
		origin.Until = c.Time
	}
	for _, from := range c.sources(f) {
		if text, err := t.content(from.Before); err == nil && (from.Before.Hash == f.After.Hash || t.resembles(text)) {
			t.called(from.Before.Path)
			t.taken(c, t.goBack(text, from.Before.Hash, origin))
			return
		}
	}
	text, err := t.content(f.Before)
	if err != nil {
		if t.doubt == (Origin{}) {
			t.doubt = origin
			t.doubt.Unsure = true
		}
		t.hash = ""
		return
	}
	t.taken(c, t.goBack(text, f.Before.Hash, origin))
}

// goBack makes an earlier content the current one. Lines that it lacks get the origin from, unless
// there is doubt. It returns the positions of the lines with a certain origin.
func (t *tracer) goBack(text []byte, hash string, from Origin) (later *arrival) {
	sure := t.doubt == (Origin{})
	if t.doubt != (Origin{}) {
		from, t.doubt = t.doubt, Origin{}
	}
	earlier := linesOf(text)
	match := matchIndented(earlier, t.text)
	followMoves(earlier, t.text, vanished(len(earlier), match), match)
	later = &arrival{text: t.text, match: match}
	left := t.open[:0]
	for _, p := range t.open {
		if at := match[p.at]; at >= 0 {
			left = append(left, place{p.line, at})
		} else {
			t.lines[p.line].Origin = from
			if sure {
				later.new = append(later.new, p)
			}
		}
	}
	t.open, t.text, t.hash = left, earlier, hash
	return later
}

// matchIndented returns the earlier position of each line, or -1: of the same line, or else of one that
// differs only in surrounding white space.
func matchIndented(earlier, now []string) []int {
	match := patch.Match(earlier, now)
	if !slices.Contains(match, -1) {
		return match
	}
	taken := make(map[int]bool, len(match))
	for _, at := range match {
		taken[at] = true
	}
	for i, at := range patch.Match(trimmed(earlier), trimmed(now)) {
		if match[i] < 0 && at >= 0 && !taken[at] && strings.ContainsFunc(now[i], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			match[i] = at
		}
	}
	return match
}

func trimmed(lines []string) []string {
	list := make([]string, len(lines))
	for i, l := range lines {
		list[i] = strings.TrimSpace(l)
	}
	return list
}

// restored returns where to continue if a call only restored an earlier content: at the change that
// left it, or before the one that found it.
func (t *tracer) restored(before []*Change, c *Change) (next int, ok bool) {
	if !c.restores || t.hash == "" {
		return 0, false
	}
	for at, earlier := range slices.Backward(before) {
		earlier.Expand(t.ctx, t.kept)
		for _, f := range earlier.Files {
			switch {
			case f.After.Path == t.name && f.After.Hash == t.hash:
				return at + 1, true
			case f.Before.Path == t.name && f.Before.Hash == t.hash:
				return at, true
			}
		}
	}
	return 0, false
}

// Binary reports whether a file is not text.
func Binary(text []byte) bool { return slices.Contains(text, 0) }

// linesOf splits text into lines; a binary file is one line.
func linesOf(text []byte) []string {
	if Binary(text) {
		return []string{string(text)}
	}
	return slices.Collect(strings.Lines(string(text)))
}

// content returns a file's content: as saved, or the current one if it is the same.
func (t *tracer) content(s event.FileState) ([]byte, error) {
	switch {
	case !s.Lost && (s.Hash == "" || !holds(s)):
		return nil, nil
	case s.Hash == t.nowHash:
		return t.now, nil
	}
	return t.kept.Content(t.ctx, s, MaxFile)
}

// Outcome returns the content that a call left in a file, or nil if there is none.
func (c *Change) Outcome(ctx context.Context, f event.FileChange, kept Contents) ([]byte, error) {
	t := tracer{ctx: ctx, kept: kept}
	return t.outcome(c, f)
}

// outcome returns the content that a call left in a file: as saved, or computed from the call's
// arguments and result if that has the recorded hash.
func (t *tracer) outcome(c *Change, f event.FileChange) ([]byte, error) {
	text, err := t.content(f.After)
	if err == nil {
		return text, nil
	}
	var in struct{ Content *string }
	if json.Unmarshal(c.input, &in) == nil && in.Content != nil && hashOf([]byte(*in.Content)) == f.After.Hash {
		return []byte(*in.Content), nil
	}
	var out struct{ Diff string }
	if json.Unmarshal(c.output, &out) != nil || out.Diff == "" {
		return nil, err
	}
	p, wrong := patch.ParseFor(f.After.Path, out.Diff)
	if wrong != nil {
		return nil, err
	}
	p = slices.DeleteFunc(p, func(g patch.File) bool { return g.New != f.After.Path })
	files := make(map[string][]byte)
	for _, g := range c.Files {
		if !holds(g.Before) || !slices.Contains(p.Names(), g.Before.Path) {
			continue
		}
		if text, err := t.content(g.Before); err == nil {
			files[g.Before.Path] = text
		}
	}
	made, wrong := p.Apply(files)
	if wrong != nil || len(made) == 0 || hashOf(made[0].New) != f.After.Hash {
		return nil, err
	}
	return made[0].New, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
