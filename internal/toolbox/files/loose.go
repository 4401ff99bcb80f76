package files

import (
	"fmt"
	"strings"
)

// How a text may differ from the lines it is matched with.
const (
	byLineEnds = "its line ends differ"
	byTrailing = "white space at the end of lines differs"
	byIndent   = "its indentation differs; new_string was indented like the file"
)

// substituteLoosely replaces old by new where it stands in text but for its
// line ends, white space at the end of lines, or the indentation of all of it.
// It takes whole lines only, and only if there is one place that fits. how says
// what was overlooked, "" if old is not there even so.
func substituteLoosely(text, old, new string) (got, how string, err error) {
	if old, new := plainEnds(old), plainEnds(new); old != new && strings.Contains(text, old) && !strings.Contains(text, "\r\n") {
		got, _, err := substitute(text, old, new, false)
		return got, byLineEnds, err
	}
	b := newBlock(text, plainEnds(old))
	if !strings.ContainsFunc(old, func(r rune) bool { return r > ' ' }) {
		return "", "", nil
	}
	if at := b.find(func(have, want string) bool { return trimEnd(have) == trimEnd(want) }); len(at) > 0 {
		return b.replace(at, plainEnds(new), byTrailing)
	}
	if at := b.find(func(have, want string) bool { return strings.TrimSpace(have) == strings.TrimSpace(want) }); len(at) == 1 {
		if indented, ok := b.indentLike(at[0], plainEnds(new)); ok {
			return b.replace(at, indented, byIndent)
		}
	} else if len(at) > 1 {
		return "", "", b.tooMany(at)
	}
	return "", "", nil
}

func plainEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func trimEnd(s string) string { return strings.TrimRight(s, " \t\r\n") }

// block is a text in lines and the lines looked for in it.
type block struct {
	lines []string // with their ends
	want  []string // without
	ended bool     // the last wanted line ends with a line end
}

func newBlock(text, old string) *block {
	b := &block{lines: strings.SplitAfter(text, "\n"), ended: strings.HasSuffix(old, "\n")}
	b.want = strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	return b
}

// find lists where all wanted lines stand, each equal to the one there.
func (b *block) find(equal func(have, want string) bool) (places []int) {
next:
	for at := range len(b.lines) - len(b.want) + 1 {
		for i, w := range b.want {
			if !equal(b.lines[at+i], w) {
				continue next
			}
		}
		places = append(places, at)
	}
	return places
}

// replace puts new in the place of the wanted lines. More than one place is
// too many.
func (b *block) replace(places []int, new, how string) (string, string, error) {
	if len(places) > 1 {
		return "", "", b.tooMany(places)
	}
	at := places[0]
	text, begin := strings.Join(b.lines, ""), len(strings.Join(b.lines[:at], ""))
	end := begin + len(strings.Join(b.lines[at:at+len(b.want)], ""))
	lf := lineEnd(text, begin)
	if !b.ended {
		end = begin + len(strings.TrimRight(text[begin:end], "\r\n"))
	}
	return text[:begin] + strings.ReplaceAll(new, "\n", lf) + text[end:], how, nil
}

// tooMany is the error of wanted lines that stand in several places.
func (b *block) tooMany(places []int) error {
	lines := make([]int, len(places))
	for i, at := range places {
		lines[i] = at + 1
	}
	return fmt.Errorf("old_string is not in the file as it stands; with other white space it is in %s; give it exactly, with lines around it to tell which", placesOn(lines))
}

// indentLike gives the lines of new the indentation that the wanted lines have
// in the file. That can be told if each indentation in old stands for one in
// the file, and each one in new either stands in old or all are off by the same.
func (b *block) indentLike(at int, new string) (string, bool) {
	stands := make(map[string]string)
	for i, w := range b.want {
		if strings.TrimSpace(w) == "" {
			continue
		}
		have := indent(b.lines[at+i])
		if other, ok := stands[indent(w)]; ok && other != have {
			return "", false
		}
		stands[indent(w)] = have
	}
	var out strings.Builder
	for line := range strings.Lines(new) {
		if strings.TrimSpace(line) == "" {
			out.WriteString(line)
			continue
		}
		in, ok := reindent(indent(line), stands)
		if !ok {
			return "", false
		}
		out.WriteString(in + line[len(indent(line)):])
	}
	return out.String(), true
}

// reindent is what an indentation stands for. One that is not known may follow
// from the known ones if those all differ by the same beginning.
func reindent(in string, stands map[string]string) (string, bool) {
	if have, ok := stands[in]; ok {
		return have, true
	}
	add, strip, first := "", "", true
	for want, have := range stands {
		a, s, ok := strings.TrimSuffix(have, want), strings.TrimSuffix(want, have), true
		switch {
		case strings.HasSuffix(have, want):
			s = ""
		case strings.HasSuffix(want, have):
			a = ""
		default:
			ok = false
		}
		if !ok || !first && (a != add || s != strip) {
			return "", false
		}
		add, strip, first = a, s, false
	}
	if !strings.HasPrefix(in, strip) {
		return "", false
	}
	return add + in[len(strip):], true
}

func indent(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }
