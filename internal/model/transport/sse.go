package transport

import (
	"bytes"
	"io"
	"strings"

	"coder/internal/core/message"
	"coder/internal/model/jsonscan"
	"coder/internal/model/provider"
)

const (
	initialBuffer = 32 << 10
	maxLine       = provider.MaxReplyBytes
)

// errLongLine is the error for a line or multi-line event that is
// too long to hold, errLongBody for a body without a stream.
var (
	errLongLine = message.Errorf("the reply has a line longer than %d MiB", maxLine>>20)
	errLongBody = message.Errorf("the reply has a single piece longer than %d MiB", maxLine>>20)
)

// bodyForm is the apparent form of a body by its first byte.
type bodyForm uint8

const (
	formEmpty bodyForm = iota
	formEvents
	formJSON
	formMarkup
)

// bodyReader reads a reply: server-sent events, or another form. It interprets bytes only when their line
// is complete, so the network may cut them anywhere.
type bodyReader struct {
	from io.Reader
	// progress is called when more of a line that is no comment came, or of
	// a body that is no stream: such a line may take long to arrive.
	progress func()

	buf         []byte
	r, w        int    // buf[r:w] is read but unused
	scanned     int    // length of the start of buf[r:w] without a line end
	name        string // of the current event
	pendingData []byte // data lines of a multi-line event
	strayLine   string // the first line that is not a field of an event
}

// sniff reads up to the first significant byte and returns the form.
func (s *bodyReader) sniff() (bodyForm, error) {
	for {
		head := bytes.TrimPrefix(s.buf[s.r:s.w], bom)
		if said := jsonscan.TrimSpace(head); len(said) > 0 && !bytes.HasPrefix(bom, head) {
			s.r = s.w - len(head)
			switch said[0] {
			case '{', '[':
				return formJSON, nil
			case '<':
				return formMarkup, nil
			}
			return formEvents, nil
		}
		if err := s.fill(); err != nil {
			return formEmpty, err
		}
	}
}

var bom = []byte("\xEF\xBB\xBF")

// event is one server-sent event. Its data is valid until the next
// call of next. whole means that the data is a complete JSON value.
type event struct {
	name       string
	data       []byte
	isComplete bool
}

// next returns the next event that has data. At the end of the body the error is io.EOF; an event whose
// last line is incomplete is never returned.
//
// Data that is a complete JSON value on one line is returned
// without waiting for the empty line that should follow.
func (s *bodyReader) next() (event, error) {
	for {
		line, err := s.readLine()
		if err != nil {
			// An unterminated line at the end of the body is the last event, if it is complete.
			if err != io.EOF {
				return event{}, err
			}
			if len(line) > 0 && !isPartialField(line) {
				if e, ok := s.parseField(line); ok {
					return e, nil
				}
				if !jsonscan.IsComplete(s.pendingData) {
					return event{}, io.EOF
				}
			}
			if e, ok := s.closeEvent(); ok {
				return e, nil
			}
			return event{}, io.EOF
		}
		if len(line) == 0 {
			if e, ok := s.closeEvent(); ok {
				return e, nil
			}
			s.name = ""
			continue
		}
		if line[0] == ':' {
			continue
		}
		if e, ok := s.parseField(line); ok {
			return e, nil
		}
		if len(s.pendingData) > maxLine {
			return event{}, errLongLine
		}
	}
}

// parseField processes one line of an event and returns the event if it is complete.
func (s *bodyReader) parseField(line []byte) (event, bool) {
	name, val, _ := bytes.Cut(line, colon)
	val = bytes.TrimPrefix(val, space)
	switch string(name) {
	case "data":
		if len(s.pendingData) > 0 {
			s.pendingData = append(append(s.pendingData, '\n'), val...)
			break
		}
		if whole := jsonscan.IsComplete(val); whole || isDoneMark(val) {
			e := event{s.name, val, whole}
			s.name = ""
			return e, true
		}
		s.pendingData = append(s.pendingData, val...)
	case "event":
		s.name = string(val)
	case "id", "retry":
	default:
		if s.strayLine == "" {
			s.strayLine = string(line[:min(len(line), maxStray)])
		}
	}
	return event{}, false
}

const maxStray = 500

var (
	colon = []byte(":")
	space = []byte(" ")
)

func isDoneMark(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// closeEvent ends an event whose data has several lines or is not JSON.
func (s *bodyReader) closeEvent() (event, bool) {
	if len(bytes.TrimSpace(s.pendingData)) == 0 {
		s.pendingData = s.pendingData[:0]
		return event{}, false
	}
	e := event{s.name, s.pendingData, jsonscan.IsComplete(s.pendingData)}
	s.pendingData, s.name = nil, ""
	return e, true
}

// isPartialField reports whether an unterminated line may be a field cut off before its colon, or a comment.
func isPartialField(line []byte) bool {
	for _, f := range []string{"data:", "event:", "id:", "retry:"} {
		if len(line) < len(f) && strings.HasPrefix(f, string(line)) {
			return true
		}
	}
	return line[0] == ':'
}

// readLine returns the next line without its end. With an error it
// returns and consumes the start of an unterminated line.
func (s *bodyReader) readLine() ([]byte, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.r+s.scanned:s.w], '\n'); i >= 0 {
			line := s.buf[s.r : s.r+s.scanned+i]
			s.r += s.scanned + i + 1
			s.scanned = 0
			return bytes.TrimSuffix(line, cr), nil
		}
		s.scanned = s.w - s.r
		err := s.fill()
		if err == nil && s.scanned > 0 && s.buf[s.r] != ':' && bytes.IndexByte(s.buf[s.r+s.scanned:s.w], '\n') < 0 {
			s.progress()
		}
		if err != nil {
			line := s.buf[s.r:s.w]
			s.r, s.scanned = s.w, 0
			return bytes.TrimSuffix(line, cr), err
		}
	}
}

var cr = []byte("\r")

// readRest reads the body to its end.
func (s *bodyReader) readRest() ([]byte, error) {
	for {
		had := s.w - s.r
		switch err := s.fill(); {
		case err == io.EOF:
			return s.buf[s.r:s.w], nil
		case err == errLongLine:
			return s.buf[s.r:s.w], errLongBody
		case err != nil:
			return s.buf[s.r:s.w], err
		case len(jsonscan.TrimSpace(s.buf[s.r+had:s.w])) > 0: // white space is only a sign of life
			s.progress()
		}
	}
}

// fill reads more bytes. It returns an error only if none came, or if the unused bytes exceed the limit.
func (s *bodyReader) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, initialBuffer)
	}
	if s.r > 0 {
		copy(s.buf, s.buf[s.r:s.w])
		s.w, s.r = s.w-s.r, 0
	}
	if s.w > maxLine {
		return errLongLine
	}
	if s.w == len(s.buf) {
		s.buf = append(s.buf, make([]byte, min(len(s.buf), maxLine+initialBuffer-len(s.buf)))...)
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
