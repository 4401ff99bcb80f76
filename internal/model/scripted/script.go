package scripted

import (
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Script is what a model will say, reply by reply.
type Script []Reply

// Forever as a Reply's Repeat gives the reply to every request that is left.
const Forever = -1

// Reply is one answer of the model. The zero Reply says nothing and ends well.
type Reply struct {
	To     string        // the conversation it is part of begins with this; "" is any other
	Steps  []Step        // the stream, in order
	Want   []string      // texts the request must hold
	Else   *Reply        // given where it does not; nil makes that a failure
	Usage  *chat.Usage   // nil if the model does not say
	Stop   provider.Stop // "" means by content: tools after a call, else end
	Repeat int           // how often it is given; 0 means once
	Line   int           // where it stands in the text it was parsed from
}

// A Step is one of [Say], [Reason], [Call], [Wait], [Cut] or [Fail].
type Step interface{ isStep() }

type (
	// Say is text of the answer. The Says of a reply are joined by newlines.
	Say string

	// Reason is thinking, joined like Say.
	Reason string

	// Call asks for a tool. Args go out as they are, be they JSON or not.
	// Without HasID the player makes up an id.
	Call struct {
		Name  string
		ID    string
		HasID bool
		Args  string
	}

	// Wait is silence in mid-stream.
	Wait time.Duration

	// Cut ends the stream before the reply is whole.
	Cut struct{ Retry bool }

	// Fail ends the stream with the provider error that Kind names; After is
	// how long the provider asks us to wait.
	Fail struct {
		Kind  string
		After time.Duration
		Text  string
	}
)

func (Say) isStep()    {}
func (Reason) isStep() {}
func (Call) isStep()   {}
func (Wait) isStep()   {}
func (Cut) isStep()    {}
func (Fail) isStep()   {}

// stop is why the model stops.
func (r Reply) stop() provider.Stop {
	if r.Stop != "" {
		return r.Stop
	}
	for _, s := range r.Steps {
		if _, ok := s.(Call); ok {
			return provider.StopTools
		}
	}
	return provider.StopEnd
}

// silent reports whether r has nothing of its own to say.
func (r Reply) silent() bool {
	return len(r.Steps)+len(r.Want) == 0 && r.Usage == nil && r.Stop == "" && r.To == ""
}

// FromDeltas makes a script of replies that were streamed before. A reply that
// does not end in Done breaks off after its last delta.
func FromDeltas(replies ...[]provider.Delta) Script {
	var s Script
	for _, ds := range replies {
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
		s = append(s, r)
	}
	return s
}
