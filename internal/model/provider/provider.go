// Package provider is the boundary with language models: one request out, one stream of deltas back.
// Adapters live in sub-packages and are the only code that knows a vendor's wire format.
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

// Request is everything the model sees. From one step of a turn to the
// next, System and Tools are unchanged and Messages only grows.
type Request struct {
	Model     string
	System    string
	Messages  []chat.Message
	Tools     []ToolSpec
	MaxTokens int // zero means the model's own limit

	Effort      string   // thinking effort: one of [Efforts]; "" means the model's default
	ByLevel     bool     // the model wants the effort as a level, not a figure
	Temperature *float64 // nil means the model's default

	// Estimate is the caller's estimate of the request's tokens; zero if it has none.
	Estimate int
}

// Efforts are the levels of effort, lowest first.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// ThinkingTokens returns the thinking budget for a level of effort, for wires that need a figure.
func ThinkingTokens(effort string) int {
	return map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 32000,
		"max": 32000}[effort]
}

// Prompt returns a request with one message and no tools.
func Prompt(model, words string) Request {
	return Request{Model: model, Messages: []chat.Message{chat.TextMessage(chat.User, words)}}
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

	// ReasoningDelta is a piece of thinking. Field is the provider's name for it.
	// Details, if set, replaces all earlier Details of the reply. Held is the number of
	// further bytes that the adapter holds, to send as Details at the end.
	ReasoningDelta struct {
		Text, Field string
		Details     json.RawMessage
		Held        int
	}

	// CallDelta grows the Index'th tool call, counted from 0 without gaps. ID, Name and Extra come once,
	// with the first piece or later; Args arrives in fragments that need not be valid JSON alone.
	CallDelta struct {
		Index    int
		ID, Name string
		Args     string
		Extra    json.RawMessage
	}

	// Restart voids all earlier deltas: the request is sent again, as attempt number Attempt of Of, after Wait.
	Restart struct {
		Attempt, MaxAttempts int
		Wait                 time.Duration
		Err                  error
	}

	// Waiting reports that no part of the reply has come yet, and for how long.
	Waiting struct {
		Elapsed                 time.Duration
		Loading                 bool // the server has to load the model first
		ReadTokens, TotalTokens int  // how much of the request the model has read, in tokens; zero if unknown
	}

	// Spent is an estimate of usage that Done does not report: of an incomplete
	// attempt or, under a budget, of a reply without a usage figure.
	Spent struct {
		Model    string
		Usage    chat.Usage
		Complete bool // the reply arrived
	}

	// Window is the server's own context window in tokens, for a request
	// and its reply together. It comes as soon as it is known.
	Window int

	// Done ends a complete reply.
	Done struct {
		Stop  Stop
		Usage *chat.Usage       // nil if the provider did not say
		Model string            // the model that replied, if not the requested one
		Sent  *chat.SentRequest // the request as sent; nil if the provider did not say
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
	StopEnd    Stop = "end"    // the model finished
	StopTools  Stop = "tools"  // it waits for tool results
	StopLength Stop = "length" // it reached its own token limit
	StopFilter Stop = "filter" // the provider withheld the rest
	StopLoop   Stop = "loop"   // it repeated itself endlessly; coder stopped reading
	StopSize   Stop = "size"   // it exceeded [LongestReply]; coder stopped reading
)

// MaxReplyBytes is the maximum size of a reply in bytes: text, thinking and the arguments of calls together.
const MaxReplyBytes = 16 << 20

// MaxArgumentBytes is the part of [MaxReplyBytes] that arguments may fill:
// they are stored, read, shown and recorded once more than text.
const MaxArgumentBytes = MaxReplyBytes / argWeight

// IsTruncated reports whether the last call of a reply with this stop may be incomplete.
func (s Stop) IsTruncated() bool { return s == StopLength || s == StopSize }

// Failures a caller may want to act on. Test with errors.Is.
var (
	ErrContextTooLong = errors.New("conversation too long for the model")
	ErrRateLimited    = errors.New("rate limited")
	ErrQuota          = errors.New("quota exceeded")
	ErrAuth           = errors.New("not authorized")
	ErrUnknownModel   = errors.New("no such model")
	ErrOverloaded     = errors.New("provider overloaded")
	ErrLoading        = errors.New("the model is loading")
	ErrUnreachable    = errors.New("cannot reach the provider")
	ErrNotAnAPI       = errors.New("the endpoint did not answer as an API")
	ErrCutOff         = errors.New("reply was cut off")
	ErrBadRequest     = errors.New("request refused")
	ErrNoTools        = errors.New("the server does not support tools")
	ErrNoImages       = errors.New("the model does not accept images")
)

// errorCodes are short stable names of the failures above, for records and other programs.
var errorCodes = []struct {
	is   error
	code string
}{
	{ErrContextTooLong, "context_length_exceeded"},
	{ErrUnknownModel, "model_not_found"},
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

// Code returns the name of the failure err, "provider_error" if
// it has no name, or "" if err is not a provider's failure.
func Code(err error) string {
	for _, c := range errorCodes {
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
	RetryAfter time.Duration // the wait that the provider asked for
	Retryable  bool          // the same request may succeed later
	Window     int           // the server's window in tokens, if its refusal reports it
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
		return e.Err.Error() // the cause is worded better
	}
	return fmt.Sprintf("%v: %v", e.Kind, e.Err)
}

// Unwrap returns the kind and the cause.
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
