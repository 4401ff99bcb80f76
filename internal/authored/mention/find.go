// Package mention finds the files that a user names in a message as @path, resolves the names, and
// formats what was read as text for the model.
//
// It opens no file itself: it only looks names up, and the caller reads the files. An unreadable name
// becomes a short note. Only words that merely look like a name are dropped silently.
package mention

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
)

// MaxRefs is the maximum number of names used in one message.
const MaxRefs = 20

// Ref is one name in a message: @path, @path:12 or @path:12-20.
type Ref struct {
	Path                string
	FirstLine, LastLine int // lines, from 1; zero if not given
	Quoted              bool
}

// String returns the name as it can be typed.
func (r Ref) String() string {
	path := r.Path
	if r.Quoted {
		path = Quote(path) + `"`
	}
	switch {
	case r.FirstLine == 0:
		return "@" + path
	case r.FirstLine == r.LastLine:
		return "@" + path + ":" + strconv.Itoa(r.FirstLine)
	}
	return "@" + path + ":" + strconv.Itoa(r.FirstLine) + "-" + strconv.Itoa(r.LastLine)
}

// Quote returns a quoted path.
func Quote(path string) string { return `"` + strings.ReplaceAll(path, `"`, `\"`) }

// unquote decodes the quoted path at the start of text, after its opening quote, and returns its length
// there; ended reports whether the closing quote follows.
func unquote(text string) (path string, length int, ended bool) {
	for length < len(text) && text[length] != '"' {
		if strings.HasPrefix(text[length:], `\"`) {
			length++
		}
		length++
	}
	return strings.ReplaceAll(text[:length], `\"`, `"`), length, length < len(text)
}

// Find returns the names in text, in order and each once. Email addresses contain none, nor does code.
func Find(text string) []Ref {
	var refs []Ref
	seen := make(map[Ref]bool)
	for line, code := range frontmatter.Lines(text) {
		if code {
			continue
		}
		before := ' '
		for i := 0; i < len(line); {
			r, n := utf8.DecodeRuneInString(line[i:])
			switch {
			case r == '`':
				n = frontmatter.CodeSpanLen(line[i:])
			case r == '@' && canPrecede(before):
				ref, length, ok := parseAt(line[i:])
				n = length
				if ok && !seen[ref] {
					seen[ref] = true
					refs = append(refs, ref)
				}
			}
			before, _ = utf8.DecodeLastRuneInString(line[:i+n])
			i += n
		}
	}
	return refs
}

// canPrecede reports whether a name may begin after a character:
// not in an email address; Chinese needs no space.
func canPrecede(before rune) bool {
	return before >= utf8.RuneSelf || !strings.ContainsRune(`\@._%+-/`, before) && !isWordRune(before)
}

// FindUnfinished returns the unfinished name at the end of text: the position of its sign, and its path so far.
func FindUnfinished(text string) (start int, path string, ok bool) {
	line := strings.LastIndexByte(text, '\n') + 1
	for end := len(text); ; end = start {
		start = strings.LastIndexByte(text[:end], '@')
		if start < line {
			return 0, "", false
		}
		before := ' '
		if start > line {
			before, _ = utf8.DecodeLastRuneInString(text[:start])
		}
		path, quoted := strings.CutPrefix(text[start+1:], `"`)
		ended := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(endChars, r) }
		over := !quoted && strings.IndexFunc(path, ended) >= 0
		if quoted {
			path, _, over = unquote(path)
		}
		if canPrecede(before) && !over {
			return start, path, true
		}
	}
}

// IsPlain reports whether a path needs no quotes.
func IsPlain(path string) bool {
	ref, length, ok := parseAt("@" + path)
	return ok && length == len("@"+path) && ref == Ref{Path: path}
}

// Parse parses a name without its sign: path, path:12 or path:12-20.
func Parse(s string) Ref {
	path, lines, ok := cutLineNumbers(s)
	if !ok {
		return Ref{Path: s}
	}
	return Ref{Path: path, FirstLine: lines[0], LastLine: lines[1]}
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// endChars are the characters that end an unquoted name.
const endChars = "`,;\"'<>()[]{}|，。；：、！？（）《》“”‘’"

// parseAt parses the name at the start of s, which begins with the sign.
// length is the parsed length, whether it is a name or not.
func parseAt(s string) (ref Ref, length int, ok bool) {
	rest := s[1:]
	if inner, ok := strings.CutPrefix(rest, `"`); ok {
		name, long, ok := unquote(inner)
		if !ok || strings.TrimSpace(name) == "" || strings.ContainsRune(name, '\n') {
			return Ref{}, 1, false
		}
		ref, length, after := Ref{Path: name, Quoted: true}, len(`@""`)+long, inner[long+1:]
		digits := 0
		for digits < len(after) && strings.IndexByte(":0123456789-", after[digits]) >= 0 {
			digits++
		}
		tail := strings.TrimRight(after[:digits], ":-")
		if _, lines, ok := cutLineNumbers("x" + tail); ok {
			ref.FirstLine, ref.LastLine = lines[0], lines[1]
			length += len(tail)
		}
		return ref, length, true
	}
	if end := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) ||
			strings.ContainsRune(endChars, r)
	}); end >= 0 {
		rest = rest[:end]
	}
	name := strings.TrimRight(rest, ".:!?*")
	if rest == "." || rest == ".." {
		name = rest
	} else if strings.IndexFunc(name, isWordRune) < 0 {
		return Ref{}, 1 + len(rest), false
	}
	return Parse(name), 1 + len(name), true
}

// cutLineNumbers removes the line numbers from the end of a name.
func cutLineNumbers(s string) (path string, lines [2]int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, lines, false
	}
	first, last, ranged := strings.Cut(s[i+1:], "-")
	from, err := parseNumber(first)
	to := from
	if ranged && err == nil {
		to, err = parseNumber(last)
	}
	if err != nil || from == 0 || to < from {
		return s, lines, false
	}
	return s[:i], [2]int{from, to}, true
}

// parseNumber parses a number with digits only.
func parseNumber(s string) (int, error) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err
}
