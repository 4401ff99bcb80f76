// Package codeindex finds the place in a code base that some words are about.
//
// The files of a workspace are cut into sections, one for each function, type
// or heading, and each section is remembered by the words in it: identifiers
// taken apart, endings removed. A query is answered with the sections that say
// most about its words, definitions before mentions.
//
// Five promises hold:
//
//  1. Everything stays in memory and on this machine: no network, no files.
//  2. Only what a walk of the workspace finds is read: nothing that is ignored,
//     nothing outside, nothing that looks like a secret.
//  3. An answer is about the files as they are: before it is given, files that
//     are new, changed or gone are noticed, and only those are read again.
//  4. What is kept is bounded, however many files there are and whatever they
//     hold; an answer says when files were left out.
//  5. No goroutine outlives the call that started it, save that of Start, which
//     Close ends.
package codeindex

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/workspace"
)

// The bounds of an index.
const (
	defaultMaxFiles   = 50_000
	defaultMaxBytes   = 200 << 20
	defaultCheckEvery = time.Second
	defaultHits       = 10
	maxFile           = 1 << 20 // bytes of a file that is read
)

// Options are what an Index may be told. The zero Options will do.
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

	turn    chan struct{} // held by whoever brings the index up to date
	checked time.Time     // when that was last done; guarded by turn
	current atomic.Pointer[snapshot]

	mu         sync.Mutex // guards the fields below
	cancel     context.CancelFunc
	background sync.WaitGroup
}

// New makes an index of ws. Nothing is read before Start or Search.
func New(ws *workspace.Workspace, o Options) *Index {
	o.MaxFiles = cmp.Or(o.MaxFiles, defaultMaxFiles)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.CheckEvery = cmp.Or(o.CheckEvery, defaultCheckEvery)
	x := &Index{ws: ws, opts: o, turn: make(chan struct{}, 1)}
	x.current.Store(&snapshot{})
	return x
}

// Start builds the index in the background, so that the first query need not
// wait for it. It is done when built, when ctx ends or at Close; starting
// twice is starting once.
func (x *Index) Start(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel != nil {
		return
	}
	ctx, x.cancel = context.WithCancel(ctx)
	x.background.Go(func() {
		_ = x.update(ctx, false) // a query will do what could not be done now
	})
}

// Close ends what Start began and waits for it.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel != nil {
		x.cancel()
		x.background.Wait()
		x.cancel = nil
	}
	return nil
}

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
var ErrNoWords = errors.New("the query holds no words to look for")

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
	a, stale, err := x.meanwhile(ctx, ask, q)
	if err == nil && stale {
		err = x.update(ctx, true)
		a, _ = x.answer(x.current.Load(), ask, q)
	}
	if err != nil {
		return Answer{}, err
	}
	return a, ctx.Err()
}

// meanwhile answers from what is known while looking for changed files, and
// once more if there are any: most of the time there are none.
func (x *Index) meanwhile(ctx context.Context, ask *question, q Query) (a Answer, stale bool, err error) {
	looked := make(chan error, 1)
	go func() { looked <- x.update(ctx, false) }()
	before := x.current.Load()
	a, stale = x.answer(before, ask, q)
	err = <-looked
	if now := x.current.Load(); now != before && err == nil {
		a, stale = x.answer(now, ask, q)
	}
	return a, stale, err
}

// answer ranks the sections of s; stale says that one of the best has changed
// since.
func (x *Index) answer(s *snapshot, ask *question, q Query) (a Answer, stale bool) {
	a = Answer{Files: s.indexed, Cut: s.cut, Hits: []Hit{}}
	for _, found := range s.rank(ask, q.Under, q.Limit) {
		hit, fresh := x.show(ask, found)
		if !fresh {
			stale = true
			continue
		}
		a.Hits = append(a.Hits, hit)
	}
	return a, stale
}
