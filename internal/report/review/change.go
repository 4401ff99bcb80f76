// Package review checks a model's findings about a change against the code, and writes them for users and for
// services that show them beside the lines. A finding that is not in the change is never written.
package review

import (
	"path"
	"strconv"
	"strings"

	"coder/internal/core/message"
	"coder/internal/core/sanitize"
)

// Change is a unified diff, with the new text of each file.
type Change struct {
	files map[string]*file
	names []string
}

// file is the new state of one file in a change.
type file struct {
	lines       map[int]string // of the new file, as far as the diff shows them
	addedLines  map[int]bool   // lines added by the change
	removedText map[int]string // removed text, by the line of the new file in its place
	lastLine    int            // the last line in the diff
}

// Parse parses a diff in git's format. It skips text before the first file.
func Parse(diff string) (*Change, error) {
	c := &Change{files: map[string]*file{}}
	var in *file
	oldLeft, newLeft, at, old := 0, 0, 0, ""
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		switch head, body := splitPrefix(line); {
		case oldLeft+newLeft > 0 && in != nil && (head == '+' || head == '-' || head == ' '):
			if head != '+' {
				oldLeft--
			}
			if head != '-' {
				newLeft--
			}
			at = in.addLine(head, body, at)
		case strings.HasPrefix(line, "--- "):
			old = line[4:]
		case strings.HasPrefix(line, "+++ "):
			in = c.fileEntry(newName(old, line[4:]))
		case strings.HasPrefix(line, "@@ "):
			var err error
			if at, oldLeft, newLeft, err = parseHunkHeader(line); err != nil {
				return nil, err
			}
		}
	}
	if len(c.files) == 0 && strings.TrimSpace(diff) != "" && !strings.Contains(diff, "diff --git ") {
		return nil, message.Errorf("this is not a diff: no line begins with +++")
	}
	return c, nil
}

func splitPrefix(line string) (head byte, body string) {
	if line == "" {
		return ' ', "" // some programs remove the space of an empty line
	}
	return line[0], line[1:]
}

// addLine adds one line of a hunk, where at is the next line of the new file.
func (f *file) addLine(head byte, body string, at int) (next int) {
	if head == '-' {
		f.removedText[at] += body + "\n"
		return at
	}
	f.lines[at], f.addedLines[at] = body, head == '+'
	f.lastLine = max(f.lastLine, at)
	return at + 1
}

// fileEntry returns the entry of a file. A deleted file has an empty name, and its entry is not kept.
func (c *Change) fileEntry(name string) *file {
	if name == "" {
		return &file{lines: map[int]string{}, addedLines: map[int]bool{}, removedText: map[int]string{}}
	}
	if c.files[name] == nil {
		c.names = append(c.names, name)
		c.files[name] = &file{lines: map[int]string{}, addedLines: map[int]bool{}, removedText: map[int]string{}}
	}
	return c.files[name]
}

// newName returns the name of the new file in a heading, without git's prefix letter.
func newName(old, now string) string {
	plain := func(s string) string {
		s, _, _ = strings.Cut(s, "\t")
		if name, err := strconv.Unquote(s); err == nil {
			return name
		}
		return s
	}
	old, now = plain(old), plain(now)
	if now == "/dev/null" {
		return ""
	}
	if len(now) > 2 && now[1] == '/' && (old == "/dev/null" || len(old) > 2 && old[1] == '/') {
		now = now[2:]
	}
	return path.Clean(now)
}

// parseHunkHeader parses "@@ -1,2 +3,4 @@": the first line in the new file, and the numbers of lines that follow.
func parseHunkHeader(line string) (at, oldLines, newLines int, err error) {
	words := strings.Fields(line)
	if len(words) < 3 || words[1][0] != '-' || words[2][0] != '+' {
		return 0, 0, 0, rejectHeading(line)
	}
	span := func(s string) (from, n int) {
		start, count, has := strings.Cut(s[1:], ",")
		from, err1 := strconv.Atoi(start)
		n = 1
		if has {
			var err2 error
			if n, err2 = strconv.Atoi(count); err2 != nil {
				err1 = err2
			}
		}
		if err1 != nil || from < 0 || n < 0 {
			err = rejectHeading(line)
		}
		return from, n
	}
	_, oldLines = span(words[1])
	at, newLines = span(words[2])
	if newLines == 0 {
		at++ // git names the line before
	}
	return at, oldLines, newLines, err
}

func rejectHeading(line string) error {
	return message.Errorf("not a heading of a diff: %s", sanitize.Line(line, 80))
}

// Files returns the files of the change that exist after it.
func (c *Change) Files() []string { return c.names }

// CheckContent returns an error if the content from read is not that of the change.
func (c *Change) CheckContent(read func(name string) ([]byte, error)) error {
	for _, name := range c.names {
		f := c.files[name]
		text, err := read(name)
		if err != nil {
			return message.Errorf("the change is not checked out here: %w", err)
		}
		lines := strings.Split(string(text), "\n")
		for at, line := range f.lines {
			if at > len(lines) || normalizeLine(lines[at-1]) != normalizeLine(line) {
				return message.Errorf("the change is not checked out here: %s is different at line %d", name, at)
			}
		}
	}
	return nil
}

// normalizeLine returns a line without differences in white space and in invisible characters.
func normalizeLine(line string) string { return sanitize.Text(strings.Join(strings.Fields(line), " ")) }
