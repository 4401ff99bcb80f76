package provenance

import (
	"bytes"
	"encoding/json"
	"iter"
	"sync"

	"coder/internal/core/event"
)

// Survey scans the lines of one session's audit log: which files it changed, and which of its calls
// have no known end. The zero Survey is empty.
type Survey struct {
	mu    sync.Mutex
	Files map[string]bool
	open  map[string]uint64 // request records, by call
	ended map[string]bool   // calls
}

// See processes a line. It is safe for concurrent use, in any order of lines.
func (s *Survey) See(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Files == nil {
		s.Files, s.open, s.ended = make(map[string]bool), make(map[string]uint64), make(map[string]bool)
	}
	head := line[:min(len(line), 1024)]
	_, rest, _ := bytes.Cut(head, []byte(`"toolCallId":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	switch _, kind, _ := bytes.Cut(head, []byte(`"type":"`)); {
	case bytes.HasPrefix(kind, []byte("ToolCallRequested")):
		s.open[string(id)] = event.Number(line)
	case bytes.HasPrefix(kind, []byte("ToolCallCompleted")):
		if !bytes.Contains(line, []byte(`"unknown":true`)) {
			s.ended[string(id)] = true
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

// Unsettled returns a function that reports whether a record's line requested a call without a known end.
func (s *Survey) Unsettled() func(line []byte) bool {
	seqs := make(map[uint64]bool)
	for call, seq := range s.open {
		if !s.ended[call] {
			seqs[seq] = true
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	return func(line []byte) bool { return seqs[event.Number(line)] }
}

// Unknown returns the requested calls that may have changed a file with that name before they were cut off.
func Unknown(requests iter.Seq2[event.Record, error], name string) (list []*Change) {
	for r, err := range requests {
		e, ok := r.Event.(event.ToolCallRequested)
		if err != nil || !ok || e.Verdict != event.Allowed {
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

// Doubt sets Perhaps to the newest of the calls that may have written the line after all: one that
// began after the previous call, and before the line was found.
func (o *Origin) Doubt(calls []*Change) {
	for _, c := range calls {
		inTime := (o.By == nil || !c.Time.Before(o.By.Time)) && (o.Until.IsZero() || c.Time.Before(o.Until))
		if inTime && !o.BySession() && (o.Perhaps == nil || c.Time.After(o.Perhaps.Time)) {
			o.Perhaps = c
		}
	}
}
