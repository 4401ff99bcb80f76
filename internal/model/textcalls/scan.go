package textcalls

import (
	"slices"
	"strings"
)

// scanner separates calls from other text as the text arrives. It
// emits text as soon as the text cannot be part of a call.
type scanner struct {
	offer

	all    strings.Builder // received text, without the beginning that shed dropped
	at     int             // position in it
	fences fences
	open   *opening
	run    []block // calls separated by white space only; the last ends at the current position
	calls  []call
	ended  bool // ignore the rest

	out    strings.Builder // text to emit
	space  []byte          // white space held back until more text comes
	spoke  bool            // text was emitted
	called bool            // a call was accepted since
}

// block is a piece of text with calls, or without calls if it is only the rest of a form.
type block struct {
	from, to int
	calls    []call
	loose    bool // it is text if more text follows
}

// opening is a place where a call may begin.
type opening struct {
	form
	length int    // of the opening mark
	tries  int    // number of ends tried
	first  int    // the first of the ends
	calls  []call // its content, once its end is found
	inner  string // the text of that content
	end    int
}

// verdict is the state of a decision about a piece of text.
type verdict int

const (
	no   verdict = iota
	more         // undecided until more text comes
	yes
)

const (
	maxTries = 64        // ends tried for one opening
	space    = " \t\r\n" // what separates text from calls
	joints   = space + ";,"
)

// feed adds text and returns the text to emit.
func (s *scanner) feed(text string) string {
	s.shed()
	s.all.WriteString(text)
	s.advance(false)
	return s.given()
}

// These bounds limit the text in memory: earlier text matters only for the lines that introduce a call.
const (
	maxKept = 1 << 20
	minKept = 64 << 10
)

// shed drops the beginning of a long text while no call is open.
func (s *scanner) shed() {
	if s.at < maxKept || s.open != nil || len(s.run) > 0 {
		return
	}
	rest := strings.Clone(s.all.String()[s.at-minKept:])
	s.all.Reset()
	s.all.WriteString(rest)
	s.at = minKept
}

// finish returns the rest of a complete reply. If the API sent calls itself, calls in the text do not count.
func (s *scanner) finish(native bool) (text string, calls []call) {
	s.advance(true)
	s.decide(native)
	if !s.called {
		s.out.Write(s.space)
	}
	return s.given(), slices.CompactFunc(s.calls, call.same)
}

// abandon returns the rest of the text of a reply that was cut off.
// Calls and beginnings of calls are lost, as native ones would be.
func (s *scanner) abandon() string {
	s.decide(false)
	rest := s.all.String()[s.at:]
	if !s.ended && (s.open == nil || s.open.loose && !s.knows(nameIn(rest))) {
		s.say(rest)
		if !s.called {
			s.out.Write(s.space)
		}
	}
	return s.given()
}

func (s *scanner) given() string {
	text := s.out.String()
	s.out.Reset()
	return text
}

// say emits text. White space around calls becomes one line break.
func (s *scanner) say(text string) {
	if s.called {
		text = strings.TrimLeft(text, space)
	}
	body := strings.TrimRight(text, space)
	if body == "" {
		s.space = append(s.space, text...)
		return
	}
	switch {
	case !s.called:
		s.out.Write(s.space)
	case s.spoke:
		s.out.WriteString("\n")
	}
	s.out.WriteString(body)
	s.space, s.spoke, s.called = append(s.space[:0], text[len(body):]...), true, false
}

// decide accepts the pending calls. Loose ones become text if more text follows.
func (s *scanner) decide(textFollows bool) {
	if len(s.run) == 0 {
		return
	}
	text, at := s.all.String(), s.run[0].from
	for _, b := range s.run {
		if b.loose && textFollows {
			s.put(text[at:b.to])
		} else {
			if between := text[at:b.from]; strings.Trim(between, joints) != "" || !s.called {
				s.put(between)
			}
			s.calls, s.space, s.called = append(s.calls, b.calls...), s.space[:0], true
			s.fences.line = s.fences.line[:0]
		}
		at = b.to
	}
	s.run = nil
	if textFollows || !s.called {
		s.put(text[at:s.at])
	}
}

// put emits plain text and tracks its code fences.
func (s *scanner) put(text string) {
	s.say(text)
	s.fences.feed(text)
}

// advance decides as much as possible, or everything if the text is final.
func (s *scanner) advance(final bool) {
	for !s.ended && s.at < s.all.Len() {
		if s.open == nil && !s.findOpening(final) {
			return
		}
		if s.open != nil && s.close(final) == more {
			return
		}
	}
}

// findOpening skips text up to where a call may begin. It returns false if there is no such place yet.
func (s *scanner) findOpening(final bool) bool {
	for {
		text := s.all.String()[s.at:]
		i := strings.IndexAny(text, openers)
		if i < 0 {
			s.pass(len(text))
			return false
		}
		s.pass(i)
		text = text[i:]
		f, n, is := s.match(text)
		switch {
		case is == more && !final:
			return false
		case is != yes:
			s.pass(1)
		case f.kind == remains:
			s.add(block{from: s.at, to: s.at + n, loose: s.run[len(s.run)-1].loose})
		case f.kind == result:
			s.ended = true
			return false
		default:
			s.open = &opening{form: f, length: n}
			return true
		}
	}
}

// pass emits the next n bytes as plain text.
func (s *scanner) pass(n int) {
	text := s.all.String()[s.at : s.at+n]
	if len(s.run) > 0 {
		if strings.Trim(text, joints) == "" {
			s.at += n
			return
		}
		s.decide(true)
	}
	s.put(text)
	s.at += n
}

// add adds a block, whose end becomes the current position.
func (s *scanner) add(b block) {
	s.run, s.at, s.open = append(s.run, b), b.to, nil
}

// fresh reports whether the position is at the start of a line, or only calls precede it there.
func (s *scanner) fresh() bool { return len(s.run) > 0 || s.fences.blank() }

// close looks for the end of the open form.
func (s *scanner) close(final bool) verdict {
	text, o := s.all.String()[s.at:], s.open
	for o.end == 0 && o.tries < maxTries {
		end, after, found := o.ends(text, final)
		if !found {
			break
		}
		calls, ok := s.read(o.form, text[o.length:end])
		switch {
		case ok:
			o.calls, o.inner, o.end = calls, text[o.length:end], after
		case o.loose:
			s.giveUp(after)
			return no
		case o.first == 0:
			o.first = end
		}
		o.tries++
	}
	switch {
	case o.end > 0:
		return s.take(final)
	case !final:
		return more
	}
	return s.closeFinal(text)
}

// closeFinal decides about an open form without an end, once there is no more text.
func (s *scanner) closeFinal(text string) verdict {
	o := s.open
	inner := text[o.length:]
	o.end = len(text)
	if o.first > 0 {
		inner, o.end = text[o.length:o.first], min(len(text), o.first+len(o.form.close))
	}
	var ok bool
	if o.calls, ok = s.read(o.form, inner); !ok {
		o.calls, ok = s.broken(o.form, inner)
	}
	if o.inner = inner; ok {
		return s.take(true)
	}
	s.giveUp(max(o.length, 1))
	return no
}

// giveUp treats the first n bytes of the open form as text.
func (s *scanner) giveUp(n int) {
	s.open = nil
	s.pass(n)
}

// take turns the open form into calls, or into text if it is an example.
func (s *scanner) take(final bool) verdict {
	o := s.open
	switch is := s.example(final); is {
	case more:
		return more
	case yes:
		s.giveUp(o.end)
		return no
	case no:
	}
	s.add(block{from: s.at, to: s.at + o.end, calls: o.calls, loose: o.loose || s.explained()})
	return yes
}

// fences tracks whether a text is inside a code fence.
type fences struct {
	line  []byte // the start of the current line
	last  byte   // the previous byte
	mark  byte   // the mark of the current fence, repeated count times
	count int
}

// lineStart is how much of a line is needed to recognize a fence.
const lineStart = 200

// feed adds text. A line opens or closes a fence when it ends.
func (f *fences) feed(text string) {
	if text != "" {
		f.last = text[len(text)-1]
	}
	for {
		line, rest, ended := strings.Cut(text, "\n")
		room := max(0, lineStart-len(f.line))
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

// blank reports whether the current line is blank so far.
func (f *fences) blank() bool { return strings.TrimSpace(string(f.line)) == "" }

// quoted reports whether the model is only showing what follows: it is in a fence or after a backquote,
// or on a line that is quoted or indented as code.
func (f *fences) quoted() bool {
	line := string(f.line)
	_, count, _ := fenceRun(line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return f.count > 0 || count >= 3 || f.last == '`' && line != "" || strings.HasPrefix(strings.TrimLeft(line, " \t"), ">") ||
		f.blank() && (len(indent) >= 4 || strings.Contains(indent, "\t"))
}
