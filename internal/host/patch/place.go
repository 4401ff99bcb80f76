package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPlaces = 10 // places named in an error
	maxShown  = 8  // lines an error shows, both expected and nearest
)

// likeness is how strictly lines must match.
type likeness int

const (
	exact      likeness = iota // every byte
	lineEnds                   // ignoring line ends and a byte order mark
	whiteSpace                 // also ignoring trailing white space
)

func (how likeness) key(raw string) string {
	switch how {
	case exact:
		return raw
	case lineEnds:
		return strings.TrimRight(strings.TrimPrefix(raw, mark), "\r\n")
	}
	return strings.TrimRight(strings.TrimPrefix(raw, mark), " \t\r\n")
}

// place finds the one place for a hunk: the index of its first line, and how strictly its lines matched.
func (s *sheet) place(h Hunk) (at int, how likeness, err error) {
	want := h.old()
	if len(want) == 0 {
		at, err = s.gap(h)
		return at, exact, err
	}
	for how = exact; how <= whiteSpace; how++ {
		places := s.places(h, want, how)
		if len(places) == 0 {
			continue
		}
		if len(places) == 1 {
			return places[0], how, nil
		}
		// The hunk may give a line number. If earlier hunks were found elsewhere, it may be shifted like them,
		// but must not match both ways.
		said, moved := h.Line-1, h.Line-1+s.shift
		isSaid, isMoved := slices.Contains(places, said), slices.Contains(places, moved)
		switch numbered := h.Line > 0 && len(h.After) == 0; {
		case numbered && isSaid && (said == moved || !isMoved):
			return said, how, nil
		case numbered && isMoved && !isSaid:
			return moved, how, nil
		}
		return 0, how, several(places)
	}
	return 0, how, s.missing(want)
}

// gap returns the place of a hunk without old lines: in an empty file, after the line it names or
// counts, or at the end.
func (s *sheet) gap(h Hunk) (int, error) {
	switch {
	case len(h.After) > 0:
		ends := s.behind(h.After)
		if len(ends) > 1 {
			return 0, several(ends)
		}
		if len(ends) == 0 {
			return 0, fmt.Errorf("no line %q", h.After[len(h.After)-1])
		}
		return ends[0], nil
	case len(s.lines) == 0:
		return 0, nil
	case h.AtEnd:
		return len(s.lines), nil
	case h.Counted && h.Line+s.shift >= 0 && h.Line+s.shift <= len(s.lines):
		return h.Line + s.shift, nil
	}
	if h.Open {
		s.assumed = "has no lines to find its place by, so it went to the end of the file"
		return len(s.lines), nil
	}
	return 0, errNoContext
}

// places returns where the wanted lines match lines that earlier hunks did not touch.
func (s *sheet) places(h Hunk, want []Line, how likeness) (places []int) {
	keys := make([]string, len(want))
	for i, l := range want {
		if keys[i] = l.Text; !l.Bare {
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
				free = len(s.come[next]) == 0
				continue
			}
			free = !s.gone[next]
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
	for _, end := range s.behind(h.After) {
		i, _ := slices.BinarySearch(places, end-1) // the hunk may repeat the last line of h.After
		if i < len(places) && !slices.Contains(kept, places[i]) {
			kept = append(kept, places[i])
		}
	}
	return kept
}

// behind returns the positions right after the last of the given lines, for each match in order.
func (s *sheet) behind(after []string) (ends []int) {
	next := 0
	for i, l := range s.lines {
		if strings.TrimSpace(strings.TrimPrefix(l, mark)) != after[next] {
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

func several(places []int) error {
	var lines []string
	for _, at := range places[:min(len(places), maxPlaces)] {
		lines = append(lines, strconv.Itoa(at+1))
	}
	return fmt.Errorf("matches %d places (lines %s); add lines around it to pick one", len(places), strings.Join(lines, ", "))
}

// missing returns an error with the missing lines and the nearest ones.
func (s *sheet) missing(want []Line) error {
	var b strings.Builder
	b.WriteString("the file does not contain exactly these lines:")
	for _, l := range want[:min(len(want), maxShown)] {
		b.WriteString("\n    " + short(l.Text))
	}
	if len(want) > maxShown {
		fmt.Fprintf(&b, "\n    … %d more", len(want)-maxShown)
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
		fmt.Fprintf(&b, "\n%4d %s", i+1, short(lines[i]))
	}
	if why != "" {
		b.WriteString("\n(" + why + ")")
	}
	return errors.New(b.String())
}
