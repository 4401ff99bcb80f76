//go:build unix

package codenav

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/message"
	"coder/internal/host/lsp"
	"coder/internal/tool"
)

// placeArgs names a place in a file: by a symbol, perhaps near a line, or by line and column.
type placeArgs struct {
	Path   string `json:"path" also:"file_path file filename"`
	Symbol string `json:"symbol,omitzero" also:"name identifier word"`
	Line   int    `json:"line,omitzero" also:"line_number row"`
	Column int    `json:"column,omitzero" also:"col character"`
}

const (
	maxSymbol     = 200 // bytes
	lineTolerance = 5   // lines that a model may be off
	maxTries      = 8   // places tried for one symbol
)

// check returns an error for arguments that name no place.
func (a placeArgs) check() error {
	switch {
	case a.Line < 0 || a.Column < 0:
		return errors.New("line and column start at 1")
	case a.Symbol == "" && (a.Line == 0 || a.Column == 0):
		return errors.New("give the place: symbol, or line and column")
	case len(a.Symbol) > maxSymbol || strings.ContainsAny(a.Symbol, "\r\n"):
		return errors.New("symbol must be one name")
	case a.Symbol != "" && strings.TrimSpace(a.Symbol) == "":
		return errors.New("symbol is empty")
	}
	return nil
}

// title describes the place briefly.
func (a placeArgs) title() string {
	title := a.Path
	if a.Line > 0 {
		title += fmt.Sprintf(":%d", a.Line)
	}
	if a.Symbol != "" {
		return title + " " + strings.TrimSpace(a.Symbol)
	}
	return fmt.Sprintf("%s:%d", title, a.Column)
}

// candidates returns the places in a text that may be meant, the likeliest first.
func (a placeArgs) candidates(lines []string) ([]lsp.Position, error) {
	if a.Symbol == "" {
		if a.Line > len(lines) {
			return nil, message.Errorf("%s has only %s", a.Path, tool.FormatCount(len(lines), "line", "lines"))
		}
		line := lines[a.Line-1]
		if n := utf8.RuneCountInString(line); a.Column > n+1 {
			return nil, message.Errorf("line %d of %s has only %s", a.Line, a.Path, tool.FormatCount(n, "character",
				"characters"))
		}
		return []lsp.Position{{Line: a.Line - 1, Character: lsp.UTF16Offset(line, a.Column-1)}}, nil
	}
	symbol := strings.TrimSpace(a.Symbol)
	found := a.sortByDistance(findSymbol(lines, symbol))
	if last := baseSymbol(symbol); len(found) == 0 && last != symbol {
		found = a.sortByDistance(findSymbol(lines, last))
	}
	if len(found) == 0 {
		if a.Line > 0 {
			return nil, message.Errorf("%q is not on or near line %d of %s", symbol, a.Line, a.Path)
		}
		return nil, message.Errorf("%q is not in %s", symbol, a.Path)
	}
	list := make([]lsp.Position, 0, maxTries)
	for _, f := range found[:min(len(found), maxTries)] {
		list = append(list, lsp.Position{Line: f.line, Character: lsp.UTF16Offset(lines[f.line], f.column)})
	}
	return list, nil
}

// position is a place counted from 0 and in characters.
type position struct{ line, column int }

// sortByDistance keeps the places near the given line, if there is one, and sorts them by distance.
func (a placeArgs) sortByDistance(found []position) []position {
	if a.Line == 0 {
		return found
	}
	far := func(s position) int { return abs(s.line - (a.Line - 1)) }
	off := func(s position) int { // from the column, if there is one
		if a.Column == 0 {
			return 0
		}
		return abs(s.column - (a.Column - 1))
	}
	found = slices.DeleteFunc(found, func(s position) bool { return far(s) > lineTolerance })
	slices.SortStableFunc(found, func(x, y position) int {
		return cmp.Or(cmp.Compare(far(x), far(y)), cmp.Compare(off(x), off(y)))
	})
	return found
}

func abs(n int) int { return max(n, -n) }

// findSymbol finds a symbol as a whole word. A place is the start of its last part, where servers expect it.
func findSymbol(lines []string, symbol string) (list []position) {
	offset := len(symbol) - len(baseSymbol(symbol))
	for n, line := range lines {
		for from := 0; ; {
			i := strings.Index(line[from:], symbol)
			if i < 0 {
				break
			}
			at := from + i
			if isWholeWord(line, at, at+len(symbol)) {
				list = append(list, position{n, utf8.RuneCountInString(line[:at+offset])})
			}
			from = at + len(symbol)
		}
	}
	return list
}

// baseSymbol returns the part of a qualified name after the last separator.
func baseSymbol(symbol string) string {
	for _, sep := range []string{"::", "->", ".", "#"} {
		if i := strings.LastIndex(symbol, sep); i >= 0 && i+len(sep) < len(symbol) {
			symbol = symbol[i+len(sep):]
		}
	}
	return symbol
}

// isWholeWord reports whether line[from:to] is not part of a longer name.
func isWholeWord(line string, from, to int) bool {
	first, _ := utf8.DecodeRuneInString(line[from:])
	before, _ := utf8.DecodeLastRuneInString(line[:from])
	last, _ := utf8.DecodeLastRuneInString(line[:to])
	behind, _ := utf8.DecodeRuneInString(line[to:])
	return !(isNameRune(before) && isNameRune(first)) && !(isNameRune(last) && isNameRune(behind))
}

func isNameRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}
