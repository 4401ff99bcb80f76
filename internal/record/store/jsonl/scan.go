package jsonl

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

const (
	readAhead  = 64 << 10  // minimum size of a read, if the file has as much
	chunkBytes = 256 << 10 // about this much of a log is parsed at a time …
	workers    = 8         // … by at most this many goroutines …
	workerMin  = 32 << 10  // … with at least this much for each

	minCachedLog = 64 << 10 // logs from this size on are not checked again
)

// scanner reads the complete records of one log. It holds one chunk of lines at a time.
type scanner struct {
	log       event.Log
	view      readOptions
	f         disk.File // nil if the file does not exist
	in        io.Reader // nil at the end of input
	size      int64     // size of the file when opened
	stamp     disk.Stamp
	unchanged bool // unchanged since all lines were valid

	logEntry        // the current record; Seq is zero at the end
	start     int64 // start of the current record, or end of the last complete one
	end       int64
	converted bool // some line so far ended with CRLF

	chunk       []logEntry // the next entries
	entries     []logEntry // the whole chunk, for reuse
	data        []byte     // the lines of chunk
	rest        []byte     // data read after them
	link        audit.Link // after the last line of chunk
	hasChecksum bool       // the last line of chunk has a checksum
}

// logEntry is one line.
type logEntry struct {
	line           []byte // without its line end
	length         int    // length with its line end
	prev           audit.Link
	lacksChecksum  bool         // has no checksum, though earlier lines have
	hasBadChecksum bool         // its checksum is invalid
	seq            uint64       // zero if it is not a record
	record         event.Record // if decoded
	skipped        bool         // its content is not wanted
}

// readOptions selects what to read of a log. The zero view is the whole log, without decoding.
type readOptions struct {
	decode bool   // decode records …
	after  uint64 // … newer than this
	limit  int64  // bytes to read; zero for all
	// wants, if set, reports whether to decode the record in a line.
	wants func(line []byte) bool
	// validStamp, if set, returns the stamp of the log when all lines were valid: with the same stamp, they are
	// not checked again.
	validStamp func() disk.Stamp
}

// openScanner opens a log before its first record. A missing log has none.
func openScanner(d disk.Disk, dir string, log event.Log, v readOptions) (*scanner, error) {
	s := &scanner{log: log, view: v, link: audit.FirstLink(log)}
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
	s.unchanged = v.validStamp != nil && s.size >= minCachedLog && v.validStamp() == s.stamp
	if v.limit > 0 {
		s.in = io.LimitReader(f, v.limit)
	}
	return s, nil
}

// next advances to the next record. It ends at the first line that is torn, invalid, changed, or not
// newer than the previous one.
func (s *scanner) next() error {
	before := s.seq
	s.start, s.logEntry = s.end, logEntry{}
	if len(s.chunk) == 0 {
		if err := s.fill(); err != nil {
			return message.Errorf("read %s log: %w", s.log, err)
		}
	}
	if len(s.chunk) == 0 || s.chunk[0].seq <= before {
		s.chunk, s.in = nil, nil
		return nil
	}
	s.logEntry, s.chunk = s.chunk[0], s.chunk[1:]
	s.end += int64(s.length)
	s.converted = s.converted || s.length > len(s.line)+1
	return nil
}

// fill reads and parses the next lines. It finds none at the end of the log, and at a line that has no
// end or does not begin like a record.
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
		// Ignore changed line ends.
		text := s.data[begin:end]
		line := bytes.TrimSuffix(text[:len(text)-1], []byte("\r"))
		_, _, checked := event.SplitSum(line)
		e := logEntry{line: line, length: len(text), prev: s.link, lacksChecksum: s.hasChecksum && !checked}
		s.link, s.hasChecksum = audit.LinkAfter(line), s.hasChecksum || checked
		s.chunk[i] = e
		begin = end
	}
	s.parseAll()
	return nil
}

// readLines fills data with the next lines and returns where each ends. Garbage shows in its first byte,
// so it is not loaded into memory.
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

// parseAll parses the chunk, concurrently if it is long, and waits for the result.
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
	// Lines whose checksums were removed are not what the next line follows.
	for i := len(s.chunk) - 1; i > 0; i-- {
		if s.chunk[i].hasBadChecksum && s.chunk[i-1].lacksChecksum {
			s.chunk[i-1].seq, s.chunk[i-1].hasBadChecksum = 0, true
		}
	}
}

// parse parses each line once if possible: after a wanted record all others are wanted too.
func (s *scanner) parse(entries []logEntry) {
	wanted := s.view.decode && s.view.after == 0
	var checker audit.Checker
	for i := range entries {
		e := &entries[i]
		if !s.unchanged {
			if holds, checked := checker.Check(e.line, e.prev); !holds || e.lacksChecksum && !audit.IsEarlierFormat(e.line) {
				e.hasBadChecksum = checked
				continue
			}
		}
		if s.view.wants != nil && !(s.view.decode && s.view.wants(e.line)) {
			e.skipped = true
			e.seq = event.SeqOf(e.line)
			continue
		}
		if !wanted {
			e.seq, _ = event.PeekSeq(e.line)
			wanted = s.view.decode && e.seq > s.view.after
		}
		if wanted {
			e.record, _, _ = event.Decode(e.line, s.log)
			e.seq = e.record.Seq
		}
	}
}

// hasMore reports whether the log continues after the last record.
func (s *scanner) hasMore() bool { return s.f != nil && s.start < s.size }

// logMerger reads the records of several logs in the order of their Seqs.
type logMerger struct {
	scanners []*scanner
	current  *scanner // the scanner with the last returned record
}

func (m *logMerger) addLog(d disk.Disk, dir string, log event.Log, v readOptions) error {
	s, err := openScanner(d, dir, log, v)
	if err != nil {
		return err
	}
	m.scanners = append(m.scanners, s)
	return s.next()
}

func (m *logMerger) close() {
	for _, s := range m.scanners {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// hasMore reports whether a log continues after the last record.
func (m *logMerger) hasMore() bool { return slices.ContainsFunc(m.scanners, (*scanner).hasMore) }

// next returns the scanner with the next record, or nil at the end. The record is valid until the next
// call.
func (m *logMerger) next() (*scanner, error) {
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
