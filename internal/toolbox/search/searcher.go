package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"coder/internal/workspace"
)

// searcher looks for lines in files, several files at a time. Its answer does
// not depend on which of them is done first.
type searcher struct {
	ws      *workspace.Workspace
	m       *matcher
	include include
	base    string
	context int
	limit   int   // matching lines wanted
	size    int64 // bytes a file may have
	named   error // why the one file that was named could not be searched

	hits  atomic.Int64 // matching lines found so far
	files []hits       // in the order they were come across

	large      int
	unreadable []string
	cut        bool // not everything was looked at
}

// hits are the matching lines of one file as they are shown: for each the line
// itself and, if context is wanted, the lines around it.
type hits [][]string

// span is where a line begins and ends, without its line end.
type span struct{ from, to int }

// one searches the file that was named.
func (s *searcher) one(ctx context.Context, name string) {
	h, err := s.search(ctx, name)
	if errors.Is(err, errBinary) {
		err = fmt.Errorf("%s is a binary file", name)
	}
	s.named, s.files = err, []hits{h}
}

// job is a file to be searched and what came of it.
type job struct {
	path string
	hits hits
	err  error
}

// all searches every file below the base. Files are handed out in order, so
// once enough lines are found those handed out hold the first of them.
func (s *searcher) all(ctx context.Context) {
	work := make(chan *job)
	var jobs []*job
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range work {
				j.hits, j.err = s.search(ctx, j.path)
			}
		})
	}
	looked := 0
	for e := range s.ws.Walk(ctx, s.base, 0) {
		if looked++; looked > maxWalk || s.hits.Load() > int64(s.limit) {
			s.cut = true
			break
		}
		switch {
		case e.Err != nil:
			s.unreadable = noted(s.unreadable, e.Path)
		case e.Ignored || !e.Type.IsRegular() || !s.include.matches(below(s.base, e.Path)):
		default:
			j := &job{path: e.Path}
			jobs = append(jobs, j)
			work <- j
		}
	}
	close(work)
	workers.Wait()
	s.gather(jobs)
}

func (s *searcher) gather(jobs []*job) {
	for _, j := range jobs {
		switch {
		case errors.Is(j.err, workspace.ErrTooLarge):
			s.large++
		case errors.Is(j.err, errBinary):
		case j.err != nil:
			s.unreadable = noted(s.unreadable, j.path)
		case j.hits != nil:
			s.files = append(s.files, j.hits)
		}
	}
}

var errBinary = errors.New("binary file")

// sniffLen is how much of a file is looked at to tell text from binary.
const sniffLen = 8000

// search looks for matching lines in one file.
func (s *searcher) search(ctx context.Context, name string) (hits, error) {
	data, _, err := s.ws.ReadFile(name, s.size)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(data[:min(len(data), sniffLen)], 0) >= 0 {
		return nil, errBinary
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	lines := s.m.lines(ctx, data, s.limit+1)
	s.hits.Add(int64(len(lines)))
	p := printer{path: name, data: data, context: s.context, number: 1}
	return p.print(lines), nil
}

// result is the first matches, as many as are wanted and fit.
func (s *searcher) result() grepResult {
	r := grepResult{OK: true, Matches: []string{}, Truncated: s.cut, TooLarge: s.large, Unreadable: s.unreadable}
	room := maxText
	for _, h := range s.files {
		for i, group := range h {
			if r.Count == s.limit || room <= 0 {
				r.Truncated = true
				return r
			}
			if i == 0 {
				r.Files++
				if s.context > 0 && r.Count > 0 {
					r.Matches = append(r.Matches, "--")
				}
			}
			for _, line := range group {
				room -= len(line) + 1
			}
			r.Matches = append(r.Matches, group...)
			r.Count++
		}
	}
	return r
}
