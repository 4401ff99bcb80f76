package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
)

// searcher searches lines in several files at a time. Its
// result does not depend on their order of completion.
type searcher struct {
	ws       *workspace.Workspace
	matcher  *matcher
	include  fileFilter
	fileType fileType
	base     string
	mode     string
	context  int
	limit    int                    // wanted matching lines, or files
	maxSize  int64                  // maximum bytes of a file
	isHidden func(path string) bool // may be nil
	namedErr error                  // why the one named file could not be searched

	hitCount atomic.Int64 // matching lines found so far, or files
	results  []fileHits   // in order of discovery

	fileCount     int // number of selected files
	tooLarge      int
	binary        []string // matching files that are not text
	unreadable    []string
	otherEncoding []string // files whose encoding cannot express all characters of the pattern
	truncated     bool     // some files were not searched
}

// fileHits are the matching lines of one file as shown: for each the line itself and, if requested, its context.
type fileHits [][]string

// span is the extent of a line, without its line end.
type span struct{ from, to int }

// run searches the named file, or every file below the base.
func (s *searcher) run(ctx context.Context) {
	if s.maxSize != maxNamedFile {
		s.searchTree(ctx)
		return
	}
	data, _, err := s.ws.ReadFile(s.base, s.maxSize)
	var h fileHits
	if err == nil {
		h, err = s.searchFile(ctx, s.base, data)
		if s.hasOtherEncoding(data, err) {
			s.otherEncoding = []string{s.base}
		}
	}
	if errors.Is(err, errBinary) || errors.Is(err, errBinaryMatch) {
		err = message.Errorf("%s: %w", s.base, err)
	}
	s.namedErr, s.results = err, []fileHits{h}
}

// job is a group of files to search with their results.
type job struct {
	batch    workspace.Batch
	findings []fileResult
	lines    int // found lines, or files
}

type fileResult struct {
	path          string
	hits          fileHits
	otherEncoding bool
	err           error
}

// searchTree searches every file below the base. It hands out files in order, so that once enough lines are
// found, the files handed out contain the first ones.
func (s *searcher) searchTree(ctx context.Context) {
	work := make(chan *job)
	var jobs []*job
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var last *workspace.Reader
			for j := range work {
				last = s.searchBatch(ctx, j, last)
			}
		})
	}
	looked := 0
	for b := range s.ws.Batches(ctx, s.base) {
		if looked += b.Examined; looked > maxWalk {
			s.truncated = true
			break
		}
		if b.Err != nil {
			s.unreadable = appendLimited(s.unreadable, b.Dir)
		}
		b.Names = slices.DeleteFunc(b.Names, func(name string) bool {
			at := path.Join(b.Dir, name)
			rel := relativePath(s.base, at)
			return !s.fileType.matches(rel) || !s.include.matches(rel) || s.isHidden != nil && s.isHidden(at)
		})
		s.fileCount += len(b.Names)
		if len(b.Names) == 0 {
			continue
		}
		j := &job{batch: b}
		jobs = append(jobs, j)
		work <- j
		if s.hitCount.Load() > int64(s.limit) {
			s.truncated = true
			break
		}
	}
	close(work)
	workers.Wait()
	for _, j := range jobs {
		for _, f := range j.findings {
			if f.otherEncoding {
				s.otherEncoding = appendLimited(s.otherEncoding, f.path)
			}
			switch {
			case errors.Is(f.err, workspace.ErrTooLarge):
				s.tooLarge++
			case errors.Is(f.err, errBinary):
			case errors.Is(f.err, errBinaryMatch):
				s.binary = appendLimited(s.binary, f.path)
			case f.err != nil:
				s.unreadable = appendLimited(s.unreadable, f.path)
			case f.hits != nil:
				s.results = append(s.results, f.hits)
			}
		}
	}
}

// searchBatch searches the files of one job. last is the reader of the previous job.
func (s *searcher) searchBatch(ctx context.Context, j *job, last *workspace.Reader) *workspace.Reader {
	r, err := j.batch.Open()
	if err != nil {
		j.findings = append(j.findings, fileResult{path: j.batch.Dir, err: err})
		return last
	}
	defer r.Close()
	r.Reuse(last)
	for _, name := range j.batch.Names {
		if j.lines > s.limit {
			break // later matches are not shown
		}
		data, err := r.Read(name, s.maxSize)
		name = path.Join(j.batch.Dir, name)
		var h fileHits
		if err == nil && ctx.Err() == nil {
			h, err = s.searchFile(ctx, name, data)
			j.lines += len(h)
		}
		foreign := s.hasOtherEncoding(data, err)
		if h != nil || err != nil || foreign {
			j.findings = append(j.findings, fileResult{name, h, foreign, err})
		}
	}
	return r
}

// hasOtherEncoding reports whether a searched text has an encoding
// that cannot express all characters of the pattern.
func (s *searcher) hasOtherEncoding(data []byte, err error) bool {
	return err == nil && s.matcher.nonASCII && !utf8.Valid(decodeText(data))
}

// hasFound reports whether anything was found.
func (s *searcher) hasFound() bool {
	return len(s.binary) > 0 || slices.ContainsFunc(s.results, func(h fileHits) bool { return h != nil })
}

// Files that are not text are not shown.
var (
	errBinary      = errors.New("a binary file with no matching line")
	errBinaryMatch = errors.New("a binary file with a match")
)

// sniffLen is how much of a file is examined to tell text from binary.
const sniffLen = 8000

// searchFile finds matching lines in a file.
func (s *searcher) searchFile(ctx context.Context, name string, data []byte) (fileHits, error) {
	data = decodeText(data)
	if bytes.IndexByte(data[:min(len(data), sniffLen)], 0) >= 0 {
		if len(s.matcher.findLines(ctx, data, 1)) > 0 {
			return nil, errBinaryMatch
		}
		return nil, errBinary
	}
	if !s.matcher.keepReturns && bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	if s.mode == modeFiles || s.mode == modeCount {
		limit := 1
		if s.mode == modeCount {
			limit = maxCounted
		}
		n := len(s.matcher.findLines(ctx, data, limit))
		if n == 0 {
			return nil, nil
		}
		s.hitCount.Add(1)
		if s.mode == modeCount {
			name += ":" + strconv.Itoa(n)
		}
		return fileHits{{name}}, nil
	}
	lines := s.matcher.findLines(ctx, data, s.limit+1)
	s.hitCount.Add(int64(len(lines)))
	p := printer{path: name, data: data, context: s.context, matchPos: s.matcher.position, lineNumber: 1}
	return p.format(lines), nil
}

// maxCounted limits how far the lines of one file are counted.
const maxCounted = 1_000_000

// result returns the first matches, as many as requested and as fit.
func (s *searcher) result() grepResult {
	r := grepResult{OK: true, Matches: []string{}, Truncated: s.truncated, TooLarge: s.tooLarge, Binary: s.binary,
		Unreadable: s.unreadable}
	room, shown := maxText, 0
	for _, h := range s.results {
		for i, group := range h {
			if shown == s.limit || room <= 0 {
				r.Truncated = true
				return r
			}
			if i == 0 {
				r.Files++
				if s.context > 0 && shown > 0 {
					r.Matches = append(r.Matches, "--")
				}
			}
			for _, line := range group {
				room -= len(line) + 1
			}
			r.Matches = append(r.Matches, group...)
			shown++
			n := 1 // matching lines represented by a group
			if s.mode == modeCount && len(group) > 0 {
				n, _ = strconv.Atoi(group[0][strings.LastIndexByte(group[0], ':')+1:]) // a number written by printer
			}
			r.Count += n
		}
	}
	return r
}

// printer formats the matching lines of a file and their context.
type printer struct {
	path     string
	data     []byte // the file with plain line ends
	context  int
	matchPos func(line []byte) int // position of the match in a line

	out         []string // lines of the current match
	size        int      // bytes so far
	lineNumber  int      // of the line at pos
	pos         int
	lastWritten int // number of the last written line, or 0
}

// format formats the lines, at most as many as fit into a result. An empty group then represents the rest.
func (p *printer) format(lines []span) (h fileHits) {
	for i, l := range lines {
		if p.size >= maxText {
			return append(h, nil)
		}
		next := len(p.data)
		if i+1 < len(lines) {
			next = lines[i+1].from
		}
		p.lineNumber += bytes.Count(p.data[p.pos:l.from], []byte("\n"))
		p.pos = l.from
		p.writeBefore(l)
		p.writeLine(p.lineNumber, ":", l, p.matchPos)
		p.writeAfter(l, next)
		h, p.out = append(h, p.out), nil
	}
	return h
}

// writeBefore writes the context lines before l that are not written yet.
func (p *printer) writeBefore(l span) {
	var above []span
	for at := l.from; at > 0 && len(above) < min(p.context, p.lineNumber-1-p.lastWritten); {
		from := bytes.LastIndexByte(p.data[:at-1], '\n') + 1
		above = append(above, span{from, at - 1})
		at = from
	}
	if p.context > 0 && p.lastWritten > 0 && p.lineNumber-len(above) > p.lastWritten+1 {
		p.out = append(p.out, "--")
	}
	for i := len(above) - 1; i >= 0; i-- {
		p.writeLine(p.lineNumber-1-i, "-", above[i], nil)
	}
}

// writeAfter writes the context lines after l, up to the next match.
func (p *printer) writeAfter(l span, next int) {
	at, number := l.to+1, p.lineNumber
	for range p.context {
		if at >= next {
			return
		}
		end := len(p.data)
		if i := bytes.IndexByte(p.data[at:], '\n'); i >= 0 {
			end = at + i
		}
		number++
		p.writeLine(number, "-", span{at, end}, nil)
		at = end + 1
	}
}

func (p *printer) writeLine(number int, mark string, l span, at func(line []byte) int) {
	text := p.data[l.from:l.to]
	place := 0
	if at != nil && len(text) > maxLineText {
		place = at(text)
	}
	s := fmt.Sprintf("%s%s%d%s%s", p.path, mark, number, mark, shorten(text, place))
	p.out = append(p.out, s)
	p.size += len(s) + 1
	p.lastWritten = number
}

// shorten makes a line valid UTF-8 of limited length, including what is at a position in it.
func shorten(b []byte, place int) string {
	if len(b) <= maxLineText {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	from := 0
	if place > maxLineText*3/4 {
		for from = place - maxLineText/2; from > 0 && !utf8.RuneStart(b[from]); from-- {
		}
	}
	end := from
	for n := 0; n < maxLineText && end < len(b); n++ {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	s := strings.ToValidUTF8(string(b[from:end]), "\ufffd")
	if from > 0 {
		s = "…" + s
	}
	if end < len(b) {
		s += "…"
	}
	return s
}
