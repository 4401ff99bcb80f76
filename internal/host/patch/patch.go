// Package patch creates, parses and applies patches. It only computes: files are passed as bytes, and
// callers do the reading and writing.
//
// A patch applies only where its lines match: a hunk that does not match, or matches in several places,
// is an error that names the hunk and file, the expected lines and the nearest ones. Unchanged lines
// keep every byte, including line ends and the byte order mark.
package patch

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	devNull      = "/dev/null" // name for a side without a file
	contextLines = 3           // context lines around a change
	compareBlock = 4096        // bytes compared at a time
)

// Unified returns the diff from old to new of the file at path, and how many lines it adds and deletes.
// A nil old or new, unlike an empty one, means that the file does not exist on that side. Equal sides
// give an empty text. The diff of a binary file only says that it differs.
func Unified(path string, old, new []byte) (text string, added, deleted int) {
	return Change{Path: path, Old: old, New: new}.Diff(ModeUnspecified)
}

// Diff is [Unified] for a change that may also rename the file, or change its mode unless that is
// ModeUnspecified.
func (c Change) Diff(mode Mode) (text string, added, deleted int) {
	from := cmp.Or(c.From, c.Path)
	body, added, deleted := unified(sideName("a/", from, c.Old), sideName("b/", c.Path, c.New), c.Old, c.New)
	// Changes beyond lines need a git header before the diff.
	bits := map[Mode]string{ModeUnspecified: "100644", Plain: "100644", Executable: "100755"}
	switch {
	case c.Old == nil && c.New == nil:
	case c.Old == nil && (mode == Executable || len(c.New) == 0):
		text = "new file mode " + bits[mode] + "\n"
	case c.New == nil && len(c.Old) == 0:
		text = "deleted file mode " + bits[Plain] + "\n"
	case c.Old == nil || c.New == nil:
	case mode == Executable:
		text = "old mode " + bits[Plain] + "\nnew mode " + bits[Executable] + "\n"
	case mode == Plain:
		text = "old mode " + bits[Executable] + "\nnew mode " + bits[Plain] + "\n"
	}
	if from != c.Path {
		text += fmt.Sprintf("rename from %s\nrename to %s\n", quoteName(from), quoteName(c.Path))
	}
	if text != "" {
		text = fmt.Sprintf("diff --git %s %s\n", quoteName("a/"+from), quoteName("b/"+c.Path)) + text
	}
	return text + body, added, deleted
}

func unified(from, to string, old, new []byte) (text string, added, deleted int) {
	if bytes.Equal(old, new) {
		return "", 0, 0
	}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to), 0, 0
	}
	w, all := diffHunks(old, new)
	fmt.Fprintf(&w.out, "--- %s\n+++ %s\n", from, to)
	for _, near := range all {
		w.writeHunk(near)
	}
	return w.out.String(), w.added, w.deleted
}

// diffHunks returns the edits from old to new, grouped by hunk.
func diffHunks(old, new []byte) (w diffWriter, all [][]edit) {
	head, tail := commonEnds(old, new)
	w = diffWriter{old: splitLines(old[head : len(old)-tail]), new: splitLines(new[head : len(new)-tail]),
		skippedLines: bytes.Count(old[:head], []byte("\n"))}
	list := diffLines(w.old, w.new)
	// Equal lines around the edits are also needed: an edit may have moved to the edge, and with too little
	// context git would assume the edge of the file.
	w.skippedBytes = head
	for n := contextLines; n > 0 && w.skippedBytes > 0; n-- {
		w.skippedBytes = bytes.LastIndexByte(old[:w.skippedBytes-1], '\n') + 1
	}
	before, after := splitLines(old[w.skippedBytes:head]), []string(nil)
	for line := range bytes.Lines(old[len(old)-tail:]) {
		if len(after) == contextLines {
			break
		}
		after = append(after, string(line))
	}
	w.old, w.new = slices.Concat(before, w.old, after), slices.Concat(before, w.new, after)
	w.skippedLines -= len(before)
	for i, e := range list {
		n := len(before)
		list[i] = edit{e.a + n, e.aEnd + n, e.b + n, e.bEnd + n}
	}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].a-list[n-1].aEnd <= 2*contextLines {
			n++
		}
		all = append(all, list[:n])
		list = list[n:]
	}
	return w, all
}

// ChangedBytes returns the size of what differs between old and new, with a few lines around it: that of the
// longer side.
func ChangedBytes(old, new []byte) int {
	head, tail := commonEnds(old, new)
	return max(len(old), len(new)) - head - tail
}

// CountHunks returns the number of hunks in the diff from old to new.
func CountHunks(old, new []byte) int {
	if old == nil || new == nil || bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
		return 1
	}
	if bytes.Equal(old, new) {
		return 0
	}
	_, all := diffHunks(old, new)
	return len(all)
}

// ApplyHunks applies to old only the hunks for which take returns true, counted from 1. Neither side is nil.
func ApplyHunks(old, new []byte, take func(hunk int) bool) []byte {
	w, all := diffHunks(old, new)
	out := slices.Clone(old[:w.skippedBytes])
	at, end := 0, w.skippedBytes
	put := func(lines []string) {
		for _, l := range lines {
			out = append(out, l...)
		}
	}
	for i, near := range all {
		for _, e := range near {
			put(w.old[at:e.a])
			if take(i + 1) {
				put(w.new[e.b:e.bEnd])
			} else {
				put(w.old[e.a:e.aEnd])
			}
			at = e.aEnd
		}
	}
	put(w.old[at:])
	for _, l := range w.old {
		end += len(l)
	}
	return append(out, old[end:]...)
}

// diffLines returns the edits from old to new, in order.
func diffLines(old, new []string) []edit {
	return editsWith(max(minPatience, min(maxPatience, maxWork/(len(old)+len(new)+1))), old, new)
}

// MatchLines returns, for every line of new, the index of the same line in old, or -1 if it is new.
func MatchLines(old, new []string) []int {
	from := make([]int, 0, len(new))
	at := 0 // index in old
	for at < len(old) && at < len(new) && old[at] == new[at] {
		from = append(from, at)
		at++
	}
	head, tail := at, 0
	for tail < min(len(old), len(new))-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	list := diffLines(old[head:len(old)-tail], new[head:len(new)-tail])
	for i, e := range list {
		list[i] = edit{e.a + head, e.aEnd + head, e.b + head, e.bEnd + head}
	}
	for _, e := range append(list, edit{len(old), len(old), len(new), len(new)}) {
		for ; len(from) < e.b; at++ {
			from = append(from, at)
		}
		for range e.bEnd - e.b {
			from = append(from, -1)
		}
		at = e.aEnd
	}
	return from
}

func splitLines(b []byte) []string { return slices.Collect(strings.Lines(string(b))) }

type diffWriter struct {
	old, new                   []string
	skippedBytes, skippedLines int // bytes and lines before the compared part
	out                        strings.Builder
	added, deleted             int
}

// writeHunk writes nearby edits with their context.
func (w *diffWriter) writeHunk(list []edit) {
	first, last := list[0], list[len(list)-1]
	before, after := min(contextLines, first.a), min(contextLines, len(w.old)-last.aEnd)
	fmt.Fprintf(&w.out, "@@ -%s +%s @@\n",
		w.formatRange(first.a-before, last.aEnd+after), w.formatRange(first.b-before, last.bEnd+after))
	at := first.a - before
	for _, e := range list {
		w.writeLines(' ', w.old[at:e.a])
		w.writeLines('-', w.old[e.a:e.aEnd])
		w.writeLines('+', w.new[e.b:e.bEnd])
		w.deleted, w.added = w.deleted+e.aEnd-e.a, w.added+e.bEnd-e.b
		at = e.aEnd
	}
	w.writeLines(' ', w.old[at:last.aEnd+after])
}

// formatRange formats a range of lines for a hunk header: the first line, from one, and their number. An empty
// range names the line before.
func (w *diffWriter) formatRange(from, to int) string {
	n := to - from
	if n > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", w.skippedLines+from, n)
}

func (w *diffWriter) writeLines(op byte, lines []string) {
	for _, l := range lines {
		w.out.WriteByte(op)
		w.out.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			w.out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// commonEnds returns how many bytes at the start and the end of two files are equal and not needed in a diff:
// whole lines, except for context.
func commonEnds(old, new []byte) (head, tail int) {
	short := min(len(old), len(new))
	for head+compareBlock <= short && bytes.Equal(old[head:head+compareBlock], new[head:head+compareBlock]) {
		head += compareBlock
	}
	for head < short && old[head] == new[head] {
		head++
	}
	a, b := old[head:], new[head:]
	short -= head
	for tail+compareBlock <= short && bytes.Equal(a[len(a)-tail-compareBlock:len(a)-tail],
		b[len(b)-tail-compareBlock:len(b)-tail]) {
		tail += compareBlock
	}
	for tail < short && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	head = bytes.LastIndexByte(old[:head], '\n') + 1
	for range contextLines {
		head = bytes.LastIndexByte(old[:max(head-1, 0)], '\n') + 1
	}
	end := len(old) - tail
	for range contextLines + 1 {
		i := bytes.IndexByte(old[end:], '\n')
		if i < 0 {
			return head, 0
		}
		end += i + 1
	}
	return head, len(old) - end
}

func sideName(prefix, path string, side []byte) string {
	if side == nil {
		return devNull
	}
	return quoteName(prefix + path)
}

// quoteName returns a name as written in a diff: quoted like git where it would be misread.
func quoteName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f || c >= utf8.RuneSelf && !utf8.ValidString(name):
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(name) && strings.TrimSpace(name) == name {
		return name
	}
	return `"` + b.String() + `"`
}

// Limits of a diff for a model.
const (
	MaxLines = 80
	MaxChars = 8000
)

// Truncate limits text to a number of lines and characters, between lines if possible, and reports whether it
// cut.
func Truncate(text string, lines, chars int) (string, bool) {
	end, limit := 0, 0
	for ; lines > 0 && end < len(text); lines-- {
		if nl := strings.IndexByte(text[end:], '\n'); nl >= 0 {
			end += nl + 1
		} else {
			end = len(text)
		}
	}
	for ; chars > 0 && limit < len(text); chars-- {
		_, size := utf8.DecodeRuneInString(text[limit:])
		limit += size
	}
	if limit < end {
		end = limit
		if nl := strings.LastIndexByte(text[:end], '\n'); nl >= 0 {
			end = nl + 1
		}
	}
	return text[:end], end < len(text)
}
