package patch

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
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
	ModeUnspecified Mode = iota // not specified
	Plain                       // not executable
	Executable                  // executable
)

// Hunk is a run of lines and their changes.
type Hunk struct {
	Line        int      // first old line, from 1; 0 if not given
	After       []string // lines to skip to first, in order
	AtEnd       bool     // its old lines end the file
	InsertAfter bool     // its header counts no old lines, so Line is the one before
	Open        bool     // may go to the end of the file if its place is not given
	Lines       []Line
	// Unspaced are its lines if context was written without the leading space; nil if all context has it.
	Unspaced []Line
}

// Line is one line of a hunk: Op is ' ' for context, '-' for a deletion and '+' for an addition.
type Line struct {
	Op        byte
	Text      string // without the line end
	NoNewline bool   // last line of the file, without a line end
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
		return nil, message.Errorf("the patch is too long (%d bytes, at most %d)", len(text), maxPatch)
	}
	if n := strings.Count(text, "\n"); n > 0 && strings.Count(text, "\r\n") == n {
		text = strings.ReplaceAll(text, "\r\n", "\n") // line ends of the patch, not of the file
	}
	r := &reader{lines: strings.Split(text, "\n"), path: path}
	parse := r.parseUnified
	switch {
	case r.seek("*** Begin Patch"), r.seek("*** Update File: ", "*** Add File: ", "*** Delete File: "):
		parse = r.parseEnvelope
	default:
		ahead := r.lines
		if i := slices.IndexFunc(ahead, func(l string) bool { return strings.HasPrefix(l, "diff --git ") }); i >= 0 {
			ahead = ahead[:i]
		}
		if slices.ContainsFunc(ahead, searchMark().MatchString) {
			parse = r.parseReplacements
		}
	}
	p, err := parse()
	switch {
	case err != nil:
		return nil, err
	case len(p) == 0:
		return nil, errors.New(`not a patch: it has neither "--- " and "+++ " lines nor "*** Begin Patch"; send *** Begin Patch, *** Update File: path, @@, lines that begin with a space, - or +, and *** End Patch, each on its own line`)
	case len(p) > maxFiles:
		return nil, message.Errorf("the patch has too many files (%d, at most %d)", len(p), maxFiles)
	}
	return p, nil
}

type reader struct {
	lines []string
	at    int
	path  string // file of hunks without a name
}

func (r *reader) atEnd() bool { return r.at >= len(r.lines) }

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

func (r *reader) parseUnified() (p Patch, err error) {
	for !r.atEnd() {
		switch {
		case strings.HasPrefix(r.peek(0), "diff --git "), r.atFileHeader(0):
			f, err := r.parseDiff()
			if err != nil {
				return nil, err
			}
			p = append(p, f)
		case strings.HasPrefix(r.peek(0), "@@") && len(p) == 0 && r.path != "":
			f := File{Old: r.path, New: r.path}
			if f.Hunks, err = r.parseHunks(); err != nil {
				return nil, err
			}
			p = append(p, f)
		case strings.HasPrefix(r.peek(0), "@@ ") && len(p) == 0:
			return nil, message.Errorf(`line %d: a hunk without a file name; begin with "--- a/path" and "+++ b/path"`,
				r.at+1)
		default:
			r.at++
		}
	}
	return p, nil
}

// atFileHeader reports whether a file header is n lines ahead.
func (r *reader) atFileHeader(n int) bool {
	return strings.HasPrefix(r.peek(n), "--- ") && strings.HasPrefix(r.peek(n+1), "+++ ")
}

func (r *reader) parseDiff() (f File, err error) {
	began := r.at + 1
	git := strings.HasPrefix(r.peek(0), "diff --git ")
	var from, to string
	if git {
		if from, to, f.Mode, err = r.parseGitHeader(); err != nil {
			return f, err
		}
	}
	if r.atFileHeader(0) {
		from, to = cleanNames(r.peek(0)[4:], r.peek(1)[4:])
		r.at += 2
	}
	f.Old, f.New = from, to
	if f.Hunks, err = r.parseHunks(); err != nil {
		return f, err
	}
	switch {
	case f.Old == "" && f.New == "":
		return f, message.Errorf("line %d: the file name is missing", began)
	case len(f.Hunks) == 0 && f.Old == f.New && f.Mode == ModeUnspecified:
		return f, message.Errorf("line %d: %s: nothing to change; only content, names and modes can be patched", began,
			f.New)
	}
	return f, nil
}

func (r *reader) parseHunks() (list []Hunk, err error) {
	for strings.HasPrefix(r.peek(0), "@@") {
		h, err := r.parseHunk()
		if err != nil {
			return nil, err
		}
		list = append(list, h)
		for !r.atEnd() && r.peek(0) == "" {
			r.at++
		}
	}
	return list, nil
}

// parseGitHeader parses git's lines before a diff, with the names and mode.
func (r *reader) parseGitHeader() (from, to string, mode Mode, err error) {
	from, to = splitGitNames(strings.TrimPrefix(r.peek(0), "diff --git "))
	for r.at++; !r.atEnd() && !r.atFileHeader(0) && !strings.HasPrefix(r.peek(0), "diff --git "); r.at++ {
		key, value := splitHeader(r.peek(0))
		switch key {
		case "rename from ":
			from = unquoteName(value)
		case "rename to ":
			to = unquoteName(value)
		case "new file mode ":
			from = ""
			mode, err = parseMode(value)
		case "new mode ":
			mode, err = parseMode(value)
		case "index ":
			if hashes, bits, ok := strings.Cut(value, " "); ok && strings.Contains(hashes, "..") {
				_, err = parseMode(bits)
			}
		case "deleted file mode ":
			to = ""
		case "copy from ", "Binary files ", "GIT binary patch":
			err = errors.New("only text changes can be applied")
		}
		if err != nil {
			return "", "", ModeUnspecified, message.Errorf("line %d: %q: %w", r.at+1, shorten(r.peek(0)), err)
		}
	}
	return from, to, mode, nil
}

// splitHeader splits a line of git's header into its keyword and the rest; both are empty for other lines.
func splitHeader(line string) (key, value string) {
	for _, k := range []string{"rename from ", "rename to ", "copy from ", "new file mode ", "deleted file mode ",
		"new mode ", "index ", "Binary files ", "GIT binary patch"} {
		if v, ok := strings.CutPrefix(line, k); ok {
			return k, v
		}
	}
	return "", ""
}

func parseMode(s string) (Mode, error) {
	switch strings.TrimSpace(s) {
	case "100644", "100664":
		return Plain, nil
	case "100755":
		return Executable, nil
	case "120000":
		return ModeUnspecified, errors.New("a patch can delete a link, but not create or change one; use a command")
	case "160000":
		return ModeUnspecified, errors.New("a submodule cannot be patched; use git")
	}
	return ModeUnspecified, errors.New("not a file mode; use 100644 or 100755")
}

// splitGitNames splits "a/x b/x", whose two names differ only in the prefix.
func splitGitNames(s string) (from, to string) {
	if strings.HasPrefix(s, `"`) || strings.HasSuffix(s, `"`) {
		if i := strings.Index(s, `" "`); i > 0 {
			return cleanNames(s[:i+1], s[i+2:])
		}
	}
	for i := range s {
		if s[i] == ' ' {
			if from, to = cleanNames(s[:i], s[i+1:]); from == to {
				return from, to
			}
		}
	}
	return "", ""
}

// cleanNames returns the names in a header without the decoration of diff and git.
func cleanNames(old, new string) (from, to string) {
	from, to = unquoteName(trimTimestamp(old)), unquoteName(trimTimestamp(new))
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

// trimTimestamp removes the time that may follow a name.
func trimTimestamp(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	return strings.TrimRight(s, " ")
}

func unquoteName(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

// parseHunk parses one hunk of a unified diff. It trusts the counts if they fit the lines; otherwise the hunk
// extends as far as lines look like its own.
func (r *reader) parseHunk() (h Hunk, err error) {
	began := r.at + 1
	oldN, newN := r.parseRanges(&h)
	r.at++
	if n := r.hunkLength(oldN, newN); n >= 0 {
		h.Lines = r.parseBody(n)
	} else {
		h.InsertAfter = false
		n := 0 // following lines that look like hunk lines
		for r.at+n < len(r.lines) && lineOp(r.peek(n)) != 0 && !(r.atFileHeader(n) && strings.HasPrefix(r.peek(n+2), "@@")) {
			n++
		}
		h.Lines = trimContext(r.parseBody(n))
	}
	if !slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Op != ' ' }) {
		return h, message.Errorf("line %d: the hunk changes nothing", began)
	}
	return h, nil
}

// parseRanges parses "@@ -3,4 +3,5 @@ anything". Missing counts are -1.
func (r *reader) parseRanges(h *Hunk) (oldN, newN int) {
	fields := strings.Fields(r.peek(0))
	if len(fields) < 3 {
		return -1, -1
	}
	line, oldN, ok := parseRange(fields[1], "-")
	_, newN, ok2 := parseRange(fields[2], "+")
	if !ok || !ok2 {
		return -1, -1
	}
	h.Line, h.InsertAfter = line, oldN == 0
	return oldN, newN
}

// parseRange parses "-3,4"; a missing count is one.
func parseRange(s, sign string) (line, n int, ok bool) {
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

// hunkLength returns how many lines a hunk with these counts has, or -1 if the counts do not fit.
func (r *reader) hunkLength(oldN, newN int) int {
	n := 0
	for ; oldN > 0 || newN > 0; n++ {
		if r.at+n >= len(r.lines) {
			return -1
		}
		switch lineOp(r.peek(n)) {
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
	if lineOp(r.peek(n)) == '\\' {
		n++
	}
	next := r.peek(n)
	if oldN != 0 || newN != 0 || next != "" && lineOp(next) != 0 && !r.atFileHeader(n) {
		return -1
	}
	return n
}

// lineOp returns the operation of a hunk line, or 0 if it is not one. An empty line is empty context that
// lost its space.
func lineOp(line string) byte {
	if line == "" {
		return ' '
	}
	if strings.IndexByte(" +-\\", line[0]) >= 0 {
		return line[0]
	}
	return 0
}

func (r *reader) parseBody(n int) (lines []Line) {
	for _, l := range r.lines[r.at : r.at+n] {
		switch o := lineOp(l); {
		case o == '\\' && len(lines) > 0:
			lines[len(lines)-1].NoNewline = true
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

// trimContext drops trailing empty context: it more likely separates the hunk from the next text.
func trimContext(lines []Line) []Line {
	for n := len(lines); n > 0 && lines[n-1] == (Line{Op: ' '}); n = len(lines) {
		lines = lines[:n-1]
	}
	return lines
}
