// Package patch makes unified diffs of files, whole or cut to a size that a
// model or a person can take in.
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
	if bytes.Equal(old, new) {
		return "", 0, 0
	}
	from, to := sideName("a/", path, old), sideName("b/", path, new)
	if bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(new, 0) >= 0 {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to), 0, 0
	}
	_, body, _ := bytes.Cut(diff.Diff(from, old, to, new), []byte("\n")) // without the command line
	added, deleted = count(body)
	return string(body), added, deleted
}

func sideName(prefix, path string, side []byte) string {
	if side == nil {
		return devNull
	}
	if name := prefix + path; strconv.Quote(name) != `"`+name+`"` {
		return strconv.Quote(name)
	}
	return prefix + path
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
