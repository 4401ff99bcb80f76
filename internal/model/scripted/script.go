package scripted

import (
	"time"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Script is a model's prepared replies.
type Script []Reply

// Forever, as a Reply's Repeat, answers all remaining requests with the reply.
const Forever = -1

// Reply is one answer of the model. The zero Reply is empty and ends normally.
type Reply struct {
	Conversation string        // text in the first message of its conversations; "" means any other
	Steps        []Step        // the stream, in order
	Want         []string      // texts that the request must contain
	Else         *Reply        // the reply if it does not contain them; nil means failure
	Usage        *chat.Usage   // nil if the model does not report it
	Stop         provider.Stop // "" means by content: tools after a call, else end
	Repeat       int           // how often to play it; 0 means once
	Line         int           // its line in the parsed text
}

// A Step is one of [Say], [Reason], [Call], [Wait], [Cut] or [Fail].
type Step interface{ isStep() }

type (
	// Say is text of the answer. The Says of a reply are joined by newlines.
	Say string

	// Reason is thinking, joined like Say.
	Reason string

	// Call asks for a tool. Args are sent as is, whether valid
	// JSON or not. Without HasID the player makes up an id.
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

	// Fail ends the stream with the provider error for Kind; After is the wait that the provider asks for.
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

// stop returns why the model stops.
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

// isEmpty reports whether r has no content of its own.
func (r Reply) isEmpty() bool {
	return len(r.Steps)+len(r.Want) == 0 && r.Usage == nil && r.Stop == "" && r.Conversation == ""
}
