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

// MaxFileSize is the maximum size of a followed file.
const MaxFileSize = 8 << 20

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
	isRestore     bool // an undo or a redo
	input, output json.RawMessage
}

// Origin is where a line comes from. The zero Origin means that
// the line existed before any session changed the file.
type Origin struct {
	// Change is the call that wrote the line; for a line from outside, the last call before.
	Change *Change
	// External means that a user or another program wrote it.
	External bool
	// FoundAt is when the next call after By found the line; zero if none did.
	FoundAt time.Time
	// Candidate is a call without a recorded end that may have written the line.
	Candidate *Change
	// Uncertain means that somebody else may have written it, shortly before
	// or after the call: the file's content then was not saved.
	Uncertain bool
	// OtherWriters means that another program may have written the line
	// while By ran or, if it is [event.DoubtOther], that it did.
	OtherWriters event.Doubt
}

// FromCall reports whether a call wrote the line, as far as is known.
func (o Origin) FromCall() bool { return o.Change != nil && !o.External }

// Line is a line of a file.
type Line struct {
	Text string // including its line end
	Origin
}

// ContentReader reads saved file contents.
type ContentReader interface {
	// Content returns a file's content, if it was saved and is no longer than limit.
	Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error)
	// Expand lists the changes that were recorded as one.
	Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error)
}

// CollectChanges collects the calls of a session that changed files. Records of irrelevant calls may be
// missing, as may requests if only the end of a call matters.
func CollectChanges(records iter.Seq2[event.Record, error]) (list []*Change, err error) {
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
			c.isRestore = e.Author == event.ActorUser && (e.Tool == "undo" || e.Tool == "redo")
			list = append(list, c)
		}
	}
	return list, nil
}

// SortByTime sorts the changes of several sessions by time.
func SortByTime(all []*Change) {
	slices.SortStableFunc(all, func(a, b *Change) int { return a.Time.Compare(b.Time) })
}

// Trace finds the origins of a file's current lines: of all, or of one line, counted from 1. all are
// the changes of every session, in order of time. Trace goes back change by change until every line is
// accounted for. gone, which may be nil, reports whether a file no longer exists, so that it may be
// this file under an earlier name. others reads the changes of another file from which a call moved
// lines into this one. names are the file's earlier names, the latest first. A binary file is one line.
func Trace(ctx context.Context, name string, now []byte, line int, all []*Change, kept ContentReader,
	gone func(name string) bool, others func(name string) []*Change) (lines []Line, names []string, err error) {
	texts := splitLines(now)
	t := tracer{
		ctx: ctx, saved: kept, current: now, name: name, hash: hashText(now), currentHash: hashText(now), text: texts,
		lines: make([]Line, len(texts)), isGone: gone, findChanges: others, changesByName: make(map[string][]*Change),
		changeByCall: make(map[callKey]*Change),
	}
	for i, text := range texts {
		t.lines[i].Text = text
		if line == 0 || i == line-1 {
			t.unattributed = append(t.unattributed, linePosition{i, i})
		}
	}
	for _, c := range all {
		t.changeByCall[callKey{c.Session, c.Done}] = c
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
	for at := len(all) - 1; at >= 0 && len(t.unattributed) > 0; at-- {
		c := all[at]
		c.Expand(t.ctx, t.saved)
		if t.isGone != nil && !slices.ContainsFunc(all[:at+1], func(c *Change) bool { return c.changesFile(t.name) }) {
			t.followRename(all[:at+1])
		}
		if i := slices.IndexFunc(c.Files, func(f event.FileChange) bool { return f.After.Path == t.name }); i >= 0 &&
			!producedContent(all[:at], c.Files[i]) {
			t.goToAfter(c, c.Files[i])
			if next, ok := t.skipRestore(all[:at], c); ok {
				at = next
			} else {
				t.goToBefore(c, c.Files[i])
			}
			t.foundAt = c.Time
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
	}
	for _, p := range t.unattributed {
		if t.lines[p.line].Origin = t.gapOrigin; t.gapOrigin == (Origin{}) {
			t.lines[p.line].FoundAt = t.foundAt
		}
	}
	return nil
}

// producedContent reports whether a call left the content that a command attributed to another program.
func producedContent(before []*Change, f event.FileChange) bool {
	return f.Doubt == event.DoubtOther && slices.ContainsFunc(before, func(c *Change) bool {
		return slices.ContainsFunc(c.Files, func(g event.FileChange) bool {
			return g.Doubt != event.DoubtOther &&
				g.After == f.After
		})
	})
}

// changesFile reports whether a call changed the file with that name.
func (c *Change) changesFile(name string) bool {
	return slices.ContainsFunc(c.Files, func(f event.FileChange) bool {
		return f.After.Path == name ||
			f.Before.Path == name
	})
}

// FileFilter returns a function that reports whether a record's
// line may be about a call that changed one of these files.
func FileFilter(names []string) func(line []byte) bool {
	// The searched text begins with a letter: a quote precedes every other word.
	var marks [][]byte
	for _, name := range names {
		marks = append(marks, fmt.Appendf(nil, `path":%s`, jsonx.MustMarshal(event.RecordedName(name))))
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

// sourceFiles returns the files that disappeared in the call that created f, as candidates for its earlier name.
func (c *Change) sourceFiles(f event.FileChange) (list []event.FileChange) {
	if f.Before.Hash != "" || f.Before.ContentLost || f.After.Hash == "" {
		return nil
	}
	for _, g := range c.Files {
		if g.After.Hash != "" || g.After.ContentLost || !hasContent(g.Before) ||
			path.Ext(g.Before.Path) != path.Ext(f.After.Path) {
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

// hasContent reports whether a file with content exists.
func hasContent(s event.FileState) bool {
	return s.Hash != "" && s.Hash != "dir" && s.Hash != "link" && !s.ContentLost
}

// tracer follows a file back through changes.
type tracer struct {
	ctx         context.Context
	saved       ContentReader
	current     []byte // the file's content
	currentHash string
	lines       []Line // its lines with their origins

	// The file at the current point in time, and which of its lines have no known author yet.
	name, hash   string
	names        []string // its earlier names
	text         []string
	unattributed []linePosition
	gapOrigin    Origin // origin of what is new since the last known content
	foundAt      time.Time

	isGone        func(name string) bool
	findChanges   func(name string) []*Change
	changesByName map[string][]*Change // results of others
	changeByCall  map[callKey]*Change  // one Change for each call, whichever file it was read for
}

// callKey identifies the end of a call.
type callKey struct {
	session string
	endSeq  uint64
}

// setName continues with the file under an earlier name.
func (t *tracer) setName(name string) {
	t.name, t.names = name, append(t.names, name)
}

// linePosition is the earlier position of a line of the file.
type linePosition struct{ line, earlierLine int }

// Expand lists the files of a change one by one, if they were recorded as one and their states were saved.
func (c *Change) Expand(ctx context.Context, kept ContentReader) {
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

// goToAfter goes back to the file as a call left it. Differences since then are somebody else's.
func (t *tracer) goToAfter(c *Change, f event.FileChange) {
	if t.hash == f.After.Hash && t.gapOrigin == (Origin{}) {
		return
	}
	text, err := t.contentAfter(c, f)
	if err != nil {
		t.gapOrigin = Origin{Change: c, Uncertain: true}
		t.hash = ""
		return
	}
	t.setContent(text, f.After.Hash, Origin{Change: c, External: true, FoundAt: t.foundAt})
}

// goToBefore goes back to the file as a call found it. Differences since then are the call's.
func (t *tracer) goToBefore(c *Change, f event.FileChange) {
	origin := Origin{Change: c, OtherWriters: f.Doubt, External: f.Doubt == event.DoubtOther}
	if origin.External {
		origin.FoundAt = c.Time
	}
	for _, from := range c.sourceFiles(f) {
		if text, err := t.readContent(from.Before); err == nil && (from.Before.Hash == f.After.Hash || t.isSimilar(text)) {
			t.setName(from.Before.Path)
			t.followMovedLines(c, t.setContent(text, from.Before.Hash, origin))
			return
		}
	}
	text, err := t.readContent(f.Before)
	if err != nil {
		if t.gapOrigin == (Origin{}) {
			t.gapOrigin = origin
			t.gapOrigin.Uncertain = true
		}
		t.hash = ""
		return
	}
	t.followMovedLines(c, t.setContent(text, f.Before.Hash, origin))
}

// setContent makes an earlier content the current one. Lines that it lacks get the origin from, unless
// there is doubt. It returns the positions of the lines with a certain origin.
func (t *tracer) setContent(text []byte, hash string, from Origin) (later *laterVersion) {
	sure := t.gapOrigin == (Origin{})
	if t.gapOrigin != (Origin{}) {
		from, t.gapOrigin = t.gapOrigin, Origin{}
	}
	earlier := splitLines(text)
	match := matchLines(earlier, t.text)
	followMoves(earlier, t.text, findUnmatched(len(earlier), match), match)
	later = &laterVersion{text: t.text, match: match}
	left := t.unattributed[:0]
	for _, p := range t.unattributed {
		if at := match[p.earlierLine]; at >= 0 {
			left = append(left, linePosition{p.line, at})
		} else {
			t.lines[p.line].Origin = from
			if sure {
				later.newLines = append(later.newLines, p)
			}
		}
	}
	t.unattributed, t.text, t.hash = left, earlier, hash
	return later
}

// matchLines returns the earlier position of each line, or -1: of the same line, or else of one that
// differs only in surrounding white space.
func matchLines(earlier, now []string) []int {
	match := patch.MatchLines(earlier, now)
	if !slices.Contains(match, -1) {
		return match
	}
	taken := make(map[int]bool, len(match))
	for _, at := range match {
		taken[at] = true
	}
	for i, at := range patch.MatchLines(trimLines(earlier), trimLines(now)) {
		if match[i] < 0 && at >= 0 && !taken[at] && strings.ContainsFunc(now[i],
			func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			match[i] = at
		}
	}
	return match
}

func trimLines(lines []string) []string {
	list := make([]string, len(lines))
	for i, l := range lines {
		list[i] = strings.TrimSpace(l)
	}
	return list
}

// skipRestore returns where to continue if a call only restored an earlier content: at the change that
// left it, or before the one that found it.
func (t *tracer) skipRestore(before []*Change, c *Change) (next int, ok bool) {
	if !c.isRestore || t.hash == "" {
		return 0, false
	}
	for at, earlier := range slices.Backward(before) {
		earlier.Expand(t.ctx, t.saved)
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

// IsBinary reports whether a file is not text.
func IsBinary(text []byte) bool { return slices.Contains(text, 0) }

// splitLines splits text into lines; a binary file is one line.
func splitLines(text []byte) []string {
	if IsBinary(text) {
		return []string{string(text)}
	}
	return slices.Collect(strings.Lines(string(text)))
}

// readContent returns a file's content: as saved, or the current one if it is the same.
func (t *tracer) readContent(s event.FileState) ([]byte, error) {
	switch {
	case !s.ContentLost && (s.Hash == "" || !hasContent(s)):
		return nil, nil
	case s.Hash == t.currentHash:
		return t.current, nil
	}
	return t.saved.Content(t.ctx, s, MaxFileSize)
}

// ContentAfter returns the content that a call left in a file, or nil if there is none.
func (c *Change) ContentAfter(ctx context.Context, f event.FileChange, kept ContentReader) ([]byte, error) {
	t := tracer{ctx: ctx, saved: kept}
	return t.contentAfter(c, f)
}

// contentAfter returns the content that a call left in a file: as saved, or computed from the call's
// arguments and result if that has the recorded hash.
func (t *tracer) contentAfter(c *Change, f event.FileChange) ([]byte, error) {
	text, err := t.readContent(f.After)
	if err == nil {
		return text, nil
	}
	var in struct{ Content *string }
	if json.Unmarshal(c.input, &in) == nil && in.Content != nil && hashText([]byte(*in.Content)) == f.After.Hash {
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
		if !hasContent(g.Before) || !slices.Contains(p.Names(), g.Before.Path) {
			continue
		}
		if text, err := t.readContent(g.Before); err == nil {
			files[g.Before.Path] = text
		}
	}
	made, wrong := p.Apply(files)
	if wrong != nil || len(made) == 0 || hashText(made[0].New) != f.After.Hash {
		return nil, err
	}
	return made[0].New, nil
}

func hashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
