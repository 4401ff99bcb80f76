package provenance

import (
	"slices"
	"unicode"
)

// findUnmatched reports for each of n earlier lines whether no later line matches it.
func findUnmatched(n int, match []int) []bool {
	gone := slices.Repeat([]bool{true}, n)
	for _, at := range match {
		if at >= 0 {
			gone[at] = false
		}
	}
	return gone
}

// maxMoveSources limits how many possible sources of a moved line are examined.
const maxMoveSources = 16

// followMoves finds where new lines were moved from, and adds that to match: two or more adjacent
// lines, not all of them braces or blank, or one line with enough letters that occurs once before and
// once after. gone marks the earlier lines that were removed.
func followMoves(earlier, now []string, gone []bool, match []int) {
	if !slices.Contains(gone, true) || !slices.Contains(match, -1) {
		return
	}
	old, later := trimLines(earlier), trimLines(now)
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
		for _, at := range twins[later[i]][:min(len(twins[later[i]]), maxMoveSources)] {
			n := 0
			for i+n < len(later) && at+n < len(old) && match[i+n] < 0 && gone[at+n] && old[at+n] == later[i+n] {
				n++
			}
			if n > most {
				from, most = at, n
			}
		}
		if most == 0 || !slices.ContainsFunc(later[i:i+most], func(s string) bool { return countLetters(s) > 0 }) {
			continue
		}
		if most == 1 && (countLetters(later[i]) < minLetters || countLine(old, later[i]) > 1 ||
			countLine(later, later[i]) > 1) {
			continue
		}
		for n := range most {
			match[i+n], gone[from+n] = from+n, false
		}
		i += most - 1
	}
}

// minLetters is how many letters and digits a single line needs to
// be recognized: an "else" or an "end" may be anyone's.
const minLetters = 6

func countLetters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func countLine(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// laterVersion is a file's content after a change: its lines, their
// earlier positions, and which of the followed lines are new.
type laterVersion struct {
	text     []string
	match    []int
	newLines []linePosition
}

// followMovedLines follows lines that a call inserted into the file into the files that the call removed them from.
func (t *tracer) followMovedLines(c *Change, later *laterVersion) {
	looked := 0
	for _, f := range c.Files {
		if len(later.newLines) == 0 || looked == maxSources || t.findChanges == nil {
			return
		}
		if !hasContent(f.Before) || f.Before.Path == t.name || f.Before.Hash == f.After.Hash {
			continue
		}
		looked++
		before, err := t.readContent(f.Before)
		if err != nil {
			continue
		}
		after, err := t.contentAfter(c, f)
		if err != nil {
			continue
		}
		old := splitLines(before)
		match := slices.Clone(later.match)
		followMoves(old, later.text, findUnmatched(len(old), matchLines(old, splitLines(after))), match)
		source := *t
		source.name, source.hash, source.text, source.unattributed, source.foundAt = f.Before.Path, f.Before.Hash, old,
			nil, c.Time
		later.newLines = slices.DeleteFunc(later.newLines, func(p linePosition) bool {
			at := match[p.earlierLine]
			if at >= 0 {
				source.unattributed = append(source.unattributed, linePosition{p.line, at})
			}
			return at >= 0
		})
		later.match = match
		if len(source.unattributed) > 0 {
			_ = source.follow(t.changesBefore(c, source.name)) // the caller checks the context, too
		}
	}
}

// changesBefore returns the changes of another file before a call.
func (t *tracer) changesBefore(c *Change, name string) []*Change {
	list, ok := t.changesByName[name]
	if !ok {
		list = t.findChanges(name)
		for i, o := range list {
			id := callKey{o.Session, o.Done}
			if known := t.changeByCall[id]; known != nil && known.changesFile(name) {
				list[i] = known
			} else {
				t.changeByCall[id] = o
			}
		}
		t.changesByName[name] = list
	}
	end := slices.IndexFunc(list, func(o *Change) bool {
		return o.Time.After(c.Time) || o.Session == c.Session && o.Done >= c.Done
	})
	if end < 0 {
		return list
	}
	return list[:end]
}
