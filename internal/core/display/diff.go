package display

import (
	"iter"
	"strconv"
	"strings"

	"coder/internal/core/lazy"
)

// NewDiff returns a unified diff with its numbers of added and deleted lines.
func NewDiff(unified string) Diff {
	d := Diff{Unified: unified}
	for sign := range DiffLines(unified) {
		switch sign {
		case '+':
			d.Added++
		case '-':
			d.Deleted++
		}
	}
	return d
}

var hunkHeaderPattern = lazy.Regexp(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ *`)

// HunkHead returns the first line numbers of a hunk before and after the change, and the text behind them in its header.
func HunkHead(line string) (before, after int, rest string, ok bool) {
	m := hunkHeaderPattern().FindStringSubmatch(line)
	if m == nil {
		return 0, 0, "", false
	}
	return parseHunkLen(m[1]), parseHunkLen(m[3]), line[len(m[0]):], true
}

// DiffLines yields the lines of a unified diff: added lines with '+', deleted ones with '-', context
// with ' ', and headers with 0. It relies on the lengths in the hunk headers, since a deleted line may
// look like a file name.
func DiffLines(unified string) iter.Seq2[byte, string] {
	return func(yield func(byte, string) bool) {
		before, after := 0, 0 // lines left in the hunk
		for line := range strings.Lines(unified) {
			var sign byte
			switch {
			case before <= 0 && after <= 0:
				if m := hunkHeaderPattern().FindStringSubmatch(line); m != nil {
					before, after = parseHunkLen(m[2]), parseHunkLen(m[4])
				}
			case line[0] == '+':
				sign, after = '+', after-1
			case line[0] == '-':
				sign, before = '-', before-1
			case line[0] != '\\':
				sign, before, after = ' ', before-1, after-1
			}
			if !yield(sign, line) {
				return
			}
		}
	}
}

// Hunk is a part of a diff that can be applied or omitted: a run of lines, or the whole change of a file
// that is moved, changes mode, or has no lines.
type Hunk struct {
	FileHeader string // the file's header lines, unless Body includes them
	Body       string
	Line       int // the diff line at which its body begins, from 0
}

// SplitHunks splits a unified diff of text files in the form that coder writes.
func SplitHunks(unified string) (all []Hunk) {
	var at, n int   // current position in bytes and lines
	var file int    // start of the current file
	var head string // header lines of the current file
	var git string  // the line that makes the file a single hunk
	body := -1      // start of the current hunk, or -1
	end := func() {
		if body >= 0 {
			all[len(all)-1].Body, body = unified[body:at], -1
		}
	}
	for sign, line := range DiffLines(unified) {
		switch {
		case sign != 0:
		case strings.HasPrefix(line, "diff --git "):
			end()
			all = append(all, Hunk{Line: n})
			body, git = at, line
		case strings.HasPrefix(line, "--- ") && !matchFileNames(git, unified[at:]):
			end()
			file, head, git = at, "", ""
		case strings.HasPrefix(line, "@@ ") && git == "":
			end()
			if head == "" {
				head = unified[file:at]
			}
			all = append(all, Hunk{FileHeader: head, Line: n})
			body = at
		}
		at += len(line)
		n++
	}
	end()
	return all
}

// LabelHunks returns a unified diff with label(n) appended to the first line of hunk n, counted from 1.
func LabelHunks(unified string, label func(hunk int) string) string {
	lines := strings.Split(unified, "\n")
	for i, h := range SplitHunks(unified) {
		lines[h.Line] += "  " + label(i+1)
	}
	return strings.Join(lines, "\n")
}

// matchFileNames reports whether the two file names at the start of text match those in git's "diff --git" line.
func matchFileNames(git, text string) bool {
	from, rest, _ := strings.Cut(strings.TrimPrefix(text, "--- "), "\n")
	to, _, _ := strings.Cut(strings.TrimPrefix(rest, "+++ "), "\n")
	const nothing = "/dev/null"
	return git != "" && (from == nothing || strings.HasPrefix(git, "diff --git "+from+" ")) &&
		(to == nothing || strings.HasSuffix(git, " "+to+"\n"))
}

// parseHunkLen parses a number in a hunk header; an omitted length is 1.
func parseHunkLen(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
