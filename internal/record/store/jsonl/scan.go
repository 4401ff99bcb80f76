package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

const (
	readAhead  = 64 << 10  // bytes asked of a file at a time, at least, if it has so many
	chunkBytes = 256 << 10 // about so much of a log is parsed at a time …
	workers    = 8         // … by at most so many goroutines …
	workerMin  = 32 << 10  // … if there is so much to do for each

	worthKeeping = 64 << 10 // a log of so many bytes is not checked again
)

// scanner goes through the whole records of one log. It holds a chunk of lines
// at a time, however many there are.
type scanner struct {
	log   event.Log
	view  view
	f     disk.File // nil if there is no such file
	in    io.Reader // nil if there is no more to read
	size  int64     // of the file when it was opened
	stamp disk.Stamp
	same  bool // every line is as it was when all of them held

	entry           // the current record; its Seq is zero if there is no more
	start     int64 // where it begins, or where the last whole one ended
	end       int64
	converted bool // a line so far ended with CRLF

	chunk   []entry    // what comes next
	entries []entry    // chunk as a whole, to be used again
	data    []byte     // the lines of chunk
	rest    []byte     // what was read beyond them
	link    audit.Link // after the last line of chunk
	checked bool       // that line carries a check
}

// entry is one line.
type entry struct {
	line    []byte // without its end
	long    int    // in bytes, with its end
	prev    audit.Link
	odd     bool         // it carries no check, though lines before it do
	changed bool         // its check does not hold
	seq     uint64       // zero if it is no record
	record  event.Record // if it was to be decoded
	passed  bool         // nobody wants to know what it says
}

// view is what is wanted of a log. The zero view is of the whole log, with
// nothing decoded.
type view struct {
	decode bool   // decode records …
	after  uint64 // … newer than this
	limit  int64  // look at so many bytes only; zero for all of them
	// wants, if set, reports whether a record is to be decoded by its line.
	wants func(line []byte) bool
	// whole, if set, is the stamp of the log when every line of it held: they are not
	// checked again as long as it is the same.
	whole func() disk.Stamp
}

// openScanner opens a log and stands before its first record. A log never
// written has none.
func openScanner(d disk.Disk, dir string, log event.Log, v view) (*scanner, error) {
	s := &scanner{log: log, view: v, link: audit.First(log)}
	f, err := d.Open(Path(dir, log), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read log", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.f, s.in, s.size, s.stamp = f, f, info.Size(), disk.StampOf(info)
	s.same = v.whole != nil && s.size >= worthKeeping && v.whole() == s.stamp
	if v.limit > 0 {
		s.in = io.LimitReader(f, v.limit)
	}
	return s, nil
}

// next moves to the next record. It comes to its end at the first line that is
// torn, broken, other than it was written, or not newer than the one before it.
func (s *scanner) next() error {
	before := s.seq
	s.start, s.entry = s.end, entry{}
	if len(s.chunk) == 0 {
		if err := s.fill(); err != nil {
			return fmt.Errorf("read %s log: %w", s.log, err)
		}
	}
	if len(s.chunk) == 0 || s.chunk[0].seq <= before {
		s.chunk, s.in = nil, nil
		return nil
	}
	s.entry, s.chunk = s.chunk[0], s.chunk[1:]
	s.end += int64(s.long)
	s.converted = s.converted || s.long > len(s.line)+1
	return nil
}

// fill reads and parses the next lines. There are none at the end of the log,
// and where a line does not end or does not begin as a record does.
func (s *scanner) fill() error {
	if s.in == nil {
		return nil
	}
	ends, err := s.readLines()
	if err != nil {
		return err
	}
	clear(s.entries)
	s.entries = slices.Grow(s.entries[:0], len(ends))[:len(ends)]
	s.chunk = s.entries
	begin := 0
	for i, end := range ends {
		// Line ends that somebody changed are no part of it.
		text := s.data[begin:end]
		line := bytes.TrimSuffix(text[:len(text)-1], []byte("\r"))
		_, _, checked := event.CutSum(line)
		e := entry{line: line, long: len(text), prev: s.link, odd: s.checked && !checked}
		s.link, s.checked = audit.After(line), s.checked || checked
		s.chunk[i] = e
		begin = end
	}
	s.parseAll()
	return nil
}

// readLines makes data the next lines, and says where each ends. That garbage is no
// line shows in its first byte, so it is not held in memory.
func (s *scanner) readLines() (ends []int, err error) {
	s.data = append(s.data[:0], s.rest...)
	begin, searched := 0, 0
	for s.in != nil && begin < chunkBytes {
		if begin < len(s.data) && s.data[begin] != '{' {
			s.in = nil
			break
		}
		if n := bytes.IndexByte(s.data[searched:], '\n'); n >= 0 {
			begin = searched + n + 1
			ends, searched = append(ends, begin), begin
			continue
		}
		searched = len(s.data)
		s.data = slices.Grow(s.data, int(min(readAhead, s.size+1)))
		n, err := s.in.Read(s.data[len(s.data):cap(s.data)])
		s.data = s.data[:len(s.data)+n]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n == 0 && err != nil {
			s.in = nil
		}
	}
	s.data, s.rest = s.data[:begin], s.data[begin:]
	return ends, nil
}

// parseAll parses the chunk, side by side if it is long, and returns when all
// is done.
func (s *scanner) parseAll() {
	n := min(len(s.data)/workerMin, workers, runtime.GOMAXPROCS(0), len(s.chunk))
	if n < 2 {
		s.parse(s.chunk)
	} else {
		var wg sync.WaitGroup
		for part := range slices.Chunk(s.chunk, (len(s.chunk)+n-1)/n) {
			wg.Go(func() { s.parse(part) })
		}
		wg.Wait()
	}
	// Lines whose checks were taken off are not what the next line follows.
	for i := len(s.chunk) - 1; i > 0; i-- {
		if s.chunk[i].changed && s.chunk[i-1].odd {
			s.chunk[i-1].seq, s.chunk[i-1].changed = 0, true
		}
	}
}

// parse goes through each line once where it can: after a record that was
// wanted come only wanted ones.
func (s *scanner) parse(entries []entry) {
	wanted := s.view.decode && s.view.after == 0
	var checker audit.Checker
	for i := range entries {
		e := &entries[i]
		if !s.same {
			if holds, checked := checker.Holds(e.line, e.prev); !holds || e.odd && !audit.Earlier(e.line) {
				e.changed = checked
				continue
			}
		}
		if s.view.wants != nil && !(s.view.decode && s.view.wants(e.line)) {
			e.passed = true
			e.seq = event.Number(e.line)
			continue
		}
		if !wanted {
			e.seq, _ = event.Peek(e.line)
			wanted = s.view.decode && e.seq > s.view.after
		}
		if wanted {
			e.record, _, _ = event.Decode(e.line, s.log)
			e.seq = e.record.Seq
		}
	}
}

// more reports whether the log goes on after the last record.
func (s *scanner) more() bool { return s.f != nil && s.start < s.size }

// merge goes through the records of several logs in the order of their Seqs.
type merge struct {
	scanners []*scanner
	current  *scanner // the one with the record shown last, which it still has
}

func (m *merge) open(d disk.Disk, dir string, log event.Log, v view) error {
	s, err := openScanner(d, dir, log, v)
	if err != nil {
		return err
	}
	m.scanners = append(m.scanners, s)
	return s.next()
}

func (m *merge) close() {
	for _, s := range m.scanners {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// more reports whether a log goes on after the last record.
func (m *merge) more() bool { return slices.ContainsFunc(m.scanners, (*scanner).more) }

// next returns the scanner that has the next record, or nil at the end. The
// record is there until next is called again.
func (m *merge) next() (*scanner, error) {
	if m.current != nil {
		if err := m.current.next(); err != nil {
			return nil, err
		}
	}
	m.current = nil
	for _, s := range m.scanners {
		if s.seq != 0 && (m.current == nil || s.seq < m.current.seq) {
			m.current = s
		}
	}
	return m.current, nil
}
