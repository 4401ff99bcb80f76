package patch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Blocks of lines to search and lines to put in their place:
//
//	path/of/the/file
//	<<<<<<< SEARCH
//	old lines
//	=======
//	new lines
//	>>>>>>> REPLACE
//
// Some write dashes and pluses for the arrows, some a line number first.
var (
	searchMark  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(<{5,9}|-{5,9}) ?SEARCH>?\s*$`) })
	middleMark  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*={5,9}\s*$`) })
	replaceMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(>{5,9}|\+{5,9}) ?REPLACE>?\s*$`) })
	startLine   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^:(start|end)_line:\s*\d+\s*$`) })
	fenceOrRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(`{3,}.*|-{5,9})$") })
)

// searches reports whether there is such a block.
func (r *reader) searches() bool {
	for _, l := range r.lines {
		if searchMark().MatchString(l) {
			return true
		}
		if strings.HasPrefix(l, "diff --git ") {
			return false
		}
	}
	return false
}

// replacements reads the blocks until the end. Blocks that follow each other
// are of one file.
func (r *reader) replacements() (p Patch, err error) {
	path := r.path
	for ; !r.done(); r.at++ {
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
			return nil, fmt.Errorf("line %d: a block without the name of its file; write the path on the line before it", r.at+1)
		}
		h, err := r.replacement()
		if err != nil {
			return nil, err
		}
		f := File{Old: path, New: path, Hunks: []Hunk{h}}
		if len(h.old()) == 0 {
			f.Old = "" // nothing to search: a new file
		}
		if n := len(p); n > 0 && p[n-1].Old == path && f.Old == path {
			p[n-1].Hunks = append(p[n-1].Hunks, h)
			continue
		}
		p = append(p, f)
	}
	return p, nil
}

// replacement reads one block from its first mark to its last.
func (r *reader) replacement() (h Hunk, err error) {
	began, o := r.at+1, byte('-')
	for r.at++; !r.done(); r.at++ {
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
		return h, fmt.Errorf("line %d: the block has no line of ======= between what is searched and what replaces it", began)
	}
	return h, fmt.Errorf("line %d: the block has no >>>>>>> REPLACE at its end", began)
}
