package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"coder/internal/core/jsonx"
)

// envelopeSize is the approximate size of a line without its payload.
const envelopeSize = 512

// appendJSON encodes l as encoding/json would, up to its payload.
func (l recordLine) appendJSON(b []byte) ([]byte, error) {
	b = strconv.AppendUint(append(b, `{"seq":`...), l.Seq, 10)
	b = appendString(append(b, `,"type":`...), l.Type)
	b = strconv.AppendInt(append(b, `,"v":`...), int64(l.Version), 10)
	b = appendString(append(b, `,"sessionId":`...), l.Session)
	b = appendString(append(b, `,"streamId":`...), l.Task)
	if l.Actor != "" {
		b = appendString(append(b, `,"actor":`...), l.Actor)
	}
	b, err := l.Time.AppendText(append(b, `,"createdAt":"`...))
	if err != nil {
		return nil, err
	}
	b = append(b, '"')
	if l.Seal != "" {
		b = appendString(append(b, `,"seal":`...), l.Seal)
	}
	return append(b, `,"payload":`...), nil
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if !isPlain(s[i]) {
			return append(b, jsonx.MustMarshal(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// isPlain reports whether c needs no escape in a JSON string.
func isPlain(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' }

var errNotRecord = errors.New("not a record: no seq, no type or no payload")

// parseLine decodes the envelope of a record in any layout. A line without a checksum contains only its
// known fields; anything else is a damaged checksum.
func parseLine(data []byte) (recordLine, error) {
	var l recordLine
	d := json.NewDecoder(bytes.NewReader(data))
	if _, _, checked := SplitSum(data); !checked {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&l); err != nil {
		return recordLine{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return recordLine{}, errNotRecord
	}
	if l.Seq == 0 || l.Type == "" || len(l.Payload) == 0 {
		return recordLine{}, errNotRecord
	}
	return l, nil
}

// parseCanonical decodes a line in Encode's layout, in one short pass over everything before the payload. If
// the payload it returns, a part of data, is JSON, the result equals that of parse; otherwise the caller
// must use parse.
func parseCanonical(data []byte) (recordLine, bool) {
	var l recordLine
	c := jsonCursor{rest: data}
	l.Seq = c.expect(`{"seq":`).parseNumber()
	l.Type = string(c.expect(`,"type":`).parsePlainString())
	l.Version = int(c.expect(`,"v":`).parseNumber())
	l.Session = string(c.expect(`,"sessionId":`).parsePlainString())
	l.Task = string(c.expect(`,"streamId":`).parsePlainString())
	if c.accept(`,"actor":`) {
		l.Actor = string(c.expect(`,"actor":`).parsePlainString())
	}
	when := c.expect(`,"createdAt":`).parsePlainString()
	if c.accept(`,"seal":`) {
		l.Seal = string(c.expect(`,"seal":`).parsePlainString())
	}
	c.expect(`,"payload":`)
	if c.failed || l.Seq == 0 || l.Type == "" || l.Time.UnmarshalText(when) != nil {
		return recordLine{}, false
	}
	payload, closed := bytes.CutSuffix(c.rest, []byte("}"))
	if body, _, ok := SplitSum(c.rest); ok {
		payload = body
	}
	l.Payload, l.Prev = splitPrev(payload)
	return l, closed && len(l.Payload) > 0
}

// A log line ends with its checksum: `…,"sum":"<SumLen letters>"}`. Package audit defines the letters.
const (
	sumKey = `,"sum":"`
	SumLen = 32
)

// AppendSum appends the checksum to body, a line without its closing brace.
func AppendSum(body []byte, sum [SumLen]byte) []byte {
	return append(append(append(body, sumKey...), sum[:]...), `"}`...)
}

// SplitSum splits a line that ends with a checksum into the checked part and the checksum.
func SplitSum(line []byte) (body, sum []byte, ok bool) {
	at := len(line) - len(sumKey) - SumLen - len(`"}`)
	if at < 0 || string(line[at:at+len(sumKey)]) != sumKey || string(line[len(line)-2:]) != `"}` {
		return line, nil, false
	}
	sum = line[at+len(sumKey) : len(line)-2]
	for _, c := range sum {
		if !isSumByte[c] {
			return line, nil, false
		}
	}
	return line[:at], sum, true
}

// isSumByte is the set of letters in a checksum.
var isSumByte = func() (set [256]bool) {
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") {
		set[c] = true
	}
	return set
}()

const (
	prevKey = `,"prev":"`
	hashLen = 64 // hex digits of a SHA-256
)

// splitPrev splits `…,"prev":"<hash>"` off the end of b.
func splitPrev(b []byte) (payload []byte, prev string) {
	at := len(b) - len(prevKey) - hashLen - 1
	if at < 0 || !bytes.HasPrefix(b[at:], []byte(prevKey)) || b[len(b)-1] != '"' {
		return b, ""
	}
	hash := b[at+len(prevKey) : len(b)-1]
	for _, h := range hash {
		if (h < '0' || h > '9') && (h < 'a' || h > 'f') {
			return b, ""
		}
	}
	return b[:at], string(hash)
}

// A jsonCursor parses the simplest JSON from the front of rest. At the first unusual byte it becomes odd and
// stays so.
type jsonCursor struct {
	rest   []byte
	failed bool
}

func (c *jsonCursor) accept(s string) bool { return bytes.HasPrefix(c.rest, []byte(s)) }

func (c *jsonCursor) expect(s string) *jsonCursor {
	if !c.accept(s) {
		c.failed = true
		return c
	}
	c.rest = c.rest[len(s):]
	return c
}

// parseNumber parses a positive decimal that fits an int on every platform.
func (c *jsonCursor) parseNumber() uint64 {
	n := 0
	for n < len(c.rest) && c.rest[n] >= '0' && c.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(c.rest[:n]), 10, 31)
	if err != nil || c.rest[0] == '0' {
		c.failed = true
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

// parsePlainString parses a string of printable ASCII without escapes.
func (c *jsonCursor) parsePlainString() []byte {
	if !c.accept(`"`) {
		c.failed = true
		return nil
	}
	for i := 1; i < len(c.rest); i++ {
		switch b := c.rest[i]; {
		case b == '"':
			s := c.rest[1:i]
			c.rest = c.rest[i+1:]
			return s
		case !isPlain(b):
			c.failed = true
			return nil
		}
	}
	c.failed = true
	return nil
}
