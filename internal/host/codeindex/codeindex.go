// Package codeindex finds the place in a code base that some words are about.
//
// The files of a workspace are cut into sections, one for each function, type
// or heading, and each section is remembered by the words in it: identifiers
// taken apart, endings removed. A query is answered with the sections that say
// most about its words, definitions before mentions.
//
// Five promises hold:
//
//  1. Everything stays on this machine, in memory and, if a place is given, in
//     one file of the workspace. That file saves time and nothing else: without
//     it, or if it is old, damaged or not ours, answers are the same.
//  2. Only what a walk of the workspace finds is read: nothing that is ignored,
//     nothing outside, nothing that looks like a secret.
//  3. An answer is about the files as they are: before it is given, files that
//     are new, changed or gone are noticed, and only those are read again. Who
//     will not wait for this may miss what is newer than the last look, but
//     never what [Index.Touched] was called for, and what an answer shows is
//     always there.
//  4. What is kept is bounded, however many files there are and whatever they
//     hold; an answer says when files were left out.
//  5. What goes on beside the calls, such as what Start begins, Close ends.
package codeindex

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/host/disk"
	"coder/internal/host/workspace"
)

// The bounds of an index.
const (
	defaultMaxFiles   = 50_000
	defaultUnasked    = 20_000
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
	// Patience is how long a query waits for a look for changed files, once
	// there is an index; the look then goes on. Zero is as long as it takes.
	Patience time.Duration
	// CacheDir is the directory of the workspace in which the index is kept
	// from one process to the next, such as .coder/cache; "" if it is not.
	CacheDir string
	// MaxFiles and MaxBytes are how much is indexed at most, 50,000 files and
	// 200 MB if zero.
	MaxFiles int
	MaxBytes int64
	// Unasked is how many files and directories there may be for the index to be
	// built before there is a query, 20,000 if zero: among very many it costs
	// more than most sessions ever ask for.
	Unasked int
}

// Index is the index of a workspace. It is safe for concurrent use.
type Index struct {
	ws   *workspace.Workspace
	opts Options

	current atomic.Pointer[snapshot]
	built   atomic.Bool  // there was a whole look
	touched atomic.Int64 // how often files were written
	noticed atomic.Int64 // how many of those times were looked for
	saving  atomic.Bool

	turn    chan struct{} // held by whoever brings the index up to date; guards the fields below
	checked time.Time     // when that was last done
	loaded  bool          // what an earlier process kept was looked for
	cached  []*file       // what it kept, until it is part of the index
	unsaved int           // files that were read since the index was saved

	life context.Context // of what goes on in the background
	end  context.CancelFunc

	mu         sync.Mutex // guards the fields below
	started    bool
	background sync.WaitGroup
}

// New makes an index of ws. Nothing is read before Start or Search.
func New(ws *workspace.Workspace, o Options) *Index {
	o.MaxFiles = cmp.Or(o.MaxFiles, defaultMaxFiles)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.Unasked = cmp.Or(o.Unasked, defaultUnasked)
	o.CheckEvery = cmp.Or(o.CheckEvery, defaultCheckEvery)
	x := &Index{ws: ws, opts: o, turn: make(chan struct{}, 1)}
	x.life, x.end = context.WithCancel(context.Background())
	x.current.Store(&snapshot{})
	return x
}

// Start builds the index in the background, so that the first query need not
// wait for it, unless there are too many files. It is done when built, when ctx ends or at Close; starting
// twice is starting once.
func (x *Index) Start(ctx context.Context) {
	x.mu.Lock()
	again := x.started
	x.started = true
	x.mu.Unlock()
	if !again {
		x.aside(ctx, func(ctx context.Context) { _ = x.update(ctx, unasked) }) // a query will do what could not be done now
	}
}

// Touched says that files may have been written. The next query will see them;
// if there is an index already the look for them begins now, and goes on until
// it is done, ctx ends or Close.
func (x *Index) Touched(ctx context.Context) {
	x.touched.Add(1)
	if x.built.Load() {
		x.updateAside(ctx)
	}
}

// updateAside brings the index up to date in the background. It is nil after
// Close.
func (x *Index) updateAside(ctx context.Context) <-chan error {
	looked := make(chan error, 1)
	if !x.aside(ctx, func(ctx context.Context) { looked <- x.update(ctx, soon) }) {
		return nil
	}
	return looked
}

// aside runs do in the background, until it is done, ctx ends or Close. It is
// false after Close.
func (x *Index) aside(ctx context.Context, do func(context.Context)) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life.Err() != nil {
		return false
	}
	ctx, end := context.WithCancel(ctx)
	stop := context.AfterFunc(x.life, end)
	x.background.Go(func() {
		defer end()
		defer stop()
		do(ctx)
	})
	return true
}

// Close ends what goes on in the background and waits for it.
func (x *Index) Close() error {
	x.mu.Lock()
	x.end()
	x.mu.Unlock()
	x.background.Wait()
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
	// It is answered from what is known while changed files are looked for, and once more if there are any: most of
	// the time there are none. A first look, and one for files that were surely written, is waited for to its end.
	var looked <-chan error
	var enough <-chan time.Time
	if x.opts.Patience > 0 && x.built.Load() && x.noticed.Load() == x.touched.Load() {
		if looked = x.updateAside(context.WithoutCancel(ctx)); looked != nil {
			enough = time.After(x.opts.Patience)
		}
	}
	if looked == nil {
		done := make(chan error, 1)
		go func() { done <- x.update(ctx, soon) }()
		looked = done
	}
	before := x.current.Load()
	a, stale := x.answer(before, ask, q)
	var err error
	select {
	case err = <-looked:
		if now := x.current.Load(); now != before && err == nil {
			a, stale = x.answer(now, ask, q)
		}
	case <-enough:
		err = ctx.Err()
	}
	if err == nil && stale {
		err = x.update(ctx, now)
		a, _ = x.answer(x.current.Load(), ask, q)
	}
	if err != nil {
		return Answer{}, err
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
