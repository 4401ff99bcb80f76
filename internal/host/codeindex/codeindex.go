// Package codeindex finds the place in a code base that a query describes.
//
// It splits the files of a workspace into sections, one per function, type or heading, and indexes each
// by its words: identifiers split into parts, endings removed. Search ranks sections by how well they
// match the query's words, definitions before mentions.
//
// The package guarantees:
//
//  1. The index is in memory. The first query builds it.
//  2. It reads only files that a walk of the workspace finds: nothing ignored,
//     nothing outside, nothing that looks like a secret.
//  3. Answers match the current files: a query first detects new, changed and
//     deleted files, and reads only these again. A recent check is trusted, unless
//     [Index.MarkChanged] was called since; hits are always in the files they name.
//  4. The index is bounded, whatever the number and content of files;
//     an answer says when files were omitted.
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
	maxFileBytes      = 1 << 20 // largest file read, in bytes
)

// Options configure an Index. The zero Options are valid.
type Options struct {
	// Now returns the current time. If nil, every query checks for changed files.
	Now func() time.Time
	// CheckEvery is how long a check for changed files is trusted; zero means a second.
	CheckEvery time.Duration
	// MaxFiles and MaxBytes limit the index; zero means 50,000 files and 200 MB.
	MaxFiles int
	MaxBytes int64
}

// Index is the index of a workspace. It is safe for concurrent use.
type Index struct {
	workspace *workspace.Workspace
	opts      Options

	current atomic.Pointer[snapshot]
	writes  atomic.Int64 // number of writes to files

	sem           chan struct{} // held while updating the index; guards the fields below
	lastCheck     time.Time     // time of the last check
	checkedWrites int64         // value of touched at the last check
}

// New returns an index of ws. It reads nothing before Search.
func New(ws *workspace.Workspace, o Options) *Index {
	o.MaxFiles = cmp.Or(o.MaxFiles, defaultMaxFiles)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.CheckEvery = cmp.Or(o.CheckEvery, defaultCheckEvery)
	x := &Index{workspace: ws, opts: o, sem: make(chan struct{}, 1)}
	x.current.Store(&snapshot{})
	return x
}

// MarkChanged reports that files may have changed, so that the next query checks them.
func (x *Index) MarkChanged() { x.writes.Add(1) }

// Query is a search request.
type Query struct {
	Text       string
	PathPrefix string // only files in this directory, or this file; "" means all
	Limit      int    // maximum number of hits, ten if zero
}

// Hit is a section that matches a query.
type Hit struct {
	Path    string
	Line    int // where the section declares its symbol, or begins
	EndLine int
	Symbol  string // such as "Decoder.Decode"; "" for plain text
	Kind    Kind
	Score   float64 // comparable only within one query
	Snippet string  // the relevant lines, numbered
}

// Result is the result of a query, best hits first.
type Result struct {
	Hits      []Hit
	Files     int  // number of indexed files
	Truncated bool // files beyond the limits were omitted
}

// ErrNoWords reports a query without searchable words.
var ErrNoWords = errors.New("the query has no words to search for")

// Search updates the index and answers q. The first call builds the index.
func (x *Index) Search(ctx context.Context, q Query) (Result, error) {
	if q.Limit <= 0 {
		q.Limit = defaultHits
	}
	ask := parseQuery(q.Text)
	if len(ask.concepts) == 0 {
		return Result{}, ErrNoWords
	}
	if err := x.update(ctx, false); err != nil {
		return Result{}, err
	}
	a, stale := x.rank(x.current.Load(), ask, q)
	if stale {
		if err := x.update(ctx, true); err != nil {
			return Result{}, err
		}
		a, _ = x.rank(x.current.Load(), ask, q)
	}
	return a, ctx.Err()
}

// rank ranks the sections of s; stale reports that one of the best has changed since.
func (x *Index) rank(s *snapshot, ask *parsedQuery, q Query) (a Result, stale bool) {
	a = Result{Files: s.indexed, Truncated: s.isTruncated, Hits: []Hit{}}
	for _, found := range s.rank(ask, q.PathPrefix, q.Limit) {
		data, info, err := x.workspace.ReadFile(found.file.path, maxFileBytes)
		if err != nil || disk.StampOf(info) != found.file.stamp {
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
