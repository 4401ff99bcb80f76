package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// vim is the state of vim's keys. The zero vim types what is pressed.
type vim struct {
	normal bool // keys are commands
	count  int  // typed before a command or motion; 0 if none
	op     rune // d, c or y, which waits for a motion; 0 if none
	times  int  // the count before op
	wants  rune // f, F, t, T or r, which waits for a character; 0 if none
	find   rune // the last of f, F, t and T
	sought rune // its character
	keys   []Key
	alters bool  // the command whose keys these are is a change
	last   []Key // the change that . repeats
}

const (
	maxCount  = 9999
	maxRepeat = 4096 // keys of a change that . repeats
)

// Normal reports whether keys are commands of vim.
func (e *Editor) Normal() bool { return e.Vim && e.vim.normal }

// vimKey does what a key means in vim, and reports whether it means anything there. Other keys do what
// they always do.
func (e *Editor) vimKey(k Key, was kind) (done bool) {
	v := &e.vim
	if v.keys = append(v.keys, k); len(v.keys) > maxRepeat {
		v.keys, v.alters = nil, false
	}
	esc := k == Key{Name: Escape}
	switch {
	case !v.normal && esc && !e.Empty():
		v.normal = true
		e.at = max(lineStart(e.draft.raw, e.at), before(e.draft.raw, e.at))
	case !v.normal:
		return false
	case esc:
		done = v.op != 0 || v.wants != 0 || v.count > 0 || !e.Empty() && !e.Question
		v.alters = false
		e.endCommand()
		return done
	case k == Key{Name: Backspace}:
		k = Typed('h')
	case k == Key{Name: Delete}:
		k = Typed('x')
	case k.Name != Char || k.Mod&^Shift != 0:
		v.keys = nil
		e.endCommand()
		return false
	}
	if esc || e.command(k.Rune, was) {
		e.endCommand()
	}
	return true
}

// endCommand forgets what a command waited for, and keeps a change for the dot.
func (e *Editor) endCommand() {
	v := &e.vim
	v.count, v.op, v.times, v.wants = 0, 0, 0, 0
	if !v.normal { // what is typed belongs to the change
		return
	}
	if v.alters {
		v.last = v.keys
	}
	v.keys, v.alters = nil, false
	e.onCharacter()
}

// onCharacter moves the cursor off the end of a line: in normal mode it is on a character.
func (e *Editor) onCharacter() {
	if text := e.draft.raw; e.at == lineEnd(text, e.at) && e.at > lineStart(text, e.at) {
		e.at = before(text, e.at)
	}
}

// command takes a key in normal mode, and reports whether a command is complete.
func (e *Editor) command(r rune, was kind) (complete bool) {
	v := &e.vim
	n := min(max(1, v.count)*max(1, v.times), maxCount)
	switch {
	case v.wants == 'r':
		e.overwrite(n, func(rune) rune { return r })
	case v.wants != 0:
		v.find, v.sought = v.wants, r
		e.seekIn(v.find, n)
	case r >= '1' && r <= '9', r == '0' && v.count > 0:
		v.count = min(v.count*10+int(r-'0'), maxCount)
		return false
	case strings.ContainsRune("fFtT", r), r == 'r' && v.op == 0:
		v.wants = r
		return false
	case r == v.op:
		e.onLines(r, 0, n-1)
	case v.op == 0 && strings.ContainsRune("dcy", r):
		v.op, v.times, v.count = r, v.count, 0
		return false
	case r == 'j' && v.op != 0:
		e.onLines(v.op, 0, n)
	case r == 'k' && v.op != 0:
		e.onLines(v.op, n, 0)
	case r == 'j', r == 'k':
		for range n {
			if r == 'j' {
				e.down(was)
			} else {
				e.up(was)
			}
			was = e.last
		}
	case r == ';' && v.find != 0:
		e.seekIn(v.find, n)
	case r == ',' && v.find != 0:
		e.seekIn(v.find^('a'^'A'), n)
	default:
		if to, whole, ok := e.motion(r, n); ok {
			e.toward(to, whole)
		} else if v.op == 0 {
			e.alter(r, n)
		}
	}
	return true
}

// toward moves the cursor to a place, or has the operator that waits work on the text up to there; whole
// says that the character there belongs to it.
func (e *Editor) toward(to int, whole bool) {
	if e.vim.op == 0 {
		e.at = to
		return
	}
	from, to := min(e.at, to), max(e.at, to)
	if whole {
		to = after(e.draft.raw, to)
	}
	e.operate(e.vim.op, from, to, false)
}

// motion is where a motion leads, and whether the character there belongs to it.
func (e *Editor) motion(r rune, n int) (to int, whole, ok bool) {
	text := e.draft.raw
	to = e.at
	repeat := func(step func(string, int) int) {
		for range n {
			to = step(text, to)
		}
	}
	switch r {
	case 'h':
		repeat(before)
		to = max(to, lineStart(text, e.at))
	case 'l', ' ':
		repeat(after)
		to = min(to, lineEnd(text, e.at))
	case 'w':
		switch {
		case e.vim.op == 'c' && classAt(text, to) != blank:
			to = endOfWords(text, to, n)
		default:
			repeat(nextWord)
			if end := lineEnd(text, e.at); e.vim.op != 0 && n == 1 {
				to = min(to, end)
			}
		}
	case 'b':
		repeat(lastWord)
	case 'e':
		for range n {
			to = after(text, to)
			to = before(text, endOfWords(text, skip(text, to, blank), 1))
		}
		return max(to, e.at), true, true
	case '0':
		to = lineStart(text, to)
	case '^':
		for to = lineStart(text, to); to < lineEnd(text, to) && classAt(text, to) == blank; {
			to = after(text, to)
		}
	case '$':
		to = lineEnd(text, to)
	default:
		return to, false, false
	}
	return to, false, true
}

// seekIn moves to the nth place in the line where f, F, t or T finds its character.
func (e *Editor) seekIn(find rune, n int) {
	text, to := e.draft.raw, e.at
	start, end := lineStart(text, to), lineEnd(text, to)
	forward := find == 'f' || find == 't'
	for n > 0 {
		if forward {
			to = after(text, to)
		} else {
			to = before(text, to)
		}
		if to >= end || to < start || to == 0 && !forward && !e.finds(to) {
			return
		}
		if e.finds(to) {
			n--
		} else if to == start && !forward {
			return
		}
	}
	switch find {
	case 't':
		to = before(text, to)
	case 'T':
		to = after(text, to)
	}
	e.toward(to, forward)
}

// finds reports whether what is looked for stands at a place.
func (e *Editor) finds(i int) bool {
	r, _ := utf8.DecodeRuneInString(e.draft.raw[i:])
	return r == e.vim.sought
}

// operate deletes, changes or yanks the text from one place to another; lines says that it is whole lines.
func (e *Editor) operate(op rune, from, to int, lines bool) {
	if from < to || lines {
		d := e.draft.only(e.draft.raw[from:to])
		if lines && !strings.HasSuffix(d.raw, "\n") {
			d.raw += "\n"
		}
		if e.kills = append(e.kills, d); len(e.kills) > maxKills {
			e.kills = e.kills[1:]
		}
	}
	if op != 'y' {
		e.remove(from, to)
		e.vim.alters = true
	}
	e.at = min(from, len(e.draft.raw))
	e.vim.normal = op != 'c'
}

// onLines does the same to whole lines: that of the cursor, and so many above and below it.
func (e *Editor) onLines(op rune, above, below int) {
	text := e.draft.raw
	from, to := lineStart(text, e.at), lineEnd(text, e.at)
	for ; above > 0 && from > 0; above-- {
		from = lineStart(text, from-1)
	}
	for ; below > 0 && to < len(text); below-- {
		to = lineEnd(text, to+1)
	}
	at := e.at
	switch e.operateLines(op, from, to); op {
	case 'y':
		e.at = min(at, from+(at-from)) // the cursor stays, unless the lines begin above it
		if from < lineStart(text, at) {
			e.at = from
		}
	case 'd':
		e.at = lineStart(e.draft.raw, e.at)
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
		e.vim.alters = true
	default:
		e.operate(op, from, to, true)
	}
}

// alter does a command that is no motion and takes none.
func (e *Editor) alter(r rune, n int) {
	text, v := e.draft.raw, &e.vim
	start, end := lineStart(text, e.at), lineEnd(text, e.at)
	switch r {
	case 'x':
		to, _, _ := e.motion('l', n)
		e.operate('d', e.at, to, false)
	case 'X':
		to, _, _ := e.motion('h', n)
		e.operate('d', to, e.at, false)
	case 'D':
		e.operate('d', e.at, end, false)
	case 'C':
		e.operate('c', e.at, end, false)
	case 'p', 'P':
		e.putBack(r == 'p', n)
	case 'u':
		for range n {
			e.takeBack(other)
		}
	case '~':
		e.overwrite(n, swapCase)
		e.at = min(after(e.draft.raw, e.at), end)
	case '.':
		keys := v.last
		v.keys = nil
		for _, k := range keys {
			e.Key(k)
		}
		v.last, v.keys = keys, nil
	case 'i', 'a', 'I', 'A', 'o', 'O':
		v.normal, v.alters = false, true
		switch r {
		case 'a':
			e.at = min(after(text, e.at), end)
		case 'I':
			e.at, _, _ = e.motion('^', 1)
		case 'A':
			e.at = end
		case 'o':
			e.at = end
			e.change("\n")
		case 'O':
			e.at = start
			e.change("\n")
			e.at = start
		}
	}
}

// putBack puts in what was deleted or yanked last, behind the cursor or before it; whole lines, below the
// line or above it.
func (e *Editor) putBack(behind bool, n int) {
	if len(e.kills) == 0 {
		return
	}
	e.vim.alters = true
	text := e.draft.raw
	put := e.draft.adopt(e.kills[len(e.kills)-1])
	put = strings.Repeat(put, min(n, maxDraft/max(1, len(put))))
	switch {
	case !strings.HasSuffix(put, "\n"):
		if behind {
			e.at = min(after(text, e.at), lineEnd(text, e.at))
		}
		e.change(put)
		e.at = before(e.draft.raw, e.at)
	case behind:
		e.at = lineEnd(text, e.at)
		at := e.at + 1
		e.change("\n" + strings.TrimSuffix(put, "\n"))
		e.at = min(at, len(e.draft.raw))
	default:
		at := lineStart(text, e.at)
		e.at = at
		e.change(put)
		e.at = at
	}
}

// overwrite puts other characters in the place of the next n, if the line has so many.
func (e *Editor) overwrite(n int, other func(rune) rune) {
	text := e.draft.raw
	end := lineEnd(text, e.at)
	to := e.at
	for i := range n {
		if to >= end {
			if n = i; e.vim.wants == 'r' { // all or nothing
				return
			}
			break
		}
		to = after(text, to)
	}
	if to == e.at {
		return
	}
	put := strings.Map(func(r rune) rune {
		if standsForPaste(r) {
			return r
		}
		return other(r)
	}, text[e.at:to])
	at := e.at
	e.remove(at, to)
	e.insert(put)
	e.at, e.vim.alters = before(e.draft.raw, e.at), true
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// class is a kind of character; a word of vim is characters of one class.
type class uint8

const (
	blank class = iota
	letter
	sign
)

func classAt(text string, i int) class {
	switch r, _ := utf8.DecodeRuneInString(text[i:]); {
	case i >= len(text), unicode.IsSpace(r):
		return blank
	case r == '_', inWord(r):
		return letter
	}
	return sign
}

// skip is the first place from i on where no character of a class stands.
func skip(text string, i int, c class) int {
	for i < len(text) && classAt(text, i) == c {
		i = after(text, i)
	}
	return i
}

// nextWord is where the next word begins.
func nextWord(text string, i int) int {
	if c := classAt(text, i); c != blank {
		i = skip(text, i, c)
	}
	return skip(text, i, blank)
}

// endOfWords is where the nth word from i on ends.
func endOfWords(text string, i, n int) int {
	for k := range n {
		if k > 0 {
			i = skip(text, i, blank)
		}
		if i < len(text) {
			i = skip(text, i, classAt(text, i))
		}
	}
	return i
}

// lastWord is where the word before i begins.
func lastWord(text string, i int) int {
	for i > 0 && classAt(text, before(text, i)) == blank {
		i = before(text, i)
	}
	if i > 0 {
		for c := classAt(text, before(text, i)); i > 0 && classAt(text, before(text, i)) == c; {
			i = before(text, i)
		}
	}
	return i
}
