package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"coder/internal/core/message"
)

// Change is a patch's effect on one file.
type Change struct {
	Path string
	From string // the previous name, if it moves
	// Old and New are its content; nil if the file does not exist before or after.
	Old, New []byte
	Mode     Mode // the requested mode
	// Loose is set if a hunk matched only by ignoring line ends or trailing white space.
	Loose bool
	// Assumptions lists assumptions about ambiguous hunks.
	Assumptions []string
}

// NoFileError is the name of a missing file that a patch changes.
type NoFileError string

func (e NoFileError) Error() string { return string(e) + ": no such file" }

// Is makes it match [fs.ErrNotExist].
func (e NoFileError) Is(target error) bool { return target == fs.ErrNotExist }

// Names returns the files that a patch names, without duplicates.
func (p Patch) Names() (names []string) {
	for _, f := range p {
		for _, n := range []string{f.Old, f.New} {
			if n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// Apply computes the result of p on files, which holds the content of existing files. It is all or
// nothing: it returns the first mismatch as an error. It does not modify files.
func (p Patch) Apply(files map[string][]byte) ([]Change, error) {
	now := make(map[string][]byte, len(files))
	for name, b := range files {
		now[name] = b
	}
	var changes []Change
	for _, f := range p {
		c, err := f.apply(now)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(changes, func(before Change) bool {
			return before.Path == c.Path && c.From == "" &&
				before.New != nil
		})
		switch {
		case i < 0:
			changes = append(changes, c)
		case changes[i].Old == nil && c.New == nil: // created and deleted again
			changes = slices.Delete(changes, i, i+1)
		default:
			before := &changes[i]
			before.New, before.Loose, before.Assumptions = c.New, before.Loose || c.Loose,
				append(before.Assumptions, c.Assumptions...)
			before.Mode = cmp.Or(c.Mode, before.Mode)
		}
		if c.From != "" {
			delete(now, c.From)
		}
		delete(now, c.Path)
		if c.New != nil {
			now[c.Path] = c.New
		}
	}
	return changes, nil
}

func (f File) apply(now map[string][]byte) (c Change, err error) {
	old, there := now[f.Old]
	if _, taken := now[f.New]; taken && f.New != f.Old {
		return c, message.Errorf("%s: the file already exists", f.New)
	}
	switch {
	case f.Old == "":
		old = nil
	case !there:
		return c, NoFileError(f.Old)
	case old == nil:
		old = []byte{}
	}
	c = Change{Path: f.New, Old: old, Mode: f.Mode}
	if f.New == "" {
		c.Path = f.Old
	} else if f.Old != "" && f.New != f.Old {
		c.From = f.Old
	}
	if f.Whole {
		return c, nil
	}
	s := &patchedFile{lines: slices.Collect(strings.Lines(string(old)))}
	s.deleted, s.inserted = make([]bool, len(s.lines)), make([][]string, len(s.lines)+1)
	for i, h := range f.Hunks {
		if err := s.applyHunk(h); err != nil {
			return c, message.Errorf("%s, hunk %d of %d: %w", cmp.Or(f.Old, f.New), i+1, len(f.Hunks), err)
		}
		if s.assumption != "" {
			c.Assumptions = append(c.Assumptions, fmt.Sprintf("hunk %d %s", i+1, s.assumption))
		}
	}
	c.Loose = s.loose
	content := s.String()
	switch {
	case f.New != "":
		c.New = append([]byte{}, content...)
	case content != "":
		return c,
			message.Errorf("%s: the patch deletes the file, but the file has lines that the patch does not list:\n%s",
				f.Old, shorten(content))
	}
	return c, nil
}

// patchedFile is a file with hunks applied.
type patchedFile struct {
	lines          []string // the original lines with their ends
	deleted        []bool
	inserted       [][]string // lines inserted before each line, and after the last
	offset         int        // the last hunk's distance from its stated line
	loose          bool
	assumption     string // assumption about the last hunk
	noFinalNewline bool   // the file has no final line end and keeps none
}

// applyHunk finds the place of a hunk and records its changes.
func (s *patchedFile) applyHunk(h Hunk) error {
	s.assumption = ""
	at, how, err := s.findPlace(h)
	if err != nil && h.Unspaced != nil {
		asWritten := h
		asWritten.Lines = h.Unspaced
		if there, like, also := s.findPlace(asWritten); also == nil {
			h, at, how, err = asWritten, there, like, nil
		}
	}
	if err != nil {
		return err
	}
	if h.Unspaced != nil {
		s.assumption = "has lines of context without the space that belongs before them"
	}
	if h.Line > 0 && len(h.oldLines()) > 0 {
		s.offset = at - (h.Line - 1)
	}
	s.loose = s.loose || how != matchExact
	begin := at
	for _, l := range h.Lines {
		switch l.Op {
		case ' ':
			at++
		case '-':
			s.deleted[at] = true
			at++
		case '+':
			text := l.Text
			switch {
			case l.NoNewline:
			case how == matchExact: // an exact match is applied literally
				text += "\n"
			case at > begin: // otherwise use the line end of nearby lines
				text = strings.TrimSuffix(text, "\r") + s.lineEndAt(at-1)
			default:
				text = strings.TrimSuffix(text, "\r") + s.lineEndAt(at)
			}
			s.inserted[at] = append(s.inserted[at], text)
		}
	}
	if how != matchExact && at == len(s.lines) && at > 0 && !strings.HasSuffix(s.lines[at-1], "\n") && !h.hasBareLine() {
		s.noFinalNewline = true
	}
	return nil
}

// lineEndAt returns the line end at index at, or the nearest one before it.
func (s *patchedFile) lineEndAt(at int) string {
	for at = min(at, len(s.lines)-1); at >= 0; at-- {
		if strings.HasSuffix(s.lines[at], "\r\n") {
			return "\r\n"
		}
		if strings.HasSuffix(s.lines[at], "\n") {
			break
		}
	}
	return "\n"
}

// String returns the file with its changes.
func (s *patchedFile) String() string {
	var out []string
	for i, l := range s.lines {
		out = append(out, s.inserted[i]...)
		if !s.deleted[i] {
			out = append(out, l)
		}
	}
	out = append(out, s.inserted[len(s.lines)]...)
	for i := range out[:max(len(out)-1, 0)] {
		if !strings.HasSuffix(out[i], "\n") {
			out[i] += s.lineEndAt(i)
		}
	}
	if n := len(out); n > 0 && s.noFinalNewline {
		out[n-1] = strings.TrimRight(out[n-1], "\r\n")
	}
	text := strings.Join(out, "")
	if s.loose && len(s.lines) > 0 && strings.HasPrefix(s.lines[0], byteOrderMark) &&
		!strings.HasPrefix(text, byteOrderMark) {
		text = byteOrderMark + text
	}
	return text
}

// byteOrderMark is the byte order mark.
const byteOrderMark = "\ufeff"

// oldLines returns the lines that a hunk expects.
func (h Hunk) oldLines() (lines []Line) {
	for _, l := range h.Lines {
		if l.Op != '+' {
			lines = append(lines, l)
		}
	}
	return lines
}

func (h Hunk) hasBareLine() bool {
	return slices.ContainsFunc(h.Lines, func(l Line) bool { return l.NoNewline })
}

var errNoContext = errors.New("the hunk has no context lines; add some of the lines around it")
