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

	// surveyed is the caveat of a survey.
	surveyed = "only what the servers have looked at so far; ask about a file to be sure of it"
)

// published is the server's last unsolicited report on a file.
type published struct {
	version int // of the document; 0 if not stated
	serial  int
	items   []Diagnostic
}

// fresh reports whether p is about d's text.
func (p published) fresh(d document) bool {
	return p.version >= d.version || p.version == 0 && p.serial > d.serial
}

func (s *server) publish(params json.RawMessage) {
	var p struct {
		URI         string           `json:"uri"`
		Version     int              `json:"version"`
		Diagnostics []wireDiagnostic `json:"diagnostics"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	path := pathOf(p.URI)
	if path == "" {
		return
	}
	s.update(func() {
		s.serial++
		if len(s.heard) >= maxFiles {
			// Drop empty reports first.
			maps.DeleteFunc(s.heard, func(_ string, p published) bool { return len(p.items) == 0 })
			for path := range s.heard {
				if len(s.heard) < maxFiles {
					break
				}
				delete(s.heard, path)
			}
		}
		s.heard[path] = published{p.Version, s.serial, diagnostics(nameOf(s.top, path), p.Diagnostics)}
	})
}

func (s *server) publications() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serial
}

type state struct {
	said    published
	pulls   bool
	busy    bool
	ill     string
	changed <-chan struct{}
}

func (s *server) about(path string) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state{s.heard[path], s.pulls, len(s.busy) > 0, s.ill, s.changed}
}

// diagnose returns the problems in a file. If the server is too slow, its report so far has to do.
func (s *server) diagnose(ctx context.Context, path string, text []byte) (Report, error) {
	d, news, err := s.tell(ctx, path, text)
	if err != nil {
		return Report{}, err
	}
	wait, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	report := Report{Server: s.kind.Name, Note: s.kind.beyond}
	switch {
	case s.about(path).pulls:
		report.Diagnostics, report.Pending, err = s.pull(wait, path, d, func(ctx context.Context) ([]Diagnostic, error) {
			var reply struct {
				Items []wireDiagnostic `json:"items"`
			}
			err := s.request(ctx, requestLimit, "textDocument/diagnostic", about(path), &reply)
			return diagnostics(nameOf(s.top, path), reply.Items), err
		})
	case s.kind.ask != nil:
		report.Diagnostics, report.Pending, err = s.pull(wait, path, d, func(ctx context.Context) ([]Diagnostic, error) {
			return s.kind.ask(ctx, s, path)
		})
	default:
		report.Diagnostics, report.Pending, err = s.await(wait, path, d, news)
	}
	if ill := s.about(path).ill; ill != "" && len(report.Diagnostics) == 0 {
		report.Pending, report.Note = true, ill
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Report{}, ctx.Err() // not a timeout
	}
	slices.SortStableFunc(report.Diagnostics, byPlace)
	return report, err
}

// byPlace orders diagnostics by file, line and column, worst first.
func byPlace(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
		cmp.Compare(a.Range.Start.Character, b.Range.Start.Character), cmp.Compare(a.Severity, b.Severity),
	)
}

// await waits until the server has reported on d, is idle and has been silent about the file for a
// while. Without news, its earlier report counts. An empty list proves that there are no errors only for
// servers that report everything at once: others begin with an empty list, and their result stays
// pending.
func (s *server) await(ctx context.Context, path string, d document, news bool) (items []Diagnostic, pending bool, err error) {
	var settled <-chan time.Time
	for last := -1; ; {
		now := s.about(path)
		sure := s.kind.whole || slices.ContainsFunc(now.said.items, func(d Diagnostic) bool { return d.Severity == Error })
		switch ready := now.said.fresh(d) && !now.busy; {
		case ready && sure && !news:
			return slices.Clone(now.said.items), false, nil
		case !ready:
			settled, last = nil, -1
		case now.said.serial != last:
			silence := longSettle
			if sure {
				silence = settleTime
			}
			settled, last = time.After(silence), now.said.serial
		}
		select {
		case <-now.changed:
		case <-settled:
			return slices.Clone(now.said.items), !sure, nil
		case <-ctx.Done():
			if !now.said.fresh(d) {
				now.said.items = nil // they are about an older text
			}
			return slices.Clone(now.said.items), true, nil
		case <-s.conn.done:
			return nil, false, s.conn.gone()
		}
	}
}

// pull requests diagnostics, again while the server is busy, and adds its unsolicited ones.
func (s *server) pull(ctx context.Context, path string, d document, ask func(context.Context) ([]Diagnostic, error)) (items []Diagnostic, pending bool, err error) {
	var refusal *replyError
	for {
		items, err = ask(ctx)
		switch {
		case errors.Is(err, errGone):
			return nil, false, err
		case ctx.Err() != nil:
			return items, true, nil
		case errors.As(err, &refusal) && (refusal.Code == serverCancelled || refusal.Code == contentModified): // the server canceled the request
			if clock.Sleep(ctx, retryPause) != nil {
				return nil, true, nil
			}
			continue
		case err != nil:
			return s.await(ctx, path, d, true) // the server does not support it after all
		}
		now := s.about(path)
		if now.said.version == d.version { // without a version it may be about an older text
			for _, d := range now.said.items {
				same := func(o Diagnostic) bool { return o.Range == d.Range && o.Message == d.Message }
				if !slices.ContainsFunc(items, same) {
					items = append(items, d)
				}
			}
		}
		if !now.busy {
			return items, false, nil
		}
		if pending, err := s.quiet(ctx, 0); pending || err != nil {
			return items, true, nil
		}
	}
}

// survey returns what the server reports about the whole project, once it is idle and has been silent
// for a while.
func (s *server) survey(ctx context.Context) (Report, error) {
	s.sync.Lock()
	_, err := s.refresh(ctx, "")
	s.sync.Unlock()
	if err != nil {
		return Report{}, err
	}
	wait, cancel := context.WithTimeout(ctx, surveyLimit)
	defer cancel()
	pending, err := s.quiet(wait, longSettle)
	if errors.Is(ctx.Err(), context.Canceled) {
		err = ctx.Err()
	}
	var all []Diagnostic // unsolicited and still valid
	s.mu.Lock()
	for _, p := range s.heard {
		all = append(all, p.items...)
	}
	s.mu.Unlock()
	slices.SortStableFunc(all, byPlace)
	return Report{Server: s.kind.Name, Diagnostics: all, Pending: pending, Note: surveyed}, err
}

// quiet waits until the server is idle and silent for a while.
func (s *server) quiet(ctx context.Context, while time.Duration) (pending bool, err error) {
	for {
		now := s.about("")
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
			return false, s.conn.gone()
		}
	}
}
