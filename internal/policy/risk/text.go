package risk

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// errContinued reports an unsupported line continuation.
var errContinued = errors.New("a line continuation may hide a command")

// parseJoined parses text with its continued lines joined. A shell removes a backslash and the line end
// after it before it looks for words, operators and quotes, even between $ and (; a parser that does so
// later, or not everywhere, sees other commands. So parseJoined removes each and parses again, until
// only literal ones are left: in single quotes and in here-documents with a quoted delimiter. All
// shells read the text before the first one alike, so its place is certain. It returns the text to run.
func parseJoined(text string) (string, *syntax.File, error) {
	file, err := parse(text, syntax.LangBash)
	work := 0
	for from := 0; err == nil; {
		at := nextContinuation(text, from)
		if at < 0 {
			return text, file, nil
		}
		if work += len(text); work > maxText {
			return text, nil, errContinued
		}
		switch place := contextAt(file, uint(at)); place {
		case contextQuoted:
			from = at + 2
			continue
		case contextComment: // it ends with the line, with or without a backslash
			text, from = text[:at]+text[at+1:], at
		case contextBackquoted, contextDollar:
			return text, nil, errContinued
		default:
			text, from = text[:at]+text[at+2:], at
		}
		file, err = parse(text, syntax.LangBash)
	}
	if nextContinuation(text, 0) >= 0 {
		err = errContinued
	}
	return text, nil, err
}

// nextContinuation returns the index of the next backslash that continues a
// line, as far as backslashes can tell; -1 if there is none.
func nextContinuation(text string, from int) int {
	for i := from; ; i++ {
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n
		slashes := i - len(strings.TrimRight(text[:i], `\`))
		if slashes%2 == 1 && i-1 >= from {
			return i - 1
		}
	}
}

type textContext uint8

const (
	contextPlain textContext = iota
	contextQuoted
	contextComment
	contextBackquoted
	contextDollar // in $'...'
)

// contextAt returns the kind of place of an offset in the text.
func contextAt(file *syntax.File, at uint) (p textContext) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			return false
		}
		within := n.Pos().Offset() <= at && at < n.End().Offset()
		switch n := n.(type) {
		case *syntax.Comment:
			if within {
				p = contextComment
			}
		case *syntax.SglQuoted:
			if within && p != contextBackquoted {
				if p = contextQuoted; n.Dollar {
					p = contextDollar
				}
			}
		case *syntax.CmdSubst:
			if within && n.Backquotes {
				p = contextBackquoted
			}
		case *syntax.Redirect:
			if n.Hdoc != nil && n.Hdoc.Pos().Offset() <= at && at < n.Hdoc.End().Offset() && isQuotedDelimiter(n.Word) &&
				p != contextBackquoted {
				p = contextQuoted
			}
		}
		return true
	})
	return p
}

// isDeceptive reports whether r makes text look different from what it is:
// control characters, and those that reverse the writing direction.
func isDeceptive(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func nestingDepth(text string) (deepest int) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

const maxShown = 120 // maximum runes of a finding's place

// plainText makes part of a command line safe and short enough to show.
func plainText(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n++; n > maxShown {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case isDeceptive(r) || r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// describeParseError describes where the parser failed.
func describeParseError(err error) string {
	var at syntax.Pos
	var wrong syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(err, &wrong) && (wrong.Incomplete || strings.Contains(wrong.Text, "without")):
		return fmt.Sprintf("could not parse the shell syntax: what begins at line %d, column %d is not closed",
			wrong.Pos.Line(), wrong.Pos.Col())
	case errors.As(err, &wrong):
		at = wrong.Pos
	case errors.As(err, &foreign):
		at = foreign.Pos
	default:
		return plainText(err.Error())
	}
	return fmt.Sprintf("could not parse the shell syntax from line %d, column %d on", at.Line(), at.Col())
}
