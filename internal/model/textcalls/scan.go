package textcalls

import (
	"slices"
	"strings"
)

// scanner separates calls from other text as the text arrives. It
// emits text as soon as the text cannot be part of a call.
type scanner struct {
	callContext

	buffer        strings.Builder // received text, without the beginning that shed dropped
	pos           int             // position in it
	fences        fences
	open          *opening
	pendingBlocks []block // calls separated by white space only; the last ends at the current position
	calls         []call
	stopped       bool // ignore the rest

	out        strings.Builder // text to emit
	heldSpace  []byte          // white space held back until more text comes
	hasEmitted bool            // text was emitted
	hasCall    bool            // a call was accepted since
}

// block is a piece of text with calls, or without calls if it is only the rest of a form.
type block struct {
	from, to    int
	calls       []call
	isAmbiguous bool // it is text if more text follows
}

// opening is a place where a call may begin.
type opening struct {
	form
	length   int    // of the opening mark
	tries    int    // number of ends tried
	firstEnd int    // the first of the ends
	calls    []call // its content, once its end is found
	inner    string // the text of that content
	end      int
}

// verdict is the state of a decision about a piece of text.
type verdict int

const (
	verdictNo   verdict = iota
	verdictMore         // undecided until more text comes
	verdictYes
)

const (
	maxTries   = 64        // ends tried for one opening
	spaceChars = " \t\r\n" // what separates text from calls
	jointChars = spaceChars + ";,"
)

// feed adds text and returns the text to emit.
func (s *scanner) feed(text string) string {
	s.dropStart()
	s.buffer.WriteString(text)
	s.advance(false)
	return s.takeOutput()
}

// These bounds limit the text in memory: earlier text matters only for the lines that introduce a call.
const (
	maxBuffered = 1 << 20
	minBuffered = 64 << 10
)

// dropStart drops the beginning of a long text while no call is open.
func (s *scanner) dropStart() {
	if s.pos < maxBuffered || s.open != nil || len(s.pendingBlocks) > 0 {
		return
	}
	rest := strings.Clone(s.buffer.String()[s.pos-minBuffered:])
	s.buffer.Reset()
	s.buffer.WriteString(rest)
	s.pos = minBuffered
}

// finish returns the rest of a complete reply. If the API sent calls itself, calls in the text do not count.
func (s *scanner) finish(native bool) (text string, calls []call) {
	s.advance(true)
	s.resolvePending(native)
	if !s.hasCall {
		s.out.Write(s.heldSpace)
	}
	return s.takeOutput(), slices.CompactFunc(s.calls, call.equal)
}

// abandon returns the rest of the text of a reply that was cut off.
// Calls and beginnings of calls are lost, as native ones would be.
func (s *scanner) abandon() string {
	s.resolvePending(false)
	rest := s.buffer.String()[s.pos:]
	if !s.stopped && (s.open == nil || s.open.isAmbiguous && !s.isKnown(findName(rest))) {
		s.emit(rest)
		if !s.hasCall {
			s.out.Write(s.heldSpace)
		}
	}
	return s.takeOutput()
}

func (s *scanner) takeOutput() string {
	text := s.out.String()
	s.out.Reset()
	return text
}

// emit emits text. White space around calls becomes one line break.
func (s *scanner) emit(text string) {
	if s.hasCall {
		text = strings.TrimLeft(text, spaceChars)
	}
	body := strings.TrimRight(text, spaceChars)
	if body == "" {
		s.heldSpace = append(s.heldSpace, text...)
		return
	}
	switch {
	case !s.hasCall:
		s.out.Write(s.heldSpace)
	case s.hasEmitted:
		s.out.WriteString("\n")
	}
	s.out.WriteString(body)
	s.heldSpace, s.hasEmitted, s.hasCall = append(s.heldSpace[:0], text[len(body):]...), true, false
}

// resolvePending accepts the pending calls. Loose ones become text if more text follows.
func (s *scanner) resolvePending(textFollows bool) {
	if len(s.pendingBlocks) == 0 {
		return
	}
	text, at := s.buffer.String(), s.pendingBlocks[0].from
	for _, b := range s.pendingBlocks {
		if b.isAmbiguous && textFollows {
			s.emitPlain(text[at:b.to])
		} else {
			if between := text[at:b.from]; strings.Trim(between, jointChars) != "" || !s.hasCall {
				s.emitPlain(between)
			}
			s.calls, s.heldSpace, s.hasCall = append(s.calls, b.calls...), s.heldSpace[:0], true
			s.fences.line = s.fences.line[:0]
		}
		at = b.to
	}
	s.pendingBlocks = nil
	if textFollows || !s.hasCall {
		s.emitPlain(text[at:s.pos])
	}
}

// emitPlain emits plain text and tracks its code fences.
func (s *scanner) emitPlain(text string) {
	s.emit(text)
	s.fences.feed(text)
}

// advance decides as much as possible, or everything if the text is final.
func (s *scanner) advance(final bool) {
	for !s.stopped && s.pos < s.buffer.Len() {
		if s.open == nil && !s.findOpening(final) {
			return
		}
		if s.open != nil && s.closeForm(final) == verdictMore {
			return
		}
	}
}

// findOpening skips text up to where a call may begin. It returns false if there is no such place yet.
func (s *scanner) findOpening(final bool) bool {
	for {
		text := s.buffer.String()[s.pos:]
		i := strings.IndexAny(text, openerBytes)
		if i < 0 {
			s.emitNext(len(text))
			return false
		}
		s.emitNext(i)
		text = text[i:]
		f, n, is := s.matchForm(text)
		switch {
		case is == verdictMore && !final:
			return false
		case is != verdictYes:
			s.emitNext(1)
		case f.kind == kindRemains:
			s.addBlock(block{from: s.pos, to: s.pos + n, isAmbiguous: s.pendingBlocks[len(s.pendingBlocks)-1].isAmbiguous})
		case f.kind == kindResult:
			s.stopped = true
			return false
		default:
			s.open = &opening{form: f, length: n}
			return true
		}
	}
}

// emitNext emits the next n bytes as plain text.
func (s *scanner) emitNext(n int) {
	text := s.buffer.String()[s.pos : s.pos+n]
	if len(s.pendingBlocks) > 0 {
		if strings.Trim(text, jointChars) == "" {
			s.pos += n
			return
		}
		s.resolvePending(true)
	}
	s.emitPlain(text)
	s.pos += n
}

// addBlock adds a block, whose end becomes the current position.
func (s *scanner) addBlock(b block) {
	s.pendingBlocks, s.pos, s.open = append(s.pendingBlocks, b), b.to, nil
}

// atLineStart reports whether the position is at the start of a line, or only calls precede it there.
func (s *scanner) atLineStart() bool { return len(s.pendingBlocks) > 0 || s.fences.isBlank() }

// closeForm looks for the end of the open form.
func (s *scanner) closeForm(final bool) verdict {
	text, o := s.buffer.String()[s.pos:], s.open
	for o.end == 0 && o.tries < maxTries {
		end, after, found := o.findEnd(text, final)
		if !found {
			break
		}
		calls, ok := s.readForm(o.form, text[o.length:end])
		switch {
		case ok:
			o.calls, o.inner, o.end = calls, text[o.length:end], after
		case o.isAmbiguous:
			s.rejectForm(after)
			return verdictNo
		case o.firstEnd == 0:
			o.firstEnd = end
		}
		o.tries++
	}
	switch {
	case o.end > 0:
		return s.acceptForm(final)
	case !final:
		return verdictMore
	}
	return s.closeFinal(text)
}

// closeFinal decides about an open form without an end, once there is no more text.
func (s *scanner) closeFinal(text string) verdict {
	o := s.open
	inner := text[o.length:]
	o.end = len(text)
	if o.firstEnd > 0 {
		inner, o.end = text[o.length:o.firstEnd], min(len(text), o.firstEnd+len(o.form.close))
	}
	var ok bool
	if o.calls, ok = s.readForm(o.form, inner); !ok {
		o.calls, ok = s.salvage(o.form, inner)
	}
	if o.inner = inner; ok {
		return s.acceptForm(true)
	}
	s.rejectForm(max(o.length, 1))
	return verdictNo
}

// rejectForm treats the first n bytes of the open form as text.
func (s *scanner) rejectForm(n int) {
	s.open = nil
	s.emitNext(n)
}

// acceptForm turns the open form into calls, or into text if it is an example.
func (s *scanner) acceptForm(final bool) verdict {
	o := s.open
	switch is := s.isExample(final); is {
	case verdictMore:
		return verdictMore
	case verdictYes:
		s.rejectForm(o.end)
		return verdictNo
	case verdictNo:
	}
	s.addBlock(block{from: s.pos, to: s.pos + o.end, calls: o.calls, isAmbiguous: o.isAmbiguous || s.isExplained()})
	return verdictYes
}

// fences tracks whether a text is inside a code fence.
type fences struct {
	line  []byte // the start of the current line
	last  byte   // the previous byte
	mark  byte   // the mark of the current fence, repeated count times
	count int
}

// fencePrefixLen is how much of a line is needed to recognize a fence.
const fencePrefixLen = 200

// feed adds text. A line opens or closes a fence when it ends.
func (f *fences) feed(text string) {
	if text != "" {
		f.last = text[len(text)-1]
	}
	for {
		line, rest, ended := strings.Cut(text, "\n")
		room := max(0, fencePrefixLen-len(f.line))
		f.line = append(f.line, line[:min(room, len(line))]...)
		if !ended {
			return
		}
		text = rest
		mark, count, after := fenceRun(string(f.line))
		f.line = f.line[:0]
		switch {
		case count < 3:
		case f.count == 0:
			if mark == '~' || !strings.Contains(after, "`") {
				f.mark, f.count = mark, count
			}
		case mark == f.mark && count >= f.count && strings.TrimSpace(after) == "":
			f.count = 0
		}
	}
}

// fenceRun returns the run of backquotes or tildes at the start of line.
func fenceRun(line string) (mark byte, count int, rest string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0, line
	}
	rest = strings.TrimLeft(line, line[:1])
	return line[0], len(line) - len(rest), rest
}

// isBlank reports whether the current line is blank so far.
func (f *fences) isBlank() bool { return strings.TrimSpace(string(f.line)) == "" }

// isQuoting reports whether the model is only showing what follows: it is in a fence or after a backquote,
// or on a line that is quoted or indented as code.
func (f *fences) isQuoting() bool {
	line := string(f.line)
	_, count, _ := fenceRun(line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return f.count > 0 || count >= 3 || f.last == '`' && line != "" || strings.HasPrefix(strings.TrimLeft(line, " \t"), ">") ||
		f.isBlank() && (len(indent) >= 4 || strings.Contains(indent, "\t"))
}
