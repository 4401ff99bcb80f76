package transport

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

const (
	firstBuffer = 32 << 10
	longestLine = provider.LongestReply
)

// errLongLine is the error for a line or multi-line event that is
// too long to hold, errLongBody for a body without a stream.
var (
	errLongLine = fmt.Errorf("the reply has a line longer than %d MiB", longestLine>>20)
	errLongBody = fmt.Errorf("the reply has a single piece longer than %d MiB", longestLine>>20)
)

// form is the apparent form of a body by its first byte.
type form uint8

const (
	nothing form = iota
	eventStream
	jsonBody
	markup
)

// source reads a reply: server-sent events, or another form. It interprets bytes only when their line
// is complete, so the network may cut them anywhere.
type source struct {
	from io.Reader
	// progress is called when more of a line that is no comment came, or of
	// a body that is no stream: such a line may take long to arrive.
	progress func()

	buf   []byte
	r, w  int    // buf[r:w] is read but unused
	seen  int    // length of the start of buf[r:w] without a line end
	name  string // of the current event
	part  []byte // data lines of a multi-line event
	stray string // the first line that is not a field of an event
}

// sniff reads up to the first significant byte and returns the form.
func (s *source) sniff() (form, error) {
	for {
		head := bytes.TrimPrefix(s.buf[s.r:s.w], bom)
		if said := jsonscan.Trim(head); len(said) > 0 && !bytes.HasPrefix(bom, head) {
			s.r = s.w - len(head)
			switch said[0] {
			case '{', '[':
				return jsonBody, nil
			case '<':
				return markup, nil
			}
			return eventStream, nil
		}
		if err := s.fill(); err != nil {
			return nothing, err
		}
	}
}

var bom = []byte("\xEF\xBB\xBF")

// event is one server-sent event. Its data is valid until the next
// call of next. whole means that the data is a complete JSON value.
type event struct {
	name  string
	data  []byte
	whole bool
}

// next returns the next event that has data. At the end of the body the error is io.EOF; an event whose
// last line is incomplete is never returned.
//
// Data that is a complete JSON value on one line is returned
// without waiting for the empty line that should follow.
func (s *source) next() (event, error) {
	for {
		line, err := s.line()
		if err != nil {
			// An unterminated line at the end of the body is the last event, if it is complete.
			if err != io.EOF {
				return event{}, err
			}
			if len(line) > 0 && !halfField(line) {
				if e, ok := s.field(line); ok {
					return e, nil
				}
				if !jsonscan.Complete(s.part) {
					return event{}, io.EOF
				}
			}
			if e, ok := s.close(); ok {
				return e, nil
			}
			return event{}, io.EOF
		}
		if len(line) == 0 {
			if e, ok := s.close(); ok {
				return e, nil
			}
			s.name = ""
			continue
		}
		if line[0] == ':' {
			continue
		}
		if e, ok := s.field(line); ok {
			return e, nil
		}
		if len(s.part) > longestLine {
			return event{}, errLongLine
		}
	}
}

// field processes one line of an event and returns the event if it is complete.
func (s *source) field(line []byte) (event, bool) {
	name, val, _ := bytes.Cut(line, colon)
	val = bytes.TrimPrefix(val, space)
	switch string(name) {
	case "data":
		if len(s.part) > 0 {
			s.part = append(append(s.part, '\n'), val...)
			break
		}
		if whole := jsonscan.Complete(val); whole || isDone(val) {
			e := event{s.name, val, whole}
			s.name = ""
			return e, true
		}
		s.part = append(s.part, val...)
	case "event":
		s.name = string(val)
	case "id", "retry":
	default:
		if s.stray == "" {
			s.stray = string(line[:min(len(line), strayMost)])
		}
	}
	return event{}, false
}

const strayMost = 500

var (
	colon = []byte(":")
	space = []byte(" ")
)

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// close ends an event whose data has several lines or is not JSON.
func (s *source) close() (event, bool) {
	if len(bytes.TrimSpace(s.part)) == 0 {
		s.part = s.part[:0]
		return event{}, false
	}
	e := event{s.name, s.part, jsonscan.Complete(s.part)}
	s.part, s.name = nil, ""
	return e, true
}

// halfField reports whether an unterminated line may be a field cut off before its colon, or a comment.
func halfField(line []byte) bool {
	for _, f := range []string{"data:", "event:", "id:", "retry:"} {
		if len(line) < len(f) && strings.HasPrefix(f, string(line)) {
			return true
		}
	}
	return line[0] == ':'
}

// line returns the next line without its end. With an error it
// returns and consumes the start of an unterminated line.
func (s *source) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.r+s.seen:s.w], '\n'); i >= 0 {
			line := s.buf[s.r : s.r+s.seen+i]
			s.r += s.seen + i + 1
			s.seen = 0
			return bytes.TrimSuffix(line, cr), nil
		}
		s.seen = s.w - s.r
		err := s.fill()
		if err == nil && s.seen > 0 && s.buf[s.r] != ':' && bytes.IndexByte(s.buf[s.r+s.seen:s.w], '\n') < 0 {
			s.progress()
		}
		if err != nil {
			line := s.buf[s.r:s.w]
			s.r, s.seen = s.w, 0
			return bytes.TrimSuffix(line, cr), err
		}
	}
}

var cr = []byte("\r")

// rest reads the body to its end.
func (s *source) rest() ([]byte, error) {
	for {
		had := s.w - s.r
		switch err := s.fill(); {
		case err == io.EOF:
			return s.buf[s.r:s.w], nil
		case err == errLongLine:
			return s.buf[s.r:s.w], errLongBody
		case err != nil:
			return s.buf[s.r:s.w], err
		case len(jsonscan.Trim(s.buf[s.r+had:s.w])) > 0: // white space is only a sign of life
			s.progress()
		}
	}
}

// fill reads more bytes. It returns an error only if none came, or if the unused bytes exceed the limit.
func (s *source) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, firstBuffer)
	}
	if s.r > 0 {
		copy(s.buf, s.buf[s.r:s.w])
		s.w, s.r = s.w-s.r, 0
	}
	if s.w > longestLine {
		return errLongLine
	}
	if s.w == len(s.buf) {
		s.buf = append(s.buf, make([]byte, min(len(s.buf), longestLine+firstBuffer-len(s.buf)))...)
	}
	for range maxEmptyReads {
		n, err := s.from.Read(s.buf[s.w:])
		s.w += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

const maxEmptyReads = 100
