package provenance

import (
	"bytes"
	"encoding/json"
	"iter"
	"sync"

	"coder/internal/core/event"
)

// LogScan scans the lines of one session's audit log: which files it changed, and which of its calls
// have no known end. The zero Survey is empty.
type LogScan struct {
	mu         sync.Mutex
	Files      map[string]bool
	openCalls  map[string]uint64 // request records, by call
	endedCalls map[string]bool   // calls
}

// AddLine processes a line. It is safe for concurrent use, in any order of lines.
func (s *LogScan) AddLine(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Files == nil {
		s.Files, s.openCalls, s.endedCalls = make(map[string]bool), make(map[string]uint64), make(map[string]bool)
	}
	head := line[:min(len(line), 1024)]
	_, rest, _ := bytes.Cut(head, []byte(`"toolCallId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	switch _, kind, _ := bytes.Cut(head, []byte(`"type":"`)); {
	case bytes.HasPrefix(kind, []byte("ToolCallRequested")):
		s.openCalls[string(id)] = event.SeqOf(line)
	case bytes.HasPrefix(kind, []byte("ToolCallCompleted")):
		if !bytes.Contains(line, []byte(`"unknown":true`)) {
			s.endedCalls[string(id)] = true
		}
		for rest := line; ; {
			_, after, ok := bytes.Cut(rest, []byte(`"after":{"path":`))
			if !ok {
				return
			}
			var name string
			if json.NewDecoder(bytes.NewReader(after)).Decode(&name) == nil {
				s.Files[name] = true
			}
			rest = after
		}
	}
}

// PendingFilter returns a function that reports whether a record's line requested a call without a known end.
func (s *LogScan) PendingFilter() func(line []byte) bool {
	seqs := make(map[uint64]bool)
	for call, seq := range s.openCalls {
		if !s.endedCalls[call] {
			seqs[seq] = true
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	return func(line []byte) bool { return seqs[event.SeqOf(line)] }
}

// UnfinishedChanges returns the requested calls that may have changed a file with that name before they were cut off.
func UnfinishedChanges(requests iter.Seq2[event.Record, error], name string) (list []*Change) {
	for r, err := range requests {
		e, ok := r.Event.(event.ToolCallRequested)
		if err != nil || !ok || e.Verdict != event.VerdictAllowed {
			continue
		}
		for _, effect := range e.Effects {
			if effect.Kind <= event.EffectExec || effect.Kind == event.EffectWrite && effect.Target == name {
				list = append(list, &Change{Session: r.Session, Seq: r.Seq, Time: r.Time, Tool: e.Tool, callID: e.CallID})
				break
			}
		}
	}
	return list
}

// SetCandidate sets Perhaps to the newest of the calls that may have written the line after all: one that
// began after the previous call, and before the line was found.
func (o *Origin) SetCandidate(calls []*Change) {
	for _, c := range calls {
		inTime := (o.Change == nil || !c.Time.Before(o.Change.Time)) && (o.FoundAt.IsZero() || c.Time.Before(o.FoundAt))
		if inTime && !o.FromCall() && (o.Candidate == nil || c.Time.After(o.Candidate.Time)) {
			o.Candidate = c
		}
	}
}
