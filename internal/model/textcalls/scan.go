package textcalls

import (
	"strings"

	"coder/internal/model/provider"
)

// scanner tells calls from other text as the text arrives. Text is given out
// as soon as it cannot be part of a call; from the first call on everything is
// held back until the end, when it is known whether the API sent calls itself.
type scanner struct {
	tools   []provider.ToolSpec
	anyName bool // calls of tools that were not offered are calls too

	all    strings.Builder // everything that arrived
	at     int             // what was looked at
	sent   int             // what was given out
	fences fences
	open   opening
	calls  []call
	lead   int   // where the first call starts
	gaps   []gap // the text after each block of calls; the last ends where we look
	ended  bool  // the rest is of no interest
}

// gap is the place of a text between calls.
type gap struct{ from, to int }

// opening is a tag that may start a call. The zero opening is none.
type opening struct {
	tag   string // as it stands in the text
	close string
	seen  int // how far we looked for the close, from the tag on
	first int // end of the first close, if what is before it made no sense
	tries int
}

const (
	maxTries = 64        // closes of one tag that are tried
	space    = " \t\r\n" // what separates text from calls
	maxSpace = 256       // how much of it waits
)

// feed takes more text and returns what can be given out.
func (s *scanner) feed(text string) string {
	s.all.WriteString(text)
	s.advance(false)
	return s.plain()
}

// plain gives out the text before the first call. White space waits for what
// comes after it.
func (s *scanner) plain() string {
	end := s.at
	if len(s.calls) > 0 {
		end = s.lead
	}
	from := max(s.sent, end-maxSpace)
	return s.give(from + len(strings.TrimRight(s.all.String()[from:end], space)))
}

// give returns what was not given out yet, up to the offset to.
func (s *scanner) give(to int) string {
	text := s.all.String()[s.sent:max(to, s.sent)]
	s.sent += len(text)
	return text
}

// raw gives up: everything held back is text.
func (s *scanner) raw() string { return s.give(s.all.Len()) }

// finish returns what is left of a reply that arrived whole.
func (s *scanner) finish() (text string, calls []call) {
	s.advance(true)
	if len(s.calls) == 0 {
		return s.raw(), nil
	}
	return s.plain() + s.rest(), s.calls
}

// abandon returns the text that is left of a reply that was cut off. Calls,
// and what may be the start of one, are lost, as native ones would be.
func (s *scanner) abandon() string {
	switch {
	case len(s.calls) > 0:
		return s.plain() + s.rest()
	case s.open.tag != "":
		return s.plain()
	}
	return s.raw()
}

// rest joins the text between and after the calls.
func (s *scanner) rest() string {
	var b strings.Builder
	s.closeGap()
	for _, g := range s.gaps {
		t := strings.Trim(withoutStrayCloses(s.all.String()[g.from:g.to]), space)
		if t == "" {
			continue
		}
		if s.sent > 0 || b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(t)
	}
	return b.String()
}

// withoutStrayCloses drops closing tags whose opening tags the model forgot.
func withoutStrayCloses(t string) string {
	closes := []string{"</function>", "</tool_use>", "</tool_call>", "</tool_code>"}
	for _, w := range wrappers {
		closes = append(closes, w.close)
	}
	for _, tag := range closes {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(t, space), tag); ok {
			return withoutStrayCloses(rest)
		}
	}
	return t
}

// advance decides as much as can be decided; all of it if the text is final.
func (s *scanner) advance(final bool) {
	for !s.ended && s.at < s.all.Len() {
		if s.open.tag == "" && !s.findOpening(final) {
			return
		}
		if !s.closeCall() && !(final && s.closeFinal()) {
			return
		}
	}
}

// findOpening passes over text up to a tag that may start a call. It reports
// false if there is none, or none yet.
func (s *scanner) findOpening(final bool) bool {
	for {
		text := s.all.String()[s.at:]
		i := strings.IndexByte(text, '<')
		if i < 0 {
			s.pass(len(text))
			return false
		}
		s.pass(i)
		tag, close, more := matchOpening(text[i:])
		switch {
		case more && !final:
			return false
		case tag == "" || s.fences.quoted():
			s.pass(1)
		case tag == fakeResult && len(s.calls) > 0:
			s.ended = true
			return false
		case tag == fakeResult:
			s.pass(1)
		default:
			s.open = opening{tag: tag, close: close, seen: len(tag)}
			return true
		}
	}
}

// pass takes n bytes for plain text.
func (s *scanner) pass(n int) {
	s.fences.feed(s.all.String()[s.at : s.at+n])
	s.at += n
}

// closeGap ends the text after the last call where we look.
func (s *scanner) closeGap() {
	if last := len(s.gaps) - 1; last >= 0 {
		s.gaps[last].to = s.at
	}
}

// closeCall looks for the end of the open call. It reports whether the matter
// is decided.
func (s *scanner) closeCall() bool {
	text, o := s.all.String()[s.at:], &s.open
	for o.tries < maxTries {
		i := strings.Index(text[o.seen:], o.close)
		if i < 0 {
			o.seen = max(o.seen, len(text)-len(o.close)+1)
			return false
		}
		inner := o.seen + i
		o.seen = inner + len(o.close)
		o.tries++
		if calls, ok := parseCalls(o.tag, text[len(o.tag):inner], s.tools); ok {
			s.take(calls, o.seen)
			return true
		}
		if o.first == 0 {
			o.first = o.seen
		}
	}
	return false
}

// closeFinal decides about an open call that no close makes whole, now that
// there is no more text.
func (s *scanner) closeFinal() bool {
	text, o := s.all.String()[s.at:], s.open
	inner, end := text[len(o.tag):], len(text)
	if o.first > 0 {
		inner, end = text[len(o.tag):o.first-len(o.close)], o.first
	}
	calls, ok := parseCalls(o.tag, inner, s.tools)
	if !ok {
		calls, ok = brokenCall(o.tag, inner)
	}
	if ok && s.known(calls) {
		s.take(calls, end)
		return true
	}
	s.open = opening{}
	s.pass(len(o.tag))
	return true
}

// take makes calls of the next n bytes; or text, if they name tools nobody
// offered.
func (s *scanner) take(calls []call, n int) {
	s.open = opening{}
	if !s.known(calls) {
		s.pass(n)
		return
	}
	if len(s.calls) == 0 {
		s.lead = s.at
	}
	s.closeGap()
	s.calls = append(s.calls, calls...)
	s.at += n
	s.gaps = append(s.gaps, gap{from: s.at})
}

func (s *scanner) known(calls []call) bool {
	for _, c := range calls {
		if _, ok := specOf(s.tools, c.name); !ok && !s.anyName {
			return false
		}
	}
	return true
}

func specOf(tools []provider.ToolSpec, name string) (provider.ToolSpec, bool) {
	for _, t := range tools {
		if strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return provider.ToolSpec{}, false
}

const (
	functionTag = "<function="
	fakeResult  = "<tool_result" // results are ours to write
	maxName     = 128            // of a function tag's name
)

// matchOpening returns the opening tag that text starts with and the tag that
// closes it. more says that it takes more text to know.
func matchOpening(text string) (tag, close string, more bool) {
	for _, name := range []string{"tool_use", "tool_call", "tool_code"} {
		tag := "<" + name + ">"
		if strings.HasPrefix(text, tag) {
			return tag, "</" + name + ">", false
		}
		more = more || strings.HasPrefix(tag, text)
	}
	if strings.HasPrefix(text, fakeResult) {
		return fakeResult, "", false
	}
	native, close, also := matchNative(text)
	if native != "" {
		return native, close, false
	}
	more = more || also
	more = more || strings.HasPrefix(fakeResult, text) || strings.HasPrefix(functionTag, text)
	if !strings.HasPrefix(text, functionTag) {
		return "", "", more
	}
	name, _, ended := strings.Cut(text[len(functionTag):], ">")
	switch {
	case len(name) > maxName || strings.ContainsAny(name, " \t\r\n<"):
		return "", "", false
	case !ended:
		return "", "", true
	case name == "":
		return "", "", false
	}
	return functionTag + name + ">", "</function>", false
}

// fences follows the lines of a text and knows whether it is in a code fence.
type fences struct {
	line  []byte // the start of the line we are on
	mark  byte   // the fence we are in is made of this, so many times
	count int
}

// lineStart is how much of a line must be seen to know a fence.
const lineStart = 200

// feed takes more text. A line opens or closes a fence when it ends.
func (f *fences) feed(text string) {
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

// fenceRun is the run of backquotes or tildes that line starts with.
func fenceRun(line string) (mark byte, count int, rest string) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0, line
	}
	rest = strings.TrimLeft(line, line[:1])
	return line[0], len(line) - len(rest), rest
}

// quoted reports whether what comes next is code that the model shows.
func (f *fences) quoted() bool {
	if f.count > 0 {
		return true
	}
	_, count, _ := fenceRun(string(f.line))
	return count >= 3 || len(f.line) > 0 && f.line[len(f.line)-1] == '`'
}
