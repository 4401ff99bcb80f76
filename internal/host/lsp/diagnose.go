package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"coder/internal/core/clock"
)

const (
	maxFiles = 5000 // files whose diagnostics are kept

	// surveyCaveat is the caveat of a survey.
	surveyCaveat = "only what the servers have looked at so far; ask about a file to be sure of it"
)

// publication is the server's last unsolicited report on a file.
type publication struct {
	version int // of the document; 0 if not stated
	serial  int
	items   []Diagnostic
}

// matches reports whether p is about d's text.
func (p publication) matches(d document) bool {
	return p.version >= d.version || p.version == 0 && p.serial > d.serial
}

func (s *server) onPublish(params json.RawMessage) {
	var p struct {
		URI         string           `json:"uri"`
		Version     int              `json:"version"`
		Diagnostics []wireDiagnostic `json:"diagnostics"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	path := uriToPath(p.URI)
	if path == "" {
		return
	}
	s.update(func() {
		s.serial++
		if len(s.publications) >= maxFiles {
			// Drop empty reports first.
			maps.DeleteFunc(s.publications, func(_ string, p publication) bool { return len(p.items) == 0 })
			for path := range s.publications {
				if len(s.publications) < maxFiles {
					break
				}
				delete(s.publications, path)
			}
		}
		s.publications[path] = publication{p.Version, s.serial, convertDiagnostics(displayName(s.top, path), p.Diagnostics)}
	})
}

func (s *server) publicationCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serial
}

type diagnosticState struct {
	publication  publication
	supportsPull bool
	busy         bool
	failure      string
	changed      <-chan struct{}
}

func (s *server) fileState(path string) diagnosticState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return diagnosticState{s.publications[path], s.supportsPull, len(s.busy) > 0, s.failure, s.changed}
}

// diagnose returns the problems in a file. If the server is too slow, its report so far has to do.
func (s *server) diagnose(ctx context.Context, path string, text []byte) (Report, error) {
	d, news, err := s.syncDocument(ctx, path, text)
	if err != nil {
		return Report{}, err
	}
	wait, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	report := Report{Server: s.kind.Name, Note: s.kind.limitation}
	switch {
	case s.fileState(path).supportsPull:
		report.Diagnostics, report.Pending, err = s.pullDiagnostics(wait, path, d,
			func(ctx context.Context) ([]Diagnostic, error) {
				var reply struct {
					Items []wireDiagnostic `json:"items"`
				}
				err := s.request(ctx, requestTimeout, "textDocument/diagnostic", documentID(path), &reply)
				return convertDiagnostics(displayName(s.top, path), reply.Items), err
			})
	case s.kind.requestDiagnostics != nil:
		report.Diagnostics, report.Pending, err = s.pullDiagnostics(wait, path, d,
			func(ctx context.Context) ([]Diagnostic, error) {
				return s.kind.requestDiagnostics(ctx, s, path)
			})
	default:
		report.Diagnostics, report.Pending, err = s.awaitDiagnostics(wait, path, d, news)
	}
	if ill := s.fileState(path).failure; ill != "" && len(report.Diagnostics) == 0 {
		report.Pending, report.Note = true, ill
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Report{}, ctx.Err() // not a timeout
	}
	slices.SortStableFunc(report.Diagnostics, compareDiagnostics)
	return report, err
}

// compareDiagnostics orders diagnostics by file, line and column, worst first.
func compareDiagnostics(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
		cmp.Compare(a.Range.Start.Character, b.Range.Start.Character), cmp.Compare(a.Severity, b.Severity),
	)
}

// awaitDiagnostics waits until the server has reported on d, is idle and has been silent about the file for a
// while. Without news, its earlier report counts. An empty list proves that there are no errors only for
// servers that report everything at once: others begin with an empty list, and their result stays
// pending.
func (s *server) awaitDiagnostics(ctx context.Context, path string, d document, news bool) (items []Diagnostic,
	pending bool, err error) {
	var settled <-chan time.Time
	for last := -1; ; {
		now := s.fileState(path)
		sure := s.kind.publishesComplete || slices.ContainsFunc(now.publication.items,
			func(d Diagnostic) bool { return d.Severity == Error })
		switch ready := now.publication.matches(d) && !now.busy; {
		case ready && sure && !news:
			return slices.Clone(now.publication.items), false, nil
		case !ready:
			settled, last = nil, -1
		case now.publication.serial != last:
			silence := longSettleTime
			if sure {
				silence = settleTime
			}
			settled, last = time.After(silence), now.publication.serial
		}
		select {
		case <-now.changed:
		case <-settled:
			return slices.Clone(now.publication.items), !sure, nil
		case <-ctx.Done():
			if !now.publication.matches(d) {
				now.publication.items = nil // they are about an older text
			}
			return slices.Clone(now.publication.items), true, nil
		case <-s.conn.done:
			return nil, false, s.conn.endError()
		}
	}
}

// pullDiagnostics requests diagnostics, again while the server is busy, and adds its unsolicited ones.
func (s *server) pullDiagnostics(ctx context.Context, path string, d document,
	ask func(context.Context) ([]Diagnostic, error)) (items []Diagnostic, pending bool, err error) {
	var refusal *replyError
	for {
		items, err = ask(ctx)
		switch {
		case errors.Is(err, errServerExited):
			return nil, false, err
		case ctx.Err() != nil:
			return items, true, nil
		// the server canceled the request
		case errors.As(err, &refusal) && (refusal.Code == serverCancelled || refusal.Code == contentModified):
			if clock.Sleep(ctx, retryPause) != nil {
				return nil, true, nil
			}
			continue
		case err != nil:
			return s.awaitDiagnostics(ctx, path, d, true) // the server does not support it after all
		}
		now := s.fileState(path)
		if now.publication.version == d.version { // without a version it may be about an older text
			for _, d := range now.publication.items {
				same := func(o Diagnostic) bool { return o.Range == d.Range && o.Message == d.Message }
				if !slices.ContainsFunc(items, same) {
					items = append(items, d)
				}
			}
		}
		if !now.busy {
			return items, false, nil
		}
		if pending, err := s.awaitIdle(ctx, 0); pending || err != nil {
			return items, true, nil
		}
	}
}

// survey returns what the server reports about the whole project, once it is idle and has been silent
// for a while.
func (s *server) survey(ctx context.Context) (Report, error) {
	s.syncMu.Lock()
	_, err := s.reportDiskChanges(ctx, "")
	s.syncMu.Unlock()
	if err != nil {
		return Report{}, err
	}
	wait, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	pending, err := s.awaitIdle(wait, longSettleTime)
	if errors.Is(ctx.Err(), context.Canceled) {
		err = ctx.Err()
	}
	var all []Diagnostic // unsolicited and still valid
	s.mu.Lock()
	for _, p := range s.publications {
		all = append(all, p.items...)
	}
	s.mu.Unlock()
	slices.SortStableFunc(all, compareDiagnostics)
	return Report{Server: s.kind.Name, Diagnostics: all, Pending: pending, Note: surveyCaveat}, err
}

// awaitIdle waits until the server is idle and silent for a while.
func (s *server) awaitIdle(ctx context.Context, while time.Duration) (pending bool, err error) {
	for {
		now := s.fileState("")
		var settled <-chan time.Time
		if !now.busy {
			if while == 0 {
				return false, nil
			}
			settled = time.After(while)
		}
		select {
		case <-now.changed:
		case <-settled:
			return false, nil
		case <-ctx.Done():
			return true, nil
		case <-s.conn.done:
			return false, s.conn.endError()
		}
	}
}
