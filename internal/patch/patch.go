// Package patch makes, reads and applies patches. It only computes: files go in
// and come out as bytes, and whoever calls it reads and writes them.
//
// A patch is applied where its lines say and nowhere else: a hunk that does not
// match, or that matches in several places, is an error that says which hunk of
// which file, what it expected and what comes nearest. Lines a patch does not
// change keep every byte they have, line ends and byte order mark included.
package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// devNull is the name of the side on which a file does not exist.
const devNull = "/dev/null"

// Unified is the diff from old to new of the file at path, and how many lines
// it adds and deletes. A nil old or new, unlike an empty one, means that there
// is no file on that side. Equal sides give an empty text. The diff of a file
// that is not text only says that it differs.
func Unified(path string, old, new []byte) (text string, added, deleted int) {
	return unified(sideName("a/", path, old), sideName("b/", path, new), old, new)
}

// Moved is [Unified] for a file that also gets another name.
func Moved(from, to string, old, new []byte) (text string, added, deleted int) {
	body, added, deleted := unified(sideName("a/", from, old), sideName("b/", to, new), old, new)
	return fmt.Sprintf("rename from %s\nrename to %s\n", nameOf(from), nameOf(to)) + body, added, deleted
}

func unified(from, to string, old, new []byte) (text string, added, deleted int) {
	if bytes.Equal(old, new) {
		return "", 0, 0
	}
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to), 0, 0
	}
	head, tail := alike(old, new)
	lines := bytes.Count(old[:head], []byte("\n"))
	body := diff.Diff(from, old[head:len(old)-tail], to, new[head:len(new)-tail])
	_, body, _ = bytes.Cut(body, []byte("\n")) // without the command line
	added, deleted = count(body)
	return renumbered(string(body), lines), added, deleted
}

// contextLines is how many lines a diff shows around a change.
const contextLines = 3

// alike is how many bytes at the beginning and at the end of two files are the
// same and not needed to show how they differ: whole lines, without those that
// give context.
func alike(old, new []byte) (head, tail int) {
	head = sameHead(old, new)
	tail = sameTail(old[head:], new[head:])
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

// block is how many bytes are compared at a time.
const block = 4096

func sameHead(a, b []byte) (n int) {
	short := min(len(a), len(b))
	for n+block <= short && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for n < short && a[n] == b[n] {
		n++
	}
	return n
}

func sameTail(a, b []byte) (n int) {
	short := min(len(a), len(b))
	for n+block <= short && bytes.Equal(a[len(a)-n-block:len(a)-n], b[len(b)-n-block:len(b)-n]) {
		n += block
	}
	for n < short && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// renumbered adds to the line numbers of a diff's hunks.
func renumbered(body string, by int) string {
	if by == 0 {
		return body
	}
	var b strings.Builder
	for line := range strings.Lines(body) {
		var from, old, to, new int
		if strings.HasPrefix(line, "@@") {
			_, _ = fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@\n", &from, &old, &to, &new) // ours, so it fits
			line = fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", from+by, old, to+by, new)
		}
		b.WriteString(line)
	}
	return b.String()
}

func sideName(prefix, path string, side []byte) string {
	if side == nil {
		return devNull
	}
	return nameOf(prefix + path)
}

// nameOf is a name as it stands in a diff: quoted if it would be misread.
func nameOf(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// count counts the lines that a diff adds and deletes. Its first two lines are
// names.
func count(body []byte) (added, deleted int) {
	n := 0
	for line := range bytes.Lines(body) {
		if n++; n <= 2 {
			continue
		}
		switch line[0] {
		case '+':
			added++
		case '-':
			deleted++
		}
	}
	return added, deleted
}

// Bounds of a diff that goes to a model.
const (
	MaxLines = 80
	MaxChars = 8000
)

// Cut shortens text to at most so many lines and characters, between lines if
// it can, and reports whether it had to.
func Cut(text string, lines, chars int) (string, bool) {
	end := lineEnd(text, lines)
	if limit := charEnd(text, chars); limit < end {
		end = limit
		if nl := strings.LastIndexByte(text[:end], '\n'); nl >= 0 {
			end = nl + 1
		}
	}
	return text[:end], end < len(text)
}

// lineEnd is where the first n lines of text end.
func lineEnd(text string, n int) (end int) {
	for range n {
		nl := strings.IndexByte(text[end:], '\n')
		if nl < 0 {
			return len(text)
		}
		end += nl + 1
	}
	return end
}

// charEnd is where the first n characters of text end.
func charEnd(text string, n int) (end int) {
	for ; n > 0 && end < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return end
}
