package scripted

import (
	"strings"

	"coder/internal/model/provider"
)

// FromDeltas makes a script of replies that were streamed before. A reply that
// does not end in Done breaks off after its last delta.
func FromDeltas(replies ...[]provider.Delta) Script {
	s := make(Script, 0, len(replies))
	for _, ds := range replies {
		s = append(s, fromDeltas(ds))
	}
	return s
}

func fromDeltas(ds []provider.Delta) Reply {
	var (
		r             Reply
		text, thought strings.Builder
		calls         []Call
		done          bool
	)
	for _, d := range ds {
		switch d := d.(type) {
		case provider.TextDelta:
			text.WriteString(string(d))
		case provider.ReasoningDelta:
			thought.WriteString(d.Text)
		case provider.CallDelta:
			for len(calls) <= d.Index {
				calls = append(calls, Call{HasID: true})
			}
			c := &calls[d.Index]
			c.ID, c.Name, c.Args = c.ID+d.ID, c.Name+d.Name, c.Args+d.Args
		case provider.Restart:
			text.Reset()
			thought.Reset()
			calls = nil
		case provider.Done:
			r.Stop, r.Usage, done = d.Stop, d.Usage, true
		}
	}
	if thought.Len() > 0 {
		r.Steps = append(r.Steps, Reason(thought.String()))
	}
	if text.Len() > 0 {
		r.Steps = append(r.Steps, Say(text.String()))
	}
	for _, c := range calls {
		r.Steps = append(r.Steps, c)
	}
	if !done {
		r.Steps = append(r.Steps, Cut{Retry: true})
	}
	return r
}
