package provenance

import (
	"slices"
	"unicode"
)

// vanished reports for each of n earlier lines whether no later line matches it.
func vanished(n int, match []int) []bool {
	gone := slices.Repeat([]bool{true}, n)
	for _, at := range match {
		if at >= 0 {
			gone[at] = false
		}
	}
	return gone
}

// maxTwins limits how many possible sources of a moved line are examined.
const maxTwins = 16

// followMoves finds where new lines were moved from, and adds that to match: two or more adjacent
// lines, not all of them braces or blank, or one line with enough letters that occurs once before and
// once after. gone marks the earlier lines that were removed.
func followMoves(earlier, now []string, gone []bool, match []int) {
	if !slices.Contains(gone, true) || !slices.Contains(match, -1) {
		return
	}
	old, later := trimmed(earlier), trimmed(now)
	twins := make(map[string][]int)
	for at, text := range old {
		if gone[at] {
			twins[text] = append(twins[text], at)
		}
	}
	for i := 0; i < len(later); i++ {
		if match[i] >= 0 {
			continue
		}
		from, most := -1, 0
		for _, at := range twins[later[i]][:min(len(twins[later[i]]), maxTwins)] {
			n := 0
			for i+n < len(later) && at+n < len(old) && match[i+n] < 0 && gone[at+n] && old[at+n] == later[i+n] {
				n++
			}
			if n > most {
				from, most = at, n
			}
		}
		if most == 0 || !slices.ContainsFunc(later[i:i+most], func(s string) bool { return letters(s) > 0 }) {
			continue
		}
		if most == 1 && (letters(later[i]) < fewLetters || count(old, later[i]) > 1 || count(later, later[i]) > 1) {
			continue
		}
		for n := range most {
			match[i+n], gone[from+n] = from+n, false
		}
		i += most - 1
	}
}

// fewLetters is how many letters and digits a single line needs to
// be recognized: an "else" or an "end" may be anyone's.
const fewLetters = 6

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// arrival is a file's content after a change: its lines, their
// earlier positions, and which of the followed lines are new.
type arrival struct {
	text  []string
	match []int
	new   []place
}

// taken follows lines that a call inserted into the file into the files that the call removed them from.
func (t *tracer) taken(c *Change, later *arrival) {
	looked := 0
	for _, f := range c.Files {
		if len(later.new) == 0 || looked == maxSources || t.others == nil {
			return
		}
		if !holds(f.Before) || f.Before.Path == t.name || f.Before.Hash == f.After.Hash {
			continue
		}
		looked++
		before, err := t.content(f.Before)
		if err != nil {
			continue
		}
		after, err := t.outcome(c, f)
		if err != nil {
			continue
		}
		old := linesOf(before)
		match := slices.Clone(later.match)
		followMoves(old, later.text, vanished(len(old), matchIndented(old, linesOf(after))), match)
		source := *t
		source.name, source.hash, source.text, source.open, source.until = f.Before.Path, f.Before.Hash, old, nil, c.Time
		later.new = slices.DeleteFunc(later.new, func(p place) bool {
			at := match[p.at]
			if at >= 0 {
				source.open = append(source.open, place{p.line, at})
			}
			return at >= 0
		})
		later.match = match
		if len(source.open) > 0 {
			_ = source.follow(t.before(c, source.name)) // the caller checks the context, too
		}
	}
}

// before returns the changes of another file before a call.
func (t *tracer) before(c *Change, name string) []*Change {
	list, ok := t.read[name]
	if !ok {
		list = t.others(name)
		for i, o := range list {
			id := call{o.Session, o.Done}
			if known := t.calls[id]; known != nil && known.touches(name) {
				list[i] = known
			} else {
				t.calls[id] = o
			}
		}
		t.read[name] = list
	}
	end := slices.IndexFunc(list, func(o *Change) bool {
		return o.Time.After(c.Time) || o.Session == c.Session && o.Done >= c.Done
	})
	if end < 0 {
		return list
	}
	return list[:end]
}
