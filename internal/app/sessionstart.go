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

// startSaver saves a session's initial state at its first call. A
// session without calls saves nothing. Read-only calls do not wait for it.
type startSaver struct {
	of   *Session
	work sync.WaitGroup // the prescan and the saving

	mu         sync.Mutex // guards the fields below
	started    bool
	checked    bool
	cancelScan context.CancelFunc // stops the prescan; nil before it begins
	saved      chan struct{}      // closed once the start is saved or failed; nil if nothing is saved
	failed     bool
}

// observe looks for recorded calls: a session with calls has begun.
func (s *startSaver) observe(r event.Record) {
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.started = true
	}
}

// isOff reports whether saving is off.
func (s *startSaver) isOff() bool {
	return s.of.kit.fileKeeper == nil || s.of.Replay != nil || s.of.Store().unusableDirs["undo"] != nil
}

// Stream sends a request to the model in use. When the first reply begins a call, coder scans all files
// while the rest of the reply arrives, so that the first call that may write finds most of the work done.
// An answer without calls scans nothing. The folders of a new session reach the disk beside the request.
func (s *startSaver) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	reply := s.of.live.Stream(ctx, req)
	s.of.Store().logs.SyncAhead(s.of.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.checked || s.isOff() {
		return reply
	}
	return func(yield func(provider.Delta, error) bool) {
		for d, err := range reply {
			if _, calls := d.(provider.CallDelta); calls {
				s.look(ctx)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// look begins the prescan, once.
func (s *startSaver) look(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.checked {
		return
	}
	s.checked = true
	if r, _ := gitstate.Find(s.of.Root); r.IsLarge() {
		return
	}
	look, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.cancelScan = stop
	s.work.Go(func() { s.of.kit.fileKeeper.get().ScanAhead(look) })
}

// close waits until a start is saved, because it is recorded. Otherwise it stops the prescan.
func (s *startSaver) close() error {
	s.mu.Lock()
	stop, saves := s.cancelScan, s.saved != nil
	s.mu.Unlock()
	if stop != nil && !saves {
		stop()
	}
	s.work.Wait()
	return nil
}

// saveCursor saves the start once, and returns its name, for the files and for the repository. A call
// that may write waits for it. If saving fails, the session continues, but a rerun may differ.
func (s *startSaver) saveCursor(ctx context.Context, readOnly bool) (tree, repository string) {
	name := s.startSaving(ctx, readOnly)
	s.mu.Lock()
	saved := s.saved
	s.mu.Unlock()
	if !readOnly && saved != nil {
		select {
		case <-saved:
		case <-ctx.Done(): // saving continues
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return "", ""
	}
	return name, name
}

// startSaving starts to save, and returns the name; "" if that already happened, or is not due yet.
func (s *startSaver) startSaving(ctx context.Context, readOnly bool) (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.isOff() {
		return ""
	}
	r, found := gitstate.Find(s.of.Root)
	if readOnly && r.IsLarge() {
		return "" // too many files to scan for a read-only session
	}
	s.started, s.saved = true, make(chan struct{})
	name = undo.StartName(NewID("start"))
	s.work.Go(func() {
		err := s.of.kit.fileKeeper.get().SaveStart(context.WithoutCancel(ctx), name, !readOnly,
			func(ignored []event.FileState, committed func() map[string]bool) ([]byte, error) {
				return r.SaveUncommitted(committed, jsonx.MustMarshal(past.Notes{Repository: found, Seen: s.of.unignoredNames(),
					Ignored: ignored, Configs: past.ReadConfigs(r)}))
			})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err != nil // a call that changes files reports the reason
		close(s.saved)
	})
	return name
}

// unignoredNames returns the names in the data folder that git does not ignore.
func (a *Archive) unignoredNames() (names []string) {
	entries, _ := os.ReadDir(a.dataDir())
	for _, e := range entries {
		if !slices.Contains(append([]string{"tmp", ".gitignore"}, dataDirNames...), e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
