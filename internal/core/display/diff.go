package display

import (
	"iter"
	"strconv"
	"strings"

	"coder/internal/core/lazy"
)

// Counted is a unified diff with how much it adds and deletes.
func Counted(unified string) Diff {
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

var hunkHead = lazy.Regexp(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// DiffLines yields the lines of a unified diff: those added with '+', deleted
// with '-', kept with ' ', and what is said about them with 0. It goes by the
// lengths that the hunks give, since a deleted line may look like a file name.
func DiffLines(unified string) iter.Seq2[byte, string] {
	return func(yield func(byte, string) bool) {
		before, after := 0, 0 // lines left in the hunk
		for line := range strings.Lines(unified) {
			var sign byte
			switch {
			case before <= 0 && after <= 0:
				if m := hunkHead().FindStringSubmatch(line); m != nil {
					before, after = length(m[1]), length(m[2])
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

// Hunk is a part of a diff that can be taken or left: a run of lines, or all that
// becomes of a file that is moved or given another mode, or has no lines.
type Hunk struct {
	Head string // the lines that name its file, where others are in it too
	Body string
	Line int // which line of the diff its body begins with, from 0
}

// Hunks divides a unified diff of text files, as this program writes it.
func Hunks(unified string) (all []Hunk) {
	var at, n int   // where we are: bytes and lines
	var file int    // where the file under way begins
	var head string // the lines that name it
	var git string  // the line that says that it is one hunk
	body := -1      // where the hunk under way begins, if one is
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
		case strings.HasPrefix(line, "--- ") && !names(git, unified[at:]):
			end()
			file, head, git = at, "", ""
		case strings.HasPrefix(line, "@@ ") && git == "":
			end()
			if head == "" {
				head = unified[file:at]
			}
			all = append(all, Hunk{Head: head, Line: n})
			body = at
		}
		at += len(line)
		n++
	}
	end()
	return all
}

// Numbered is a unified diff with what label says of each hunk, counted from 1, behind
// its first line.
func Numbered(unified string, label func(hunk int) string) string {
	lines := strings.Split(unified, "\n")
	for i, h := range Hunks(unified) {
		lines[h.Line] += "  " + label(i+1)
	}
	return strings.Join(lines, "\n")
}

// names reports whether the two names that text begins with are those of a line as
// git begins a file with.
func names(git, text string) bool {
	from, rest, _ := strings.Cut(strings.TrimPrefix(text, "--- "), "\n")
	to, _, _ := strings.Cut(strings.TrimPrefix(rest, "+++ "), "\n")
	const nothing = "/dev/null"
	return git != "" && (from == nothing || strings.HasPrefix(git, "diff --git "+from+" ")) && (to == nothing || strings.HasSuffix(git, " "+to+"\n"))
}

// length of a hunk; one left out is 1.
func length(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
