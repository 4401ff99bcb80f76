package scripted

import (
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
