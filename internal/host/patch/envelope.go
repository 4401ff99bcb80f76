package patch

import (
	"slices"
	"strings"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

// parseEnvelope parses the form between "*** Begin Patch" and "*** End Patch". Its hunks have no numbers: "@@
// line" names a line to skip to first.
func (r *reader) parseEnvelope() (p Patch, err error) {
	for !r.atEnd() {
		line := strings.TrimLeft(r.peek(0), " \t")
		r.at++
		verb, name, _ := strings.Cut(line, ": ")
		f := File{Old: strings.TrimSpace(name), New: strings.TrimSpace(name)}
		switch {
		case strings.HasPrefix(line, "*** End Patch"):
			return p, nil
		case strings.HasPrefix(line, "*** Begin Patch"), strings.TrimSpace(line) == "":
			continue
		case verb == "*** Add File":
			f.Old = ""
			f.Hunks, err = r.parseAdded()
		case verb == "*** Delete File":
			f.New, f.Whole = "", true
		case verb == "*** Update File":
			err = r.parseUpdate(&f)
		default:
			return nil,
				message.Errorf("line %d: %q is not a patch line; expected *** Update File, *** Add File, *** Delete File or *** End Patch", r.at, shorten(line))
		}
		if err != nil {
			return nil, err
		}
		if f.Old == "" && f.New == "" {
			return nil, message.Errorf("line %d: the file name is missing", r.at)
		}
		p = append(p, f)
	}
	return p, nil
}

func (r *reader) parseAdded() ([]Hunk, error) {
	h := Hunk{InsertAfter: true}
	for ; !r.atEnd() && !r.atMarker(); r.at++ {
		line := r.peek(0)
		if !strings.HasPrefix(line, "+") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			return nil, message.Errorf("line %d: every line of an added file begins with +, not %q", r.at+1,
				shorten(line))
		}
		h.Lines = append(h.Lines, Line{Op: '+', Text: line[1:]})
	}
	return []Hunk{h}, nil
}

// parseUpdate parses the hunks of an existing file, and its new name, if any.
func (r *reader) parseUpdate(f *File) error {
	if to, ok := strings.CutPrefix(r.peek(0), "*** Move to: "); ok {
		f.New = strings.TrimSpace(to)
		r.at++
	}
	for r.atFileHeader(0) { // headers of a diff, which repeat the name
		r.at += 2
	}
	for !r.atEnd() && (!r.atMarker() || r.peek(0) == "*** End of File") {
		began := r.at
		var h Hunk // lines to skip to, lines to change, and the end mark
		for ; strings.HasPrefix(r.peek(0), "@@"); r.at++ {
			if oldN, _ := r.parseRanges(&h); oldN >= 0 {
				h.InsertAfter = false // counts are unreliable in this form
				continue
			}
			if anchor := strings.TrimSpace(strings.Trim(r.peek(0), "@ ")); anchor != "" {
				h.After = append(h.After, anchor)
			}
		}
		var bare bool // some context line lacks its space
		for ; !r.atEnd() && !r.atMarker() && !strings.HasPrefix(r.peek(0), "@@"); r.at++ {
			l := r.peek(0)
			switch lineOp(l) {
			case '+', '-':
				h.Unspaced = append(h.Unspaced, Line{Op: l[0], Text: l[1:]})
				h.Lines = append(h.Lines, Line{Op: l[0], Text: l[1:]})
			case '\\':
				if n := len(h.Lines); n > 0 {
					h.Lines[n-1].NoNewline, h.Unspaced[n-1].NoNewline = true, true
				}
			default:
				bare = bare || lineOp(l) == 0
				h.Unspaced = append(h.Unspaced, Line{Op: ' ', Text: l})
				h.Lines = append(h.Lines, Line{Op: ' ', Text: strings.TrimPrefix(l, " ")})
			}
		}
		if r.peek(0) == "*** End of File" {
			h.AtEnd = true
			r.at++
		}
		h.Lines, h.Unspaced = trimContext(h.Lines), trimContext(h.Unspaced)
		h.Open = h.Line == 0
		if !bare {
			h.Unspaced = nil
		}
		if slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Op != ' ' }) {
			f.Hunks = append(f.Hunks, h)
		} else if len(h.Lines) > 0 || len(h.After) > 0 {
			return message.Errorf("line %d: the hunk changes nothing", began+1)
		}
	}
	if len(f.Hunks) == 0 && f.Old == f.New {
		return message.Errorf("line %d: %s: nothing to change", r.at, f.New)
	}
	return nil
}

// atMarker reports whether the next line is a marker of the envelope. The last lines of a patch may be
// indented like context.
func (r *reader) atMarker() bool {
	if strings.HasPrefix(r.peek(0), "*** ") {
		return true
	}
	if !strings.HasPrefix(strings.TrimSpace(r.peek(0)), "*** End Patch") {
		return false
	}
	for _, l := range r.lines[r.at+1:] {
		if strings.TrimSpace(l) != "" {
			return false
		}
	}
	return true
}

func shorten(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Search-and-replace blocks:
//
//	path/of/the/file
//	<<<<<<< SEARCH
//	old lines
//	=======
//	new lines
//	>>>>>>> REPLACE
//
// Some models write dashes and pluses instead of arrows, some a line number first.
var (
	searchMark  = lazy.Regexp(`^\s*(<{5,9}|-{5,9}) ?SEARCH>?\s*$`)
	middleMark  = lazy.Regexp(`^\s*={5,9}\s*$`)
	replaceMark = lazy.Regexp(`^\s*(>{5,9}|\+{5,9}) ?REPLACE>?\s*$`)
	startLine   = lazy.Regexp(`^:(start|end)_line:\s*\d+\s*$`)
	fenceOrRule = lazy.Regexp("^(`{3,}.*|-{5,9})$")
)

// parseReplacements parses the blocks to the end. Consecutive blocks belong to one file.
func (r *reader) parseReplacements() (p Patch, err error) {
	path := r.path
	for ; !r.atEnd(); r.at++ {
		line := strings.TrimSpace(r.peek(0))
		switch {
		case searchMark().MatchString(line):
		case line == "" || fenceOrRule().MatchString(line):
			continue
		default:
			if r.path == "" {
				path = strings.TrimSuffix(strings.Trim(line, "`*# "), ":")
			}
			continue
		}
		if path == "" {
			return nil, message.Errorf("line %d: a block without a file name; write the path on the line before it",
				r.at+1)
		}
		h, err := r.parseReplacement()
		if err != nil {
			return nil, err
		}
		f := File{Old: path, New: path, Hunks: []Hunk{h}}
		if len(h.oldLines()) == 0 {
			f.Old = "" // an empty search creates a file
		}
		if n := len(p); n > 0 && p[n-1].Old == path && f.Old == path {
			p[n-1].Hunks = append(p[n-1].Hunks, h)
			continue
		}
		p = append(p, f)
	}
	return p, nil
}

func (r *reader) parseReplacement() (h Hunk, err error) {
	began, o := r.at+1, byte('-')
	for r.at++; !r.atEnd(); r.at++ {
		line := r.peek(0)
		switch {
		case o == '-' && len(h.Lines) == 0 && (startLine().MatchString(line) || fenceOrRule().MatchString(line)):
		case o == '-' && middleMark().MatchString(line):
			o = '+'
		case o == '+' && replaceMark().MatchString(line):
			return h, nil
		default:
			h.Lines = append(h.Lines, Line{Op: o, Text: line})
		}
	}
	if o == '-' {
		return h, message.Errorf("line %d: the block has no ======= line between the search text and the replacement",
			began)
	}
	return h, message.Errorf("line %d: the block does not end with >>>>>>> REPLACE", began)
}
