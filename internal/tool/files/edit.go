package files

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed edit.md
var editDoc string

type editArgs struct {
	Path       string `json:"path" also:"file_path file filename target_file"`
	Old        string `json:"old_string" also:"old_str old_text old" doc:"empty to create the file"`
	New        string `json:"new_string" also:"new_str new_text new"`
	ReplaceAll bool   `json:"replace_all,omitzero" also:"all"`

	// These members occur in calls for other agents' tools.
	Expected int        `json:"expected_replacements,omitzero" hidden:"yes"` // required number, if set
	Then     []nextEdit `json:"then,omitzero" hidden:"yes"`                  // further edits, all or none

	Only hunkSelection `json:"only_hunks,omitzero" hidden:"yes"`
}

// nextEdit is an edit applied to the result of the one before.
type nextEdit struct {
	Old        string `json:"old_string"`
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitzero"`
}

// Edit returns the tool that replaces text in a file.
func Edit(ws *workspace.Workspace, seen *SeenFiles) tool.Tool {
	f := tool.Func[editArgs]{Name: "edit", Doc: editDoc, Aliases: toolAliases("Edit", "editFile", "str_replace",
		"edit_file", "replace")}
	return changeTool(f, ws, seen, func(a editArgs) (string, hunkSelection) { return a.Path, a.Only }, applyEdits)
}

// applyEdits returns the file's content after the edit and its further edits.
func applyEdits(a editArgs, old []byte) (newContent, error) {
	o, err := applyEdit(a, old)
	for i := 0; err == nil && i < len(a.Then); i++ {
		next, failed := applyEdit(editArgs{Path: a.Path, Old: a.Then[i].Old, New: a.Then[i].New,
			ReplaceAll: a.Then[i].ReplaceAll}, o.content)
		if failed != nil {
			err = message.Errorf("edit %d of %d, after the earlier edits: %w; no edit was made", i+2, len(a.Then)+1,
				failed)
		}
		o = newContent{content: next.content, replacements: o.replacements + next.replacements,
			note: tool.JoinNotes(o.note, next.note)}
	}
	return o, err
}

// applyEdit returns the file's content after one edit.
func applyEdit(a editArgs, old []byte) (o newContent, err error) {
	if a.Old == "" {
		if len(old) > 0 && string(old) != bom {
			return o, message.Errorf("%s already exists; give the text to replace in old_string", a.Path)
		}
		o.content, err = rewrite(a.Path, old, a.New)
		return o, err
	}
	switch err := checkText(a.Path, old); {
	case old == nil:
		return o, missingFileError(a.Path)
	case strings.ContainsRune(a.New, 0):
		return o, errors.New("new_string contains a NUL byte; this tool writes text")
	// In a file with an unknown encoding, ASCII can still be replaced by ASCII.
	case errors.Is(err, errEncoding) && isASCII(a.Old) && isASCII(a.New) && !splitsRune(viewText(old), a.Old):
	case err != nil:
		return o, err
	}
	a.ReplaceAll = a.ReplaceAll || a.Expected > 1
	text := viewText(old)
	ends := detectEnding(text)
	if ends == windowsEnds || ends == oldMacEnds {
		text = strings.ReplaceAll(text, string(ends), "\n")
	}
	l, err := replaceText(text, a, ends)
	if err != nil {
		return o, message.Errorf("%s: %w", a.Path, err)
	}
	if a.Expected > 0 && l.count != a.Expected {
		return o, message.Errorf("%s: old_string is in the file %s, not %d; nothing was replaced", a.Path,
			tool.FormatCount(l.count, "time", "times"), a.Expected)
	}
	o = newContent{content: viewBytes(ends.convert(l.text)), replacements: l.count}
	if l.difference != "" {
		o.note = "old_string was matched although " + l.difference
	}
	if ends == unixEnds && strings.Contains(a.Old+a.New, "\r\n") {
		o.note = tool.JoinNotes(o.note, "the lines of this file end with \\n, and so does what was written")
	}
	return o, nil
}

// replaceText returns text, with plain line ends, after the edit: of the
// exact old text or, if it does not occur, of a close enough match.
func replaceText(text string, a editArgs, ends lineEnding) (looseMatch, error) {
	old, new := a.Old, a.New
	if ends != mixedEnds {
		old, new = ends.normalize(a.Old), ends.normalize(a.New)
		if old == new && a.Old != a.New {
			return looseMatch{},
				errors.New("old_string and new_string differ only in line endings; this tool keeps the file's line endings: use a command to convert them")
		}
	}
	got, n, err := substitute(text, old, new, a.ReplaceAll)
	if err == nil {
		return looseMatch{text: got, count: n}, nil
	}
	var missing textNotFoundError
	if errors.As(err, &missing) && len(text) <= maxChanged && utf8.ValidString(text) {
		l, also := substituteLoosely(text, ends.normalize(old), ends.normalize(new), a.ReplaceAll)
		if l.count > 0 || also != nil {
			return l, also
		}
	}
	return looseMatch{}, err
}

// missingFileError is the path of a missing file in an edit.
type missingFileError string

func (p missingFileError) Error() string {
	return string(p) + " does not exist; an empty old_string creates it"
}

// Is makes it match [fs.ErrNotExist].
func (p missingFileError) Is(target error) bool { return target == fs.ErrNotExist }

// splitsRune reports whether s follows a non-ASCII byte somewhere in text: in some encodings it might
// then begin with the second half of a character.
func splitsRune(text, s string) bool {
	for i := range findAll(text, s, len(s)) {
		if i > 0 && text[i-1] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// substitute replaces old, which is not empty, by new in text: its only
// occurrence, or all of them. It returns the number of replacements.
func substitute(text, old, new string, all bool) (string, int, error) {
	if old == new {
		return "", 0, errors.New("old_string and new_string are the same")
	}
	if !strings.Contains(old, "\r") && strings.Contains(text, "\r\n") {
		return substituteLines(text, old, strings.ReplaceAll(new, "\r\n", "\n"), all)
	}
	spots, err := findReplacements(text, old, all)
	if err != nil {
		return "", 0, err
	}
	var b strings.Builder
	b.Grow(len(text) + len(spots)*(len(new)-len(old)))
	done := 0
	for _, at := range spots {
		b.WriteString(text[done:at])
		b.WriteString(new)
		done = at + len(old)
	}
	b.WriteString(text[done:])
	return b.String(), len(spots), nil
}

// maxOccurrences limits how many occurrences are counted if there should be one.
const maxOccurrences = 1000

// findReplacements returns where to replace old: everywhere, or at its only occurrence.
func findReplacements(text, old string, all bool) (spots []int, err error) {
	step := 1 // overlapping occurrences are ambiguous, too
	if all {
		step = len(old)
	}
	for at := range findAll(text, old, step) {
		if spots = append(spots, at); !all && len(spots) == maxOccurrences {
			break
		}
	}
	switch {
	case len(spots) == 0:
		return nil, notFound(text, old)
	case len(spots) > 1 && !all:
		var lines []int
		line, done := 1, 0
		for _, at := range spots {
			line += strings.Count(text[done:at], "\n")
			lines, done = append(lines, line), at
		}
		return nil, message.Errorf("old_string is in %s; add lines around it to pick one, or set replace_all",
			describePlaces(lines))
	}
	return spots, nil
}

// findAll yields the positions of s in text, each at least step bytes after the one before.
func findAll(text, s string, step int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for from := 0; from <= len(text); {
			i := strings.Index(text[from:], s)
			if i < 0 || !yield(from+i) {
				return
			}
			from += i + step
		}
	}
}

// maxPlaces limits how many places an error names.
const maxPlaces = 10

// describePlaces describes the number of places and names the first lines.
func describePlaces(lines []int) string {
	var shown []string
	for _, n := range lines[:min(len(lines), maxPlaces)] {
		shown = append(shown, strconv.Itoa(n))
	}
	if len(lines) > maxPlaces {
		shown = append(shown, "…")
	}
	return fmt.Sprintf("%d places (lines %s)", len(lines), strings.Join(shown, ", "))
}
