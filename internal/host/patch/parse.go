package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Patch is a list of changes to files, in the order they are to be made.
type Patch []File

// File is what a patch does to one file.
type File struct {
	// Old and New are its names before and after. An empty Old makes a new
	// file, an empty New deletes it, two different ones move it.
	Old, New string
	Hunks    []Hunk
	// Whole is set for a deletion that does not say what it deletes.
	Whole bool
	// Mode is what the patch says of the file's mode.
	Mode Mode
}

// Mode is what a patch says of a file's mode: all that git tells apart is
// whether it can be run as a program.
type Mode uint8

const (
	AsItIs     Mode = iota // nothing is said
	Plain                  // it cannot be run
	Executable             // it can
)

// Hunk is one run of lines and what becomes of them.
type Hunk struct {
	Line    int      // where its old lines begin, from 1; 0 if it does not say
	After   []string // lines to pass first, one after the other
	AtEnd   bool     // its old lines are the last of the file
	Counted bool     // its header counts no old lines, so Line is the one before
	Open    bool     // it may go to the end of the file if nothing says where
	Lines   []Line
	// Unspaced is how its lines read if those of context were written without
	// the space before them; nil if they all have it.
	Unspaced []Line
}

// Line is one line of a hunk: Op is ' ' for one that stays, '-' for one that
// goes and '+' for one that comes.
type Line struct {
	Op   byte
	Text string // without its end
	Bare bool   // it ends with the file, without a line end
}

const (
	maxPatch = 4 << 20 // bytes of a patch
	maxFiles = 1000    // files in it
)

// ParseFor reads a patch: unified diffs of one or more files, as diff and git
// write them, the form that begins with "*** Begin Patch", or blocks of lines
// to search and lines to replace them by. Counts and line numbers may be wrong,
// and what stands around the diffs is passed over. It need not name its file if
// it is for the one at path.
func ParseFor(path, text string) (Patch, error) {
	if len(text) > maxPatch {
		return nil, fmt.Errorf("the patch is too long (%d bytes, at most %d)", len(text), maxPatch)
	}
	if n := strings.Count(text, "\n"); n > 0 && strings.Count(text, "\r\n") == n {
		text = strings.ReplaceAll(text, "\r\n", "\n") // the patch's own line ends, not the file's
	}
	r := &reader{lines: strings.Split(text, "\n"), path: path}
	parse := r.unified
	switch {
	case r.seek("*** Begin Patch"), r.seek("*** Update File: ", "*** Add File: ", "*** Delete File: "):
		parse = r.envelope
	default:
		ahead := r.lines
		if i := slices.IndexFunc(ahead, func(l string) bool { return strings.HasPrefix(l, "diff --git ") }); i >= 0 {
			ahead = ahead[:i]
		}
		if slices.ContainsFunc(ahead, searchMark().MatchString) {
			parse = r.replacements
		}
	}
	p, err := parse()
	switch {
	case err != nil:
		return nil, err
	case len(p) == 0:
		return nil, errors.New(`not a patch: it has neither "--- " and "+++ " lines nor "*** Begin Patch"; send *** Begin Patch, *** Update File: path, @@, lines that begin with a space, - or +, and *** End Patch, each on its own line`)
	case len(p) > maxFiles:
		return nil, fmt.Errorf("the patch has too many files (%d, at most %d)", len(p), maxFiles)
	}
	return p, nil
}

type reader struct {
	lines []string
	at    int
	path  string // the file of what names none
}

func (r *reader) done() bool { return r.at >= len(r.lines) }

// peek is the line n ahead, "" beyond the end.
func (r *reader) peek(n int) string {
	if r.at+n >= len(r.lines) {
		return ""
	}
	return r.lines[r.at+n]
}

// seek moves to the first line with one of the prefixes, if there is one that
// no diff comes before.
func (r *reader) seek(prefixes ...string) bool {
	for i, l := range r.lines {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(strings.TrimLeft(l, " \t"), p) }) {
			r.at = i
			return true
		}
		if strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "diff --git ") {
			return false
		}
	}
	return false
}

func (r *reader) unified() (p Patch, err error) {
	for !r.done() {
		switch {
		case strings.HasPrefix(r.peek(0), "diff --git "), r.headers(0):
			f, err := r.diff()
			if err != nil {
				return nil, err
			}
			p = append(p, f)
		case strings.HasPrefix(r.peek(0), "@@") && len(p) == 0 && r.path != "":
			f := File{Old: r.path, New: r.path}
			if f.Hunks, err = r.hunks(); err != nil {
				return nil, err
			}
			p = append(p, f)
		case strings.HasPrefix(r.peek(0), "@@ ") && len(p) == 0:
			return nil, fmt.Errorf(`line %d: a hunk without a file name; begin with "--- a/path" and "+++ b/path"`, r.at+1)
		default:
			r.at++
		}
	}
	return p, nil
}

// headers reports whether the names of a file stand n lines ahead.
func (r *reader) headers(n int) bool {
	return strings.HasPrefix(r.peek(n), "--- ") && strings.HasPrefix(r.peek(n+1), "+++ ")
}

func (r *reader) diff() (f File, err error) {
	began := r.at + 1
	git := strings.HasPrefix(r.peek(0), "diff --git ")
	var from, to string
	if git {
		if from, to, f.Mode, err = r.gitHeader(); err != nil {
			return f, err
		}
	}
	if r.headers(0) {
		from, to = sides(r.peek(0)[4:], r.peek(1)[4:])
		r.at += 2
	}
	f.Old, f.New = from, to
	if f.Hunks, err = r.hunks(); err != nil {
		return f, err
	}
	switch {
	case f.Old == "" && f.New == "":
		return f, fmt.Errorf("line %d: the file name is missing", began)
	case len(f.Hunks) == 0 && f.Old == f.New && f.Mode == AsItIs:
		return f, fmt.Errorf("line %d: %s: nothing to change; only content, names and modes can be patched", began, f.New)
	}
	return f, nil
}

func (r *reader) hunks() (list []Hunk, err error) {
	for strings.HasPrefix(r.peek(0), "@@") {
		h, err := r.hunk()
		if err != nil {
			return nil, err
		}
		list = append(list, h)
		for !r.done() && r.peek(0) == "" {
			r.at++
		}
	}
	return list, nil
}

// gitHeader reads the lines that git writes before a diff, and the names and
// the mode they give.
func (r *reader) gitHeader() (from, to string, mode Mode, err error) {
	from, to = gitNames(strings.TrimPrefix(r.peek(0), "diff --git "))
	for r.at++; !r.done() && !r.headers(0) && !strings.HasPrefix(r.peek(0), "diff --git "); r.at++ {
		key, value := header(r.peek(0))
		switch key {
		case "rename from ":
			from = unquoted(value)
		case "rename to ":
			to = unquoted(value)
		case "new file mode ":
			from = ""
			mode, err = modeOf(value)
		case "new mode ":
			mode, err = modeOf(value)
		case "index ":
			if hashes, bits, ok := strings.Cut(value, " "); ok && strings.Contains(hashes, "..") {
				_, err = modeOf(bits)
			}
		case "deleted file mode ":
			to = ""
		case "copy from ", "Binary files ", "GIT binary patch":
			err = errors.New("only text changes can be applied")
		}
		if err != nil {
			return "", "", AsItIs, fmt.Errorf("line %d: %q: %w", r.at+1, short(r.peek(0)), err)
		}
	}
	return from, to, mode, nil
}

// header is the part of a line of git's header that tells what it is, and the
// rest of it; both are empty if it is none that matters.
func header(line string) (key, value string) {
	for _, k := range []string{"rename from ", "rename to ", "copy from ", "new file mode ", "deleted file mode ", "new mode ", "index ", "Binary files ", "GIT binary patch"} {
		if v, ok := strings.CutPrefix(line, k); ok {
			return k, v
		}
	}
	return "", ""
}

func modeOf(s string) (Mode, error) {
	switch strings.TrimSpace(s) {
	case "100644", "100664":
		return Plain, nil
	case "100755":
		return Executable, nil
	case "120000":
		return AsItIs, errors.New("a patch can delete a link, but not create or change one; use a command")
	case "160000":
		return AsItIs, errors.New("a submodule cannot be patched; use git")
	}
	return AsItIs, errors.New("not a file mode; use 100644 or 100755")
}

// gitNames parts "a/x b/x", whose two names are the same but for the prefix.
func gitNames(s string) (from, to string) {
	if strings.HasPrefix(s, `"`) || strings.HasSuffix(s, `"`) {
		if i := strings.Index(s, `" "`); i > 0 {
			return sides(s[:i+1], s[i+2:])
		}
	}
	for i := range s {
		if s[i] == ' ' {
			if from, to = sides(s[:i], s[i+1:]); from == to {
				return from, to
			}
		}
	}
	return "", ""
}

// sides are the names in a header, without what diff and git put around them.
func sides(old, new string) (from, to string) {
	from, to = unquoted(stamped(old)), unquoted(stamped(new))
	a, okA := strings.CutPrefix(from, "a/")
	b, okB := strings.CutPrefix(to, "b/")
	if (okA || from == devNull) && (okB || to == devNull) {
		from, to = a, b
	}
	if from == devNull {
		from = ""
	}
	if to == devNull {
		to = ""
	}
	return from, to
}

// stamped takes from a name the time that may follow it.
func stamped(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	return strings.TrimRight(s, " ")
}

func unquoted(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

// hunk reads one hunk of a unified diff. Its counts are believed if they fit
// the lines that follow; else it goes on as far as lines look like its own.
func (r *reader) hunk() (h Hunk, err error) {
	began := r.at + 1
	oldN, newN := r.ranges(&h)
	r.at++
	if n := r.counted(oldN, newN); n >= 0 {
		h.Lines = r.body(n)
	} else {
		h.Counted = false
		n := 0 // lines ahead that look like those of a hunk
		for r.at+n < len(r.lines) && op(r.peek(n)) != 0 && !(r.headers(n) && strings.HasPrefix(r.peek(n+2), "@@")) {
			n++
		}
		h.Lines = trimmed(r.body(n))
	}
	if !slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Op != ' ' }) {
		return h, fmt.Errorf("line %d: the hunk changes nothing", began)
	}
	return h, nil
}

// ranges reads "@@ -3,4 +3,5 @@ anything". Where the numbers are missing the
// counts are -1.
func (r *reader) ranges(h *Hunk) (oldN, newN int) {
	fields := strings.Fields(r.peek(0))
	if len(fields) < 3 {
		return -1, -1
	}
	line, oldN, ok := numbers(fields[1], "-")
	_, newN, ok2 := numbers(fields[2], "+")
	if !ok || !ok2 {
		return -1, -1
	}
	h.Line, h.Counted = line, oldN == 0
	return oldN, newN
}

// numbers reads "-3,4"; a missing count is one.
func numbers(s, sign string) (line, n int, ok bool) {
	s, ok = strings.CutPrefix(s, sign)
	if !ok {
		return 0, 0, false
	}
	first, second, more := strings.Cut(s, ",")
	line, err := strconv.Atoi(first)
	n = 1
	if err == nil && more {
		n, err = strconv.Atoi(second)
	}
	return line, n, err == nil && line >= 0 && n >= 0
}

// counted is how many lines make up a hunk of the given counts, -1 if they do
// not add up.
func (r *reader) counted(oldN, newN int) int {
	n := 0
	for ; oldN > 0 || newN > 0; n++ {
		if r.at+n >= len(r.lines) {
			return -1
		}
		switch op(r.peek(n)) {
		case ' ':
			oldN, newN = oldN-1, newN-1
		case '-':
			oldN--
		case '+':
			newN--
		case '\\':
		default:
			return -1
		}
	}
	if op(r.peek(n)) == '\\' {
		n++
	}
	next := r.peek(n)
	if oldN != 0 || newN != 0 || next != "" && op(next) != 0 && !r.headers(n) {
		return -1
	}
	return n
}

// op is what a line of a hunk does, 0 if it cannot be one. An empty line is
// an empty line of context that lost its space.
func op(line string) byte {
	if line == "" {
		return ' '
	}
	if strings.IndexByte(" +-\\", line[0]) >= 0 {
		return line[0]
	}
	return 0
}

func (r *reader) body(n int) (lines []Line) {
	for _, l := range r.lines[r.at : r.at+n] {
		switch o := op(l); {
		case o == '\\' && len(lines) > 0:
			lines[len(lines)-1].Bare = true
		case o == '\\':
		case l == "":
			lines = append(lines, Line{Op: ' '})
		default:
			lines = append(lines, Line{Op: o, Text: l[1:]})
		}
	}
	r.at += n
	return lines
}

// trimmed drops empty lines of context at the end: they are more likely what
// separates the hunk from what follows.
func trimmed(lines []Line) []Line {
	for n := len(lines); n > 0 && lines[n-1] == (Line{Op: ' '}); n = len(lines) {
		lines = lines[:n-1]
	}
	return lines
}
