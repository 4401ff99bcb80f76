package app

import (
	"context"
	"iter"
	"os"
	"slices"
	"sync"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/model/provider"
	"coder/internal/record/gitstate"
	"coder/internal/record/past"
	"coder/internal/record/undo"
)

// sessionStart saves what a session begins with when its first call is made. A session that
// makes none saves nothing. Calls that only read do not wait for it.
type sessionStart struct {
	app  *App
	kit  *toolkit
	work sync.WaitGroup // the look ahead, and the saving

	mu     sync.Mutex // guards the fields below
	begun  bool
	looked bool
	stop   context.CancelFunc // ends the look ahead; nil before there is one
	saved  chan struct{}      // closed once the start is saved or failed; nil where nothing is saved
	failed bool
}

// observe looks for calls on record: a session that has some has begun.
func (s *sessionStart) observe(r event.Record) {
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun = true
	}
}

// off reports whether nothing is saved.
func (s *sessionStart) off() bool {
	return s.kit.files == nil || s.app.Recorded != nil || s.app.Store().barred["undo"] != nil
}

// Stream sends a request to the model in use. All files are looked at beside the first, so
// that the first call that may write finds most of the work done.
func (s *sessionStart) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, _ := gitstate.Find(s.app.Root); !s.begun && !s.looked && !s.off() && !r.Large() {
		s.looked = true
		look, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.stop = stop
		s.work.Go(func() { s.kit.files.get().Look(look) })
	}
	return s.app.live.Stream(ctx, req)
}

// close waits for a start that is being saved: it is on record. Where none is, it ends the
// look ahead.
func (s *sessionStart) close() error {
	s.mu.Lock()
	stop, saves := s.stop, s.saved != nil
	s.mu.Unlock()
	if stop != nil && !saves {
		stop()
	}
	s.work.Wait()
	return nil
}

// keep has the start saved, once, and returns its name as that of the files and of the
// repository. A call that may write waits for it. Where it cannot be saved the session
// continues, and may not run again as it did.
func (s *sessionStart) keep(ctx context.Context, readOnly bool) (tree, repository string) {
	name := s.begin(ctx, readOnly)
	s.mu.Lock()
	saved := s.saved
	s.mu.Unlock()
	if !readOnly && saved != nil {
		select {
		case <-saved:
		case <-ctx.Done(): // it is saved all the same
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return "", ""
	}
	return name, name
}

// begin starts to save, and returns the name; "" if that was done before, or is not yet due.
func (s *sessionStart) begin(ctx context.Context, readOnly bool) (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.off() {
		return ""
	}
	r, found := gitstate.Find(s.app.Root)
	if readOnly && r.Large() {
		return "" // a session that only reads is not worth a look at so many files
	}
	s.begun, s.saved = true, make(chan struct{})
	name = undo.StartName(NewID("start"))
	s.work.Go(func() {
		err := s.kit.files.get().Start(context.WithoutCancel(ctx), name, !readOnly, func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error) {
			return r.SaveBeyond(committed, jsonx.Must(past.Notes{Repository: found, Seen: s.app.seenByGit(), Ignored: ignored, Configs: past.Configs(r)}))
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err != nil // a call that changes files says why
		close(s.saved)
	})
	return name
}

// seenByGit are the names in the data folder that git does not ignore.
func (a *App) seenByGit() (names []string) {
	entries, _ := os.ReadDir(a.data())
	for _, e := range entries {
		if !slices.Contains(append([]string{"tmp", ".gitignore"}, dataFolders...), e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
