// Package provider is the boundary with language models: one request out, one
// stream of deltas back. Adapters live in sub-packages and are the only code
// that knows a vendor's wire format.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"coder/internal/core/chat"
)

// A Provider sends requests to a model. It is safe for concurrent use.
// Implementations pass [coder/testkit/providertest.TestProvider].
type Provider interface {
	// Stream sends req and yields the reply as it arrives. The sequence ends
	// after a [Done] delta, or after one non-nil error, which is always last.
	// Breaking out of the loop abandons the request. When ctx ends the error
	// is ctx.Err(), unwrapped.
	Stream(ctx context.Context, req Request) iter.Seq2[Delta, error]
}

// Request is everything the model gets to see. From one step of a turn to the
// next, System and Tools stay as they are and Messages only grows.
type Request struct {
	Model     string
	System    string
	Messages  []chat.Message
	Tools     []ToolSpec
	MaxTokens int // zero means the model's own limit

	Effort      string   // how hard to think: one of [Efforts]; "" leaves it to the model
	ByLevel     bool     // the model wants the level of effort by its name, not as a figure
	Temperature *float64 // nil leaves it to the model

	// Estimate is how many tokens all of it takes, as far as the caller can
	// tell; zero if it cannot.
	Estimate int
}

// Efforts are the levels of effort, the least first.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// ThinkingTokens is how much a model may think at a level of effort, for wires
// that want a figure.
func ThinkingTokens(effort string) int {
	return map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 32000, "max": 32000}[effort]
}

// Prompt is a request that says one thing and offers no tools.
func Prompt(model, words string) Request {
	return Request{Model: model, Messages: []chat.Message{chat.Say(chat.User, words)}}
}

// ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name, Doc string
	Schema    json.RawMessage
}

// A Delta is one of [TextDelta], [ReasoningDelta], [CallDelta], [Waiting],
// [Restart], [Spent], [Window] or [Done].
type Delta interface{ isDelta() }

type (
	// TextDelta is a piece of the answer: whole runes, valid UTF-8.
	TextDelta string

	// ReasoningDelta is a piece of thinking. Field is the provider's name for
	// it. Details, when set, replaces all earlier Details of the reply; Held is
	// how many more bytes the adapter holds, to be told as Details at the end.
	ReasoningDelta struct {
		Text, Field string
		Details     json.RawMessage
		Held        int
	}

	// CallDelta grows the Index'th tool call, counted from 0 without gaps. ID,
	// Name and Extra come once, with the first piece or later; Args arrives in
	// fragments that need not be valid JSON alone.
	CallDelta struct {
		Index    int
		ID, Name string
		Args     string
		Extra    json.RawMessage
	}

	// Restart voids every delta before it: the reply is asked for again, as
	// attempt number Attempt of Of, after Wait.
	Restart struct {
		Attempt, Of int
		Wait        time.Duration
		Err         error
	}

	// Waiting says that nothing of the reply is there yet, and since when.
	Waiting struct {
		Waited   time.Duration
		Loading  bool // the server has to load the model first
		Read, Of int  // how much of the request the model has read, in tokens; zero if nobody says
	}

	// Spent is an estimate of what was used and is not told in Done: by an attempt
	// that did not arrive whole, or, where there is a budget to keep, by a reply
	// whose provider does not say.
	Spent struct {
		Model string
		Usage chat.Usage
		Whole bool // the reply arrived
	}

	// Window is how many tokens the server takes, a request and its reply
	// together, as it says itself. It comes as soon as that is known.
	Window int

	// Done ends a reply that arrived whole.
	Done struct {
		Stop  Stop
		Usage *chat.Usage // nil if the provider did not say
		Model string      // who replied, if it was not the model that was asked
		Sent  *chat.Sent  // what the request was; nil if the provider did not say
	}
)

func (TextDelta) isDelta()      {}
func (ReasoningDelta) isDelta() {}
func (CallDelta) isDelta()      {}
func (Restart) isDelta()        {}
func (Waiting) isDelta()        {}
func (Spent) isDelta()          {}
func (Window) isDelta()         {}
func (Done) isDelta()           {}

// Stop is why the model stopped.
type Stop string

// The reasons to stop.
const (
	StopEnd    Stop = "end"    // it had said what it had to say
	StopTools  Stop = "tools"  // it waits for tool results
	StopLength Stop = "length" // it ran into a limit of its own
	StopFilter Stop = "filter" // the provider withheld the rest
	StopLoop   Stop = "loop"   // it repeated itself without end, and was not listened to any longer
	StopSize   Stop = "size"   // it said more than [LongestReply], and the rest was not listened to
)

// LongestReply is how many bytes are taken of one reply: text, thinking and the
// arguments of calls together.
const LongestReply = 16 << 20

// LongestArguments is how many of these bytes arguments may have: they are kept, read,
// shown and recorded once more than text is.
const LongestArguments = LongestReply / argWeight

// Cut reports whether the last call of a reply that stopped so may not be whole.
func (s Stop) Cut() bool { return s == StopLength || s == StopSize }

// Failures a caller may want to act on. Test with errors.Is.
var (
	ErrContextTooLong = errors.New("conversation too long for the model")
	ErrRateLimited    = errors.New("rate limited")
	ErrQuota          = errors.New("quota exceeded")
	ErrAuth           = errors.New("not authorized")
	ErrNoModel        = errors.New("no such model")
	ErrOverloaded     = errors.New("provider overloaded")
	ErrLoading        = errors.New("the model is loading")
	ErrUnreachable    = errors.New("cannot reach the provider")
	ErrNotAnAPI       = errors.New("the endpoint did not answer as an API")
	ErrCutOff         = errors.New("reply was cut off")
	ErrBadRequest     = errors.New("request refused")
	ErrNoTools        = errors.New("the server does not support tools")
	ErrNoImages       = errors.New("the model does not accept images")
)

// codes are short stable names of the failures above, for records and other
// programs.
var codes = []struct {
	is   error
	code string
}{
	{ErrContextTooLong, "context_length_exceeded"},
	{ErrNoModel, "model_not_found"},
	{ErrAuth, "unauthorized"},
	{ErrQuota, "quota_exceeded"},
	{ErrRateLimited, "rate_limited"},
	{ErrOverloaded, "overloaded"},
	{ErrLoading, "loading"},
	{ErrUnreachable, "unreachable"},
	{ErrNotAnAPI, "not_an_api"},
	{ErrCutOff, "cut_off"},
	{ErrBadRequest, "bad_request"},
	{ErrNoTools, "no_tools"},
	{ErrNoImages, "no_images"},
}

// Code names the failure err is, "provider_error" if it is one without a name,
// or "" if it is no failure of a provider.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	var e *Error
	if errors.As(err, &e) {
		return "provider_error"
	}
	return ""
}

// Error is a failure of the provider. It unwraps to both its Kind (one of the
// sentinels above, or nil) and its cause. Its text holds no key, no markup and
// no control characters.
type Error struct {
	Kind       error
	Status     int           // HTTP status, or zero
	RetryAfter time.Duration // how long the provider asked us to wait
	Retryable  bool          // whether the same request may succeed later
	Window     int           // tokens the server takes, if it says so in refusing more
	Err        error
}

func (e *Error) Error() string {
	switch {
	case e.Kind == nil && e.Status != 0:
		return fmt.Sprintf("provider answered %d: %v", e.Status, e.Err)
	case e.Kind == nil:
		return e.Err.Error()
	case e.Err == nil:
		return e.Kind.Error()
	case errors.Is(e.Err, e.Kind):
		return e.Err.Error() // the cause says it in better words
	}
	return fmt.Sprintf("%v: %v", e.Kind, e.Err)
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}
