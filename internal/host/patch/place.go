package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
)

const (
	maxPlaces     = 10 // places named in an error
	maxShownLines = 8  // lines an error shows, both expected and nearest
)

// strictness is how strictly lines must match.
type strictness int

const (
	matchExact          strictness = iota // every byte
	ignoreLineEnds                        // ignoring line ends and a byte order mark
	ignoreTrailingSpace                   // also ignoring trailing white space
)

func (how strictness) key(raw string) string {
	switch how {
	case matchExact:
		return raw
	case ignoreLineEnds:
		return strings.TrimRight(strings.TrimPrefix(raw, byteOrderMark), "\r\n")
	}
	return strings.TrimRight(strings.TrimPrefix(raw, byteOrderMark), " \t\r\n")
}

// findPlace finds the one place for a hunk: the index of its first line, and how strictly its lines matched.
func (s *patchedFile) findPlace(h Hunk) (at int, how strictness, err error) {
	want := h.oldLines()
	if len(want) == 0 {
		at, err = s.insertionPlace(h)
		return at, matchExact, err
	}
	for how = matchExact; how <= ignoreTrailingSpace; how++ {
		places := s.findPlaces(h, want, how)
		if len(places) == 0 {
			continue
		}
		if len(places) == 1 {
			return places[0], how, nil
		}
		// The hunk may give a line number. If earlier hunks were found elsewhere, it may be shifted like them,
		// but must not match both ways.
		said, moved := h.Line-1, h.Line-1+s.offset
		isSaid, isMoved := slices.Contains(places, said), slices.Contains(places, moved)
		switch numbered := h.Line > 0 && len(h.After) == 0; {
		case numbered && isSaid && (said == moved || !isMoved):
			return said, how, nil
		case numbered && isMoved && !isSaid:
			return moved, how, nil
		}
		return 0, how, ambiguousError(places)
	}
	return 0, how, s.missingError(want)
}

// insertionPlace returns the place of a hunk without old lines: in an empty file, after the line it names or
// counts, or at the end.
func (s *patchedFile) insertionPlace(h Hunk) (int, error) {
	switch {
	case len(h.After) > 0:
		ends := s.positionsAfter(h.After)
		if len(ends) > 1 {
			return 0, ambiguousError(ends)
		}
		if len(ends) == 0 {
			return 0, message.Errorf("no line %q", h.After[len(h.After)-1])
		}
		return ends[0], nil
	case len(s.lines) == 0:
		return 0, nil
	case h.AtEnd:
		return len(s.lines), nil
	case h.InsertAfter && h.Line+s.offset >= 0 && h.Line+s.offset <= len(s.lines):
		return h.Line + s.offset, nil
	}
	if h.Open {
		s.assumption = "has no lines to find its place by, so it went to the end of the file"
		return len(s.lines), nil
	}
	return 0, errNoContext
}

// findPlaces returns where the wanted lines match lines that earlier hunks did not touch.
func (s *patchedFile) findPlaces(h Hunk, want []Line, how strictness) (places []int) {
	keys := make([]string, len(want))
	for i, l := range want {
		if keys[i] = l.Text; !l.NoNewline {
			keys[i] += "\n" // as in the file
		}
		keys[i] = how.key(keys[i])
	}
	first, last := 0, len(s.lines)-len(want)
	if h.AtEnd {
		first = max(last, 0)
	}
	for at := first; at <= last; at++ {
		n := 0
		for n < len(keys) && how.key(s.lines[at+n]) == keys[n] {
			n++
		}
		free, next := n == len(keys), at // no line was deleted, and nothing inserted where the hunk inserts
		for i := 0; free && i < len(h.Lines); i++ {
			if h.Lines[i].Op == '+' {
				free = len(s.inserted[next]) == 0
				continue
			}
			free = !s.deleted[next]
			next++
		}
		if free {
			places = append(places, at)
		}
	}
	if len(h.After) == 0 {
		return places
	}
	var kept []int // the first place after each match of h.After
	for _, end := range s.positionsAfter(h.After) {
		i, _ := slices.BinarySearch(places, end-1) // the hunk may repeat the last line of h.After
		if i < len(places) && !slices.Contains(kept, places[i]) {
			kept = append(kept, places[i])
		}
	}
	return kept
}

// positionsAfter returns the positions right after the last of the given lines, for each match in order.
func (s *patchedFile) positionsAfter(after []string) (ends []int) {
	next := 0
	for i, l := range s.lines {
		if strings.TrimSpace(strings.TrimPrefix(l, byteOrderMark)) != after[next] {
			continue
		}
		if next == len(after)-1 {
			ends = append(ends, i+1)
		} else {
			next++
		}
	}
	return ends
}

func ambiguousError(places []int) error {
	var lines []string
	for _, at := range places[:min(len(places), maxPlaces)] {
		lines = append(lines, strconv.Itoa(at+1))
	}
	return message.Errorf("matches %d places (lines %s); add lines around it to pick one", len(places),
		strings.Join(lines, ", "))
}

// missingError returns an error with the missing lines and the nearest ones.
func (s *patchedFile) missingError(want []Line) error {
	var b strings.Builder
	b.WriteString("the file does not contain exactly these lines:")
	for _, l := range want[:min(len(want), maxShownLines)] {
		b.WriteString("\n    " + shorten(l.Text))
	}
	if len(want) > maxShownLines {
		fmt.Fprintf(&b, "\n    … %d more", len(want)-maxShownLines)
	}
	texts, lines := make([]string, len(want)), make([]string, len(s.lines))
	for i, l := range want {
		texts[i] = l.Text
	}
	for i, l := range s.lines {
		lines[i] = strings.TrimRight(l, "\r\n")
	}
	at, n, why := Nearest(lines, texts)
	if n == 0 {
		return errors.New(b.String() + "\nread the file again")
	}
	b.WriteString("\nthe nearest are:")
	for i := at; i < at+n; i++ {
		fmt.Fprintf(&b, "\n%4d %s", i+1, shorten(lines[i]))
	}
	if why != "" {
		b.WriteString("\n(" + why + ")")
	}
	return errors.New(b.String())
}
