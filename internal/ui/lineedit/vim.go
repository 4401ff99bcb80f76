package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// vim is the state of vim's keys. The zero vim types what is pressed.
type vim struct {
	normal     bool // keys are commands
	count      int  // typed before a command or motion; 0 if none
	op         rune // d, c or y, which waits for a motion; 0 if none
	opCount    int  // the count before op
	awaiting   rune // f, F, t, T or r, which waits for a character; 0 if none
	findOp     rune // the last of f, F, t and T
	findRune   rune // its character
	keys       []Key
	isChange   bool  // the command whose keys these are is a change
	lastChange []Key // the change that . repeats
}

const (
	maxCount  = 9999
	maxRepeat = 4096 // keys of a change that . repeats
)

// IsNormalMode reports whether keys are commands of vim.
func (e *Editor) IsNormalMode() bool { return e.Vim && e.vim.normal }

// handleVimKey does what a key means in vim, and reports whether it means anything there. Other keys do what
// they always do.
func (e *Editor) handleVimKey(k Key, was keyKind) (done bool) {
	v := &e.vim
	if v.keys = append(v.keys, k); len(v.keys) > maxRepeat {
		v.keys, v.isChange = nil, false
	}
	esc := k == Key{Name: Escape}
	switch {
	case !v.normal && esc && !e.IsEmpty():
		v.normal = true
		e.cursor = max(lineStart(e.draft.raw, e.cursor), clusterStart(e.draft.raw, e.cursor))
	case !v.normal:
		return false
	case esc:
		done = v.op != 0 || v.awaiting != 0 || v.count > 0 || !e.IsEmpty() && !e.IsQuestion
		v.isChange = false
		e.endCommand()
		return done
	case k == Key{Name: Backspace}:
		k = RuneKey('h')
	case k == Key{Name: Delete}:
		k = RuneKey('x')
	case k.Name != Char || k.Mod&^Shift != 0:
		v.keys = nil
		e.endCommand()
		return false
	}
	if esc || e.handleCommand(k.Rune, was) {
		e.endCommand()
	}
	return true
}

// endCommand forgets what a command waited for, and keeps a change for the dot.
func (e *Editor) endCommand() {
	v := &e.vim
	v.count, v.op, v.opCount, v.awaiting = 0, 0, 0, 0
	if !v.normal { // what is typed belongs to the change
		return
	}
	if v.isChange {
		v.lastChange = v.keys
	}
	v.keys, v.isChange = nil, false
	e.clampCursor()
}

// clampCursor moves the cursor off the end of a line: in normal mode it is on a character.
func (e *Editor) clampCursor() {
	if text := e.draft.raw; e.cursor == lineEnd(text, e.cursor) && e.cursor > lineStart(text, e.cursor) {
		e.cursor = clusterStart(text, e.cursor)
	}
}

// handleCommand takes a key in normal mode, and reports whether a command is complete.
func (e *Editor) handleCommand(r rune, was keyKind) (complete bool) {
	v := &e.vim
	n := min(max(1, v.count)*max(1, v.opCount), maxCount)
	switch {
	case v.awaiting == 'r':
		e.overwrite(n, func(rune) rune { return r })
	case v.awaiting != 0:
		v.findOp, v.findRune = v.awaiting, r
		e.findInLine(v.findOp, n)
	case r >= '1' && r <= '9', r == '0' && v.count > 0:
		v.count = min(v.count*10+int(r-'0'), maxCount)
		return false
	case strings.ContainsRune("fFtT", r), r == 'r' && v.op == 0:
		v.awaiting = r
		return false
	case r == v.op:
		e.operateAround(r, 0, n-1)
	case v.op == 0 && strings.ContainsRune("dcy", r):
		v.op, v.opCount, v.count = r, v.count, 0
		return false
	case r == 'j' && v.op != 0:
		e.operateAround(v.op, 0, n)
	case r == 'k' && v.op != 0:
		e.operateAround(v.op, n, 0)
	case r == 'j', r == 'k':
		for range n {
			if r == 'j' {
				e.moveDown(was)
			} else {
				e.moveUp(was)
			}
			was = e.lastKind
		}
	case r == ';' && v.findOp != 0:
		e.findInLine(v.findOp, n)
	case r == ',' && v.findOp != 0:
		e.findInLine(v.findOp^('a'^'A'), n)
	default:
		if to, whole, ok := e.motionTarget(r, n); ok {
			e.applyMotion(to, whole)
		} else if v.op == 0 {
			e.editCommand(r, n)
		}
	}
	return true
}

// applyMotion moves the cursor to a place, or has the operator that waits work on the text up to there; whole
// says that the character there belongs to it.
func (e *Editor) applyMotion(to int, whole bool) {
	if e.vim.op == 0 {
		e.cursor = to
		return
	}
	from, to := min(e.cursor, to), max(e.cursor, to)
	if whole {
		to = clusterEnd(e.draft.raw, to)
	}
	e.operate(e.vim.op, from, to, false)
}

// motionTarget is where a motion leads, and whether the character there belongs to it.
func (e *Editor) motionTarget(r rune, n int) (to int, whole, ok bool) {
	text := e.draft.raw
	to = e.cursor
	repeat := func(step func(string, int) int) {
		for range n {
			to = step(text, to)
		}
	}
	switch r {
	case 'h':
		repeat(clusterStart)
		to = max(to, lineStart(text, e.cursor))
	case 'l', ' ':
		repeat(clusterEnd)
		to = min(to, lineEnd(text, e.cursor))
	case 'w':
		switch {
		case e.vim.op == 'c' && classAt(text, to) != classBlank:
			to = nthWordEnd(text, to, n)
		default:
			repeat(nextWord)
			if end := lineEnd(text, e.cursor); e.vim.op != 0 && n == 1 {
				to = min(to, end)
			}
		}
	case 'b':
		repeat(prevWord)
	case 'e':
		for range n {
			to = clusterEnd(text, to)
			to = clusterStart(text, nthWordEnd(text, skipClass(text, to, classBlank), 1))
		}
		return max(to, e.cursor), true, true
	case '0':
		to = lineStart(text, to)
	case '^':
		for to = lineStart(text, to); to < lineEnd(text, to) && classAt(text, to) == classBlank; {
			to = clusterEnd(text, to)
		}
	case '$':
		to = lineEnd(text, to)
	default:
		return to, false, false
	}
	return to, false, true
}

// findInLine moves to the nth place in the line where f, F, t or T finds its character.
func (e *Editor) findInLine(find rune, n int) {
	text, to := e.draft.raw, e.cursor
	start, end := lineStart(text, to), lineEnd(text, to)
	forward := find == 'f' || find == 't'
	for n > 0 {
		if forward {
			to = clusterEnd(text, to)
		} else {
			to = clusterStart(text, to)
		}
		if to >= end || to < start || to == 0 && !forward && !e.matchesFind(to) {
			return
		}
		if e.matchesFind(to) {
			n--
		} else if to == start && !forward {
			return
		}
	}
	switch find {
	case 't':
		to = clusterStart(text, to)
	case 'T':
		to = clusterEnd(text, to)
	}
	e.applyMotion(to, forward)
}

// matchesFind reports whether what is looked for stands at a place.
func (e *Editor) matchesFind(i int) bool {
	r, _ := utf8.DecodeRuneInString(e.draft.raw[i:])
	return r == e.vim.findRune
}

// operate deletes, changes or yanks the text from one place to another; lines says that it is whole lines.
func (e *Editor) operate(op rune, from, to int, lines bool) {
	if from < to || lines {
		d := e.draft.withRaw(e.draft.raw[from:to])
		if lines && !strings.HasSuffix(d.raw, "\n") {
			d.raw += "\n"
		}
		if e.kills = append(e.kills, d); len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
	if op != 'y' {
		e.remove(from, to)
		e.vim.isChange = true
	}
	e.cursor = min(from, len(e.draft.raw))
	e.vim.normal = op != 'c'
}

// operateAround does the same to whole lines: that of the cursor, and so many above and below it.
func (e *Editor) operateAround(op rune, above, below int) {
	text := e.draft.raw
	from, to := lineStart(text, e.cursor), lineEnd(text, e.cursor)
	for ; above > 0 && from > 0; above-- {
		from = lineStart(text, from-1)
	}
	for ; below > 0 && to < len(text); below-- {
		to = lineEnd(text, to+1)
	}
	at := e.cursor
	switch e.operateLines(op, from, to); op {
	case 'y':
		e.cursor = min(at, from+(at-from)) // the cursor stays, unless the lines begin above it
		if from < lineStart(text, at) {
			e.cursor = from
		}
	case 'd':
		e.cursor = lineStart(e.draft.raw, e.cursor)
	}
}

// operateLines works on the lines between two places; of deleted lines one line end goes, too.
func (e *Editor) operateLines(op rune, from, to int) {
	if op != 'd' {
		e.operate(op, from, to, true)
		return
	}
	switch text := e.draft.raw; {
	case to < len(text):
		e.operate(op, from, to+1, true)
	case from > 0: // the last lines: the end of the line before them goes
		e.operate('y', from, to, true)
		e.remove(from-1, to)
		e.vim.isChange = true
	default:
		e.operate(op, from, to, true)
	}
}

// editCommand does a command that is no motion and takes none.
func (e *Editor) editCommand(r rune, n int) {
	text, v := e.draft.raw, &e.vim
	start, end := lineStart(text, e.cursor), lineEnd(text, e.cursor)
	switch r {
	case 'x':
		to, _, _ := e.motionTarget('l', n)
		e.operate('d', e.cursor, to, false)
	case 'X':
		to, _, _ := e.motionTarget('h', n)
		e.operate('d', to, e.cursor, false)
	case 'D':
		e.operate('d', e.cursor, end, false)
	case 'C':
		e.operate('c', e.cursor, end, false)
	case 'p', 'P':
		e.pasteKill(r == 'p', n)
	case 'u':
		for range n {
			e.undoStep(keyOther)
		}
	case '~':
		e.overwrite(n, swapCase)
		e.cursor = min(clusterEnd(e.draft.raw, e.cursor), end)
	case '.':
		keys := v.lastChange
		v.keys = nil
		for _, k := range keys {
			e.HandleKey(k)
		}
		v.lastChange, v.keys = keys, nil
	case 'i', 'a', 'I', 'A', 'o', 'O':
		v.normal, v.isChange = false, true
		switch r {
		case 'a':
			e.cursor = min(clusterEnd(text, e.cursor), end)
		case 'I':
			e.cursor, _, _ = e.motionTarget('^', 1)
		case 'A':
			e.cursor = end
		case 'o':
			e.cursor = end
			e.insertStep("\n")
		case 'O':
			e.cursor = start
			e.insertStep("\n")
			e.cursor = start
		}
	}
}

// pasteKill puts in what was deleted or yanked last, behind the cursor or before it; whole lines, below the
// line or above it.
func (e *Editor) pasteKill(behind bool, n int) {
	if len(e.kills) == 0 {
		return
	}
	e.vim.isChange = true
	text := e.draft.raw
	put := e.draft.importPastes(e.kills[len(e.kills)-1])
	put = strings.Repeat(put, min(n, maxDraft/max(1, len(put))))
	switch {
	case !strings.HasSuffix(put, "\n"):
		if behind {
			e.cursor = min(clusterEnd(text, e.cursor), lineEnd(text, e.cursor))
		}
		e.insertStep(put)
		e.cursor = clusterStart(e.draft.raw, e.cursor)
	case behind:
		e.cursor = lineEnd(text, e.cursor)
		at := e.cursor + 1
		e.insertStep("\n" + strings.TrimSuffix(put, "\n"))
		e.cursor = min(at, len(e.draft.raw))
	default:
		at := lineStart(text, e.cursor)
		e.cursor = at
		e.insertStep(put)
		e.cursor = at
	}
}

// overwrite puts other characters in the place of the next n, if the line has so many.
func (e *Editor) overwrite(n int, other func(rune) rune) {
	text := e.draft.raw
	end := lineEnd(text, e.cursor)
	to := e.cursor
	for i := range n {
		if to >= end {
			if n = i; e.vim.awaiting == 'r' { // all or nothing
				return
			}
			break
		}
		to = clusterEnd(text, to)
	}
	if to == e.cursor {
		return
	}
	put := strings.Map(func(r rune) rune {
		if isPasteRune(r) {
			return r
		}
		return other(r)
	}, text[e.cursor:to])
	at := e.cursor
	e.remove(at, to)
	e.insert(put)
	e.cursor, e.vim.isChange = clusterStart(e.draft.raw, e.cursor), true
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// charClass is a kind of character; a word of vim is characters of one class.
type charClass uint8

const (
	classBlank charClass = iota
	classLetter
	classSign
)

func classAt(text string, i int) charClass {
	switch r, _ := utf8.DecodeRuneInString(text[i:]); {
	case i >= len(text), unicode.IsSpace(r):
		return classBlank
	case r == '_', isWordRune(r):
		return classLetter
	}
	return classSign
}

// skipClass is the first place from i on where no character of a class stands.
func skipClass(text string, i int, c charClass) int {
	for i < len(text) && classAt(text, i) == c {
		i = clusterEnd(text, i)
	}
	return i
}

// nextWord is where the next word begins.
func nextWord(text string, i int) int {
	if c := classAt(text, i); c != classBlank {
		i = skipClass(text, i, c)
	}
	return skipClass(text, i, classBlank)
}

// nthWordEnd is where the nth word from i on ends.
func nthWordEnd(text string, i, n int) int {
	for k := range n {
		if k > 0 {
			i = skipClass(text, i, classBlank)
		}
		if i < len(text) {
			i = skipClass(text, i, classAt(text, i))
		}
	}
	return i
}

// prevWord is where the word before i begins.
func prevWord(text string, i int) int {
	for i > 0 && classAt(text, clusterStart(text, i)) == classBlank {
		i = clusterStart(text, i)
	}
	if i > 0 {
		for c := classAt(text, clusterStart(text, i)); i > 0 && classAt(text, clusterStart(text, i)) == c; {
			i = clusterStart(text, i)
		}
	}
	return i
}
