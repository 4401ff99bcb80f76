// Package codeindex finds the place in a code base that some words are about.
//
// The files of a workspace are cut into sections, one for each function, type
// or heading, and each section is remembered by the words in it: identifiers
// taken apart, endings removed. A query is answered with the sections that say
// most about its words, definitions before mentions.
//
// Four promises hold:
//
//  1. The index stays in memory. The first query builds it.
//  2. Only what a walk of the workspace finds is read: nothing that is ignored,
//     nothing outside, nothing that looks like a secret.
//  3. An answer is about the files as they are: before a query is answered, new,
//     changed and deleted files are noticed, and only those are read again. A
//     look that is a moment old is trusted, unless [Index.Touched] was called
//     since; the hits of an answer are always in the files it names.
//  4. The index is bounded, however many files there are and whatever they
//     hold; an answer says when files were left out.
package codeindex

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"coder/internal/host/disk"
	"coder/internal/host/workspace"
)

// The bounds of an index.
const (
	defaultMaxFiles   = 50_000
	defaultMaxBytes   = 200 << 20
	defaultCheckEvery = time.Second
	defaultHits       = 10
	maxFile           = 1 << 20 // bytes of a file that is read
)

// Options configure an Index. The zero Options will do.
type Options struct {
	// Now tells the time. Without it every query looks for changed files.
	Now func() time.Time
	// CheckEvery is how long a look for changed files is trusted, a second if
	// zero.
	CheckEvery time.Duration
	// MaxFiles and MaxBytes are how much is indexed at most, 50,000 files and
	// 200 MB if zero.
	MaxFiles int
	MaxBytes int64
}

// Index is the index of a workspace. It is safe for concurrent use.
type Index struct {
	ws   *workspace.Workspace
	opts Options

	current atomic.Pointer[snapshot]
	touched atomic.Int64 // how often files were written

	turn    chan struct{} // held by whoever brings the index up to date; guards the fields below
	checked time.Time     // when that was last done
	noticed int64         // how many writes the last look saw
}

// New makes an index of ws. Nothing is read before Search.
func New(ws *workspace.Workspace, o Options) *Index {
	o.MaxFiles = cmp.Or(o.MaxFiles, defaultMaxFiles)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.CheckEvery = cmp.Or(o.CheckEvery, defaultCheckEvery)
	x := &Index{ws: ws, opts: o, turn: make(chan struct{}, 1)}
	x.current.Store(&snapshot{})
	return x
}

// Touched says that files may have been written, so that the next query looks
// for changed files.
func (x *Index) Touched() { x.touched.Add(1) }

// Query is what to look for.
type Query struct {
	Text  string
	Under string // only files in this directory, or this file; "" means all
	Limit int    // most hits to return, ten if zero
}

// Hit is a section that answers a query.
type Hit struct {
	Path    string
	Line    int // where the section declares its symbol, or begins
	EndLine int
	Symbol  string // such as "Decoder.Decode"; "" for plain text
	Kind    Kind
	Score   float64 // meaningful only next to other hits of the same query
	Snippet string  // the lines that matter, each with its number
}

// Answer is what a query found, best first.
type Answer struct {
	Hits  []Hit
	Files int  // how many are indexed
	Cut   bool // there are more files than the index may hold
}

// ErrNoWords is the error of a query that holds nothing to look for.
var ErrNoWords = errors.New("the query has no words to search for")

// Search answers q, bringing the index up to date first. If it was never built
// this takes as long as building it.
func (x *Index) Search(ctx context.Context, q Query) (Answer, error) {
	if q.Limit <= 0 {
		q.Limit = defaultHits
	}
	ask := newQuestion(q.Text)
	if len(ask.concepts) == 0 {
		return Answer{}, ErrNoWords
	}
	if err := x.update(ctx, false); err != nil {
		return Answer{}, err
	}
	a, stale := x.answer(x.current.Load(), ask, q)
	if stale {
		if err := x.update(ctx, true); err != nil {
			return Answer{}, err
		}
		a, _ = x.answer(x.current.Load(), ask, q)
	}
	return a, ctx.Err()
}

// answer ranks the sections of s; stale says that one of the best has changed
// since.
func (x *Index) answer(s *snapshot, ask *question, q Query) (a Answer, stale bool) {
	a = Answer{Files: s.indexed, Cut: s.cut, Hits: []Hit{}}
	for _, found := range s.rank(ask, q.Under, q.Limit) {
		data, info, err := x.ws.ReadFile(found.file.path, maxFile)
		if err != nil || disk.StampOf(info) != found.file.was {
			stale = true
			continue
		}
		c := found.file.chunks[found.chunk]
		a.Hits = append(a.Hits, Hit{
			Path: found.file.path, Line: int(c.line), EndLine: int(c.end), Symbol: c.symbol, Kind: c.kind,
			Score: float64(found.score), Snippet: ask.snippet(appendLines(nil, data), c),
		})
	}
	return a, stale
}
