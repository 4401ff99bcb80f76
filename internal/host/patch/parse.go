package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Patch is a list of file changes, in order.
type Patch []File

// File is what a patch does to one file.
type File struct {
	// Old and New are its names before and after. An empty Old creates a file, an empty New deletes it, two
	// different names move it.
	Old, New string
	Hunks    []Hunk
	// Whole is set for a deletion without content.
	Whole bool
	// Mode is the file mode that the patch requests.
	Mode Mode
}

// Mode is the mode in a patch: git only distinguishes executable files.
type Mode uint8

const (
	AsItIs     Mode = iota // not specified
	Plain                  // not executable
	Executable             // executable
)

// Hunk is a run of lines and their changes.
type Hunk struct {
	Line    int      // first old line, from 1; 0 if not given
	After   []string // lines to skip to first, in order
	AtEnd   bool     // its old lines end the file
	Counted bool     // its header counts no old lines, so Line is the one before
	Open    bool     // may go to the end of the file if its place is not given
	Lines   []Line
	// Unspaced are its lines if context was written without the leading space; nil if all context has it.
	Unspaced []Line
}

// Line is one line of a hunk: Op is ' ' for context, '-' for a deletion and '+' for an addition.
type Line struct {
	Op   byte
	Text string // without the line end
	Bare bool   // last line of the file, without a line end
}

const (
	maxPatch = 4 << 20 // bytes of a patch
	maxFiles = 1000    // files in a patch
)

// ParseFor parses a patch: unified diffs of one or more files from diff or git, the form that begins
// with "*** Begin Patch", or search-and-replace blocks. It tolerates wrong counts and line numbers, and
// skips text around the diffs. A patch for the file at path need not name it.
func ParseFor(path, text string) (Patch, error) {
	if len(text) > maxPatch {
		return nil, fmt.Errorf("the patch is too long (%d bytes, at most %d)", len(text), maxPatch)
	}
	if n := strings.Count(text, "\n"); n > 0 && strings.Count(text, "\r\n") == n {
		text = strings.ReplaceAll(text, "\r\n", "\n") // line ends of the patch, not of the file
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
	path  string // file of hunks without a name
}

func (r *reader) done() bool { return r.at >= len(r.lines) }

// peek returns the line n ahead, or "" beyond the end.
func (r *reader) peek(n int) string {
	if r.at+n >= len(r.lines) {
		return ""
	}
	return r.lines[r.at+n]
}

// seek moves to the first line with one of the prefixes, unless a diff comes first.
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

// headers reports whether a file header is n lines ahead.
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

// gitHeader parses git's lines before a diff, with the names and mode.
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

// header splits a line of git's header into its keyword and the rest; both are empty for other lines.
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

// gitNames splits "a/x b/x", whose two names differ only in the prefix.
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

// sides returns the names in a header without the decoration of diff and git.
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

// stamped removes the time that may follow a name.
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

// hunk parses one hunk of a unified diff. It trusts the counts if they fit the lines; otherwise the hunk
// extends as far as lines look like its own.
func (r *reader) hunk() (h Hunk, err error) {
	began := r.at + 1
	oldN, newN := r.ranges(&h)
	r.at++
	if n := r.counted(oldN, newN); n >= 0 {
		h.Lines = r.body(n)
	} else {
		h.Counted = false
		n := 0 // following lines that look like hunk lines
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

// ranges parses "@@ -3,4 +3,5 @@ anything". Missing counts are -1.
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

// numbers parses "-3,4"; a missing count is one.
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

// counted returns how many lines a hunk with these counts has, or -1 if the counts do not fit.
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

// op returns the operation of a hunk line, or 0 if it is not one. An empty line is empty context that
// lost its space.
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

// trimmed drops trailing empty context: it more likely separates the hunk from the next text.
func trimmed(lines []Line) []Line {
	for n := len(lines); n > 0 && lines[n-1] == (Line{Op: ' '}); n = len(lines) {
		lines = lines[:n-1]
	}
	return lines
}
