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

	"coder/internal/host/workspace"
)

// searcher searches lines in several files at a time. Its
// result does not depend on their order of completion.
type searcher struct {
	ws      *workspace.Workspace
	m       *matcher
	include include
	kind    kind
	base    string
	mode    string
	context int
	limit   int                    // wanted matching lines, or files
	size    int64                  // maximum bytes of a file
	hides   func(path string) bool // may be nil
	named   error                  // why the one named file could not be searched

	hits  atomic.Int64 // matching lines found so far, or files
	files []hits       // in order of discovery

	searched   int // number of selected files
	large      int
	binary     []string // matching files that are not text
	unreadable []string
	foreign    []string // files whose encoding cannot express all characters of the pattern
	cut        bool     // some files were not searched
}

// hits are the matching lines of one file as shown: for each the line itself and, if requested, its context.
type hits [][]string

// span is the extent of a line, without its line end.
type span struct{ from, to int }

// run searches the named file, or every file below the base.
func (s *searcher) run(ctx context.Context) {
	if s.size != maxNamedFile {
		s.all(ctx)
		return
	}
	data, _, err := s.ws.ReadFile(s.base, s.size)
	var h hits
	if err == nil {
		h, err = s.search(ctx, s.base, data)
		if s.isForeign(data, err) {
			s.foreign = []string{s.base}
		}
	}
	if errors.Is(err, errBinary) || errors.Is(err, errBinaryMatch) {
		err = fmt.Errorf("%s: %w", s.base, err)
	}
	s.named, s.files = err, []hits{h}
}

// job is a group of files to search with their results.
type job struct {
	batch workspace.Batch
	found []finding
	lines int // found lines, or files
}

type finding struct {
	path    string
	hits    hits
	foreign bool
	err     error
}

// all searches every file below the base. It hands out files in order, so that once enough lines are
// found, the files handed out contain the first ones.
func (s *searcher) all(ctx context.Context) {
	work := make(chan *job)
	var jobs []*job
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var last *workspace.Reader
			for j := range work {
				last = s.do(ctx, j, last)
			}
		})
	}
	looked := 0
	for b := range s.ws.Batches(ctx, s.base) {
		if looked += b.Seen; looked > maxWalk {
			s.cut = true
			break
		}
		if b.Err != nil {
			s.unreadable = noted(s.unreadable, b.Dir)
		}
		b.Names = slices.DeleteFunc(b.Names, func(name string) bool {
			at := path.Join(b.Dir, name)
			rel := below(s.base, at)
			return !s.kind.matches(rel) || !s.include.matches(rel) || s.hides != nil && s.hides(at)
		})
		s.searched += len(b.Names)
		if len(b.Names) == 0 {
			continue
		}
		j := &job{batch: b}
		jobs = append(jobs, j)
		work <- j
		if s.hits.Load() > int64(s.limit) {
			s.cut = true
			break
		}
	}
	close(work)
	workers.Wait()
	for _, j := range jobs {
		for _, f := range j.found {
			if f.foreign {
				s.foreign = noted(s.foreign, f.path)
			}
			switch {
			case errors.Is(f.err, workspace.ErrTooLarge):
				s.large++
			case errors.Is(f.err, errBinary):
			case errors.Is(f.err, errBinaryMatch):
				s.binary = noted(s.binary, f.path)
			case f.err != nil:
				s.unreadable = noted(s.unreadable, f.path)
			case f.hits != nil:
				s.files = append(s.files, f.hits)
			}
		}
	}
}

// do searches the files of one job. last is the reader of the previous job.
func (s *searcher) do(ctx context.Context, j *job, last *workspace.Reader) *workspace.Reader {
	r, err := j.batch.Open()
	if err != nil {
		j.found = append(j.found, finding{path: j.batch.Dir, err: err})
		return last
	}
	defer r.Close()
	r.Reuse(last)
	for _, name := range j.batch.Names {
		if j.lines > s.limit {
			break // later matches are not shown
		}
		data, err := r.Read(name, s.size)
		name = path.Join(j.batch.Dir, name)
		var h hits
		if err == nil && ctx.Err() == nil {
			h, err = s.search(ctx, name, data)
			j.lines += len(h)
		}
		foreign := s.isForeign(data, err)
		if h != nil || err != nil || foreign {
			j.found = append(j.found, finding{name, h, foreign, err})
		}
	}
	return r
}

// isForeign reports whether a searched text has an encoding
// that cannot express all characters of the pattern.
func (s *searcher) isForeign(data []byte, err error) bool {
	return err == nil && s.m.beyond && !utf8.Valid(decoded(data))
}

// found reports whether anything was found.
func (s *searcher) found() bool {
	return len(s.binary) > 0 || slices.ContainsFunc(s.files, func(h hits) bool { return h != nil })
}

// Files that are not text are not shown.
var (
	errBinary      = errors.New("it is a binary file with no matching line")
	errBinaryMatch = errors.New("it is a binary file with a match")
)

// sniffLen is how much of a file is examined to tell text from binary.
const sniffLen = 8000

// search finds matching lines in a file.
func (s *searcher) search(ctx context.Context, name string, data []byte) (hits, error) {
	data = decoded(data)
	if bytes.IndexByte(data[:min(len(data), sniffLen)], 0) >= 0 {
		if len(s.m.lines(ctx, data, 1)) > 0 {
			return nil, errBinaryMatch
		}
		return nil, errBinary
	}
	if !s.m.returns && bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	if s.mode == modeFiles || s.mode == modeCount {
		limit := 1
		if s.mode == modeCount {
			limit = maxCounted
		}
		n := len(s.m.lines(ctx, data, limit))
		if n == 0 {
			return nil, nil
		}
		s.hits.Add(1)
		if s.mode == modeCount {
			name += ":" + strconv.Itoa(n)
		}
		return hits{{name}}, nil
	}
	lines := s.m.lines(ctx, data, s.limit+1)
	s.hits.Add(int64(len(lines)))
	p := printer{path: name, data: data, context: s.context, at: s.m.at, number: 1}
	return p.print(lines), nil
}

// maxCounted limits how far the lines of one file are counted.
const maxCounted = 1_000_000

// result returns the first matches, as many as requested and as fit.
func (s *searcher) result() grepResult {
	r := grepResult{OK: true, Matches: []string{}, Truncated: s.cut, TooLarge: s.large, Binary: s.binary, Unreadable: s.unreadable}
	room, shown := maxText, 0
	for _, h := range s.files {
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
	path    string
	data    []byte // the file with plain line ends
	context int
	at      func(line []byte) int // position of the match in a line

	out    []string // lines of the current match
	size   int      // bytes so far
	number int      // of the line at pos
	pos    int
	last   int // number of the last written line, or 0
}

// print formats the lines, at most as many as fit into a result. An empty group then represents the rest.
func (p *printer) print(lines []span) (h hits) {
	for i, l := range lines {
		if p.size >= maxText {
			return append(h, nil)
		}
		next := len(p.data)
		if i+1 < len(lines) {
			next = lines[i+1].from
		}
		p.number += bytes.Count(p.data[p.pos:l.from], []byte("\n"))
		p.pos = l.from
		p.before(l)
		p.line(p.number, ":", l, p.at)
		p.after(l, next)
		h, p.out = append(h, p.out), nil
	}
	return h
}

// before writes the context lines before l that are not written yet.
func (p *printer) before(l span) {
	var above []span
	for at := l.from; at > 0 && len(above) < min(p.context, p.number-1-p.last); {
		from := bytes.LastIndexByte(p.data[:at-1], '\n') + 1
		above = append(above, span{from, at - 1})
		at = from
	}
	if p.context > 0 && p.last > 0 && p.number-len(above) > p.last+1 {
		p.out = append(p.out, "--")
	}
	for i := len(above) - 1; i >= 0; i-- {
		p.line(p.number-1-i, "-", above[i], nil)
	}
}

// after writes the context lines after l, up to the next match.
func (p *printer) after(l span, next int) {
	at, number := l.to+1, p.number
	for range p.context {
		if at >= next {
			return
		}
		end := len(p.data)
		if i := bytes.IndexByte(p.data[at:], '\n'); i >= 0 {
			end = at + i
		}
		number++
		p.line(number, "-", span{at, end}, nil)
		at = end + 1
	}
}

func (p *printer) line(number int, mark string, l span, at func(line []byte) int) {
	text := p.data[l.from:l.to]
	place := 0
	if at != nil && len(text) > maxLineText {
		place = at(text)
	}
	s := fmt.Sprintf("%s%s%d%s%s", p.path, mark, number, mark, shorten(text, place))
	p.out = append(p.out, s)
	p.size += len(s) + 1
	p.last = number
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
