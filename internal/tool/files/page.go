package files

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
)

// page is a range of lines of a file.
type page struct {
	text       strings.Builder
	start, end int // numbers of the first and last line; negative ones count from the end
	lines      int // number of lines
	total      int // lines of the whole file, or 0 if unknown
	hasMore    bool
	invalid    bool // some bytes were not UTF-8
}

// readPage reads up to limit lines, beginning with line offset. Its
// memory use is a page and a buffer, however large the file is.
func readPage(ctx context.Context, f io.ReaderAt, size int64, offset, limit int) (*page, error) {
	total := 0
	if size <= maxCountedFile {
		var err error
		if total, err = countLines(ctx, f, size); err != nil {
			return nil, err
		}
	}
	if offset < 0 && size > maxCountedFile {
		from, n, err := seekEnd(ctx, f, size, -offset)
		if err != nil {
			return nil, err
		}
		p := &page{start: -n}
		err = p.fill(newLineReader(ctx, io.NewSectionReader(f, from, size-from)), limit)
		p.end = p.start + p.lines - 1
		return p, err
	}
	if offset < 0 {
		offset = total + 1 + offset
	}
	p := &page{start: max(offset, 1), total: total}
	r := newLineReader(ctx, io.NewSectionReader(f, 0, size))
	skipped, ok, err := 0, true, error(nil)
	for ; skipped < p.start-1; skipped++ {
		if ok, err = r.readLine(nil); err != nil || !ok {
			break
		}
	}
	if err == nil {
		err = p.fill(r, limit)
	}
	if err == nil && p.lines == 0 && p.start > 1 {
		err = message.Errorf("offset %d is past the end; the file has %d lines", offset, skipped)
	}
	p.end = p.start + p.lines - 1
	return p, err
}

// fill adds lines up to the limit, until the page is full or the file ends.
func (p *page) fill(r *lineReader, limit int) error {
	for p.lines < limit {
		var line line
		ok, err := r.readLine(&line)
		if err != nil || !ok {
			return err
		}
		text := line.String()
		if p.lines > 0 && p.text.Len()+len(text) > maxPage {
			p.hasMore = true
			return nil
		}
		p.invalid = p.invalid || line.invalid
		p.text.WriteString(text)
		p.lines++
	}
	ok, err := r.readLine(nil)
	p.hasMore = ok
	return err
}

// line is the shown beginning of a line.
type line struct {
	shown   []byte
	size    int // bytes without the line end
	hasEnd  bool
	invalid bool
}

// String returns the line for display: valid UTF-8, cut if it is long, with a plain line end if it has any.
func (l *line) String() string {
	whole := len(l.shown) == l.size
	if whole && l.hasEnd {
		l.shown = bytes.TrimSuffix(l.shown, []byte("\r"))
		l.size = len(l.shown)
	}
	used := len(l.shown)
	if used > maxLineChars {
		used = 0
		for n := maxLineChars; n > 0 && used < len(l.shown); n-- {
			_, size := utf8.DecodeRune(l.shown[used:])
			used += size
		}
	}
	s := string(l.shown[:used])
	valid := strings.ToValidUTF8(s, "\ufffd")
	l.invalid = valid != s
	if used < l.size {
		valid += fmt.Sprintf("… [%d more bytes in this line]", l.size-used)
	}
	if l.hasEnd {
		valid += "\n"
	}
	return valid
}

// lineReader reads a file line by line and holds only the shown part of a line.
type lineReader struct {
	ctx       context.Context
	r         *bufio.Reader
	atStart   bool
	readCount int
}

const bufSize = 64 << 10

func newLineReader(ctx context.Context, r io.Reader) *lineReader {
	return &lineReader{ctx: ctx, r: bufio.NewReaderSize(r, bufSize), atStart: true}
}

// readLine reads one line into l, or skips it if l is nil. It reports whether there was one.
func (r *lineReader) readLine(l *line) (bool, error) {
	any := false
	for {
		if r.readCount++; r.readCount%256 == 0 && r.ctx.Err() != nil {
			return false, r.ctx.Err()
		}
		chunk, err := r.r.ReadSlice('\n')
		if r.atStart {
			chunk, r.atStart = bytes.TrimPrefix(chunk, []byte(bom)), false
		}
		any = any || len(chunk) > 0
		if l != nil {
			text, ended := bytes.CutSuffix(chunk, []byte("\n"))
			l.hasEnd = l.hasEnd || ended
			l.size += len(text)
			l.shown = append(l.shown, text[:min(len(text), maxLineBytes-len(l.shown))]...)
		}
		switch err {
		case nil:
			return true, nil
		case bufio.ErrBufferFull:
		case io.EOF:
			return any, nil
		default:
			return false, message.Errorf("while reading: %w", err)
		}
	}
}

// maxLineBytes is enough for maxLineChars characters of any kind.
const maxLineBytes = maxLineChars*utf8.UTFMax + 1

// countLines counts the lines of a file.
func countLines(ctx context.Context, f io.ReaderAt, size int64) (lines int, err error) {
	buf := make([]byte, min(size+1, 256<<10))
	last := byte('\n')
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := f.ReadAt(buf, at)
		if n > 0 {
			lines += bytes.Count(buf[:n], []byte("\n"))
			last, at = buf[n-1], at+int64(n)
		}
		if err == io.EOF || n == 0 && err == nil {
			break
		}
		if err != nil {
			return 0, message.Errorf("while reading: %w", err)
		}
	}
	if last != '\n' {
		lines++
	}
	return lines, nil
}

// seekEnd finds the start of the n-th line from the end, reading
// backwards. It returns how many lines follow, if they are fewer.
func seekEnd(ctx context.Context, f io.ReaderAt, size int64, n int) (from int64, lines int, err error) {
	buf := make([]byte, 256<<10)
	end := size
	for end > 0 {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		begin := max(0, end-int64(len(buf)))
		chunk := buf[:end-begin]
		if _, err := f.ReadAt(chunk, begin); err != nil && err != io.EOF {
			return 0, 0, message.Errorf("while reading: %w", err)
		}
		for i := len(chunk) - 1; i >= 0; i-- {
			// No line begins after the end of the last line.
			if chunk[i] != '\n' || begin+int64(i) == size-1 {
				continue
			}
			if lines++; lines == n {
				return begin + int64(i) + 1, n, nil
			}
		}
		end = begin
	}
	return 0, lines + 1, nil
}
