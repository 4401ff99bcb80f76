package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// player streams one reply. Its methods report whether the stream continues.
type player struct {
	ctx           context.Context
	opt           Options
	requestNumber int // the number of the request, counted from 1
	yield         func(provider.Delta, error) bool

	hasText, hasReasoning bool
	calls                 int
}

func (p *player) playStep(s Step) bool {
	switch s := s.(type) {
	case Say:
		text := joinText(&p.hasText, string(s))
		return p.sendPieces(text, func(t string) provider.Delta { return provider.TextDelta(t) })
	case Reason:
		text := joinText(&p.hasReasoning, string(s))
		return p.sendPieces(text, func(t string) provider.Delta { return provider.ReasoningDelta{Text: t} })
	case Call:
		index := p.calls
		p.calls++
		if !s.HasID {
			s.ID = fmt.Sprintf("call_%d_%d", p.requestNumber, p.calls)
		}
		if !p.send(provider.CallDelta{Index: index, ID: s.ID, Name: s.Name}) {
			return false
		}
		for args := s.Args; args != ""; {
			n := min(argFragmentSize, len(args))
			for n < len(args) && !utf8.RuneStart(args[n]) {
				n++
			}
			if !p.send(provider.CallDelta{Index: index, Args: args[:n]}) {
				return false
			}
			args = args[n:]
		}
		return true
	case Wait:
		if err := p.opt.Sleep(p.ctx, time.Duration(s)); err != nil {
			return p.fail(err)
		}
		return true
	case Cut:
		return p.fail(&provider.Error{Kind: provider.ErrCutOff, Retryable: s.Retry, Err: errors.New("cut by the script")})
	case Fail:
		e, err := findFailure(s.Kind)
		if err != nil {
			return p.fail(message.Errorf("script: %w", err))
		}
		e.RetryAfter, e.Err = s.After, errors.New(cmp.Or(s.Text, "stopped by the script"))
		return p.fail(&e)
	}
	panic(fmt.Sprintf("unreachable: a Step is never a %T", s))
}

// joinText puts a newline before text that is not the first of its kind.
func joinText(begun *bool, text string) string {
	if *begun {
		return "\n" + text
	}
	*begun = true
	return text
}

func (p *player) sendPieces(text string, delta func(string) provider.Delta) bool {
	for _, t := range p.opt.Pieces(text) {
		if !p.send(delta(t)) {
			return false
		}
	}
	return true
}

// argFragmentSize is the size of a fragment of a call's arguments.
const argFragmentSize = 24

func (p *player) send(d provider.Delta) bool {
	if p.ctx.Err() != nil {
		return p.fail(p.ctx.Err())
	}
	return p.yield(d, nil)
}

// fail ends the stream with err, or with the context's error if the context has ended.
func (p *player) fail(err error) bool {
	if p.ctx.Err() != nil {
		err = p.ctx.Err()
	}
	p.yield(nil, err)
	return false
}

// providerErrors are the provider errors for words and HTTP statuses.
var providerErrors = map[string]provider.Error{
	"auth":        {Kind: provider.ErrAuth, Status: 401},
	"rate":        {Kind: provider.ErrRateLimited, Status: 429, Retryable: true},
	"overload":    {Kind: provider.ErrOverloaded, Status: 529, Retryable: true},
	"loading":     {Kind: provider.ErrLoading, Status: 503, Retryable: true},
	"context":     {Kind: provider.ErrContextTooLong, Status: 400},
	"quota":       {Kind: provider.ErrQuota, Status: 429},
	"model":       {Kind: provider.ErrUnknownModel, Status: 404},
	"tools":       {Kind: provider.ErrNoTools, Status: 400},
	"images":      {Kind: provider.ErrNoImages, Status: 400},
	"bad":         {Kind: provider.ErrBadRequest, Status: 400},
	"unreachable": {Kind: provider.ErrUnreachable, Retryable: true},
	"401":         {Kind: provider.ErrAuth, Status: 401},
	"402":         {Kind: provider.ErrQuota, Status: 402},
	"403":         {Kind: provider.ErrAuth, Status: 403},
	"404":         {Kind: provider.ErrUnknownModel, Status: 404},
	"408":         {Status: 408, Retryable: true},
	"409":         {Status: 409, Retryable: true},
	"413":         {Kind: provider.ErrContextTooLong, Status: 413},
	"425":         {Status: 425, Retryable: true},
	"429":         {Kind: provider.ErrRateLimited, Status: 429, Retryable: true},
	"503":         {Kind: provider.ErrOverloaded, Status: 503, Retryable: true},
	"529":         {Kind: provider.ErrOverloaded, Status: 529, Retryable: true},
}

// findFailure returns the provider error for kind.
func findFailure(kind string) (provider.Error, error) {
	status, err := strconv.Atoi(kind)
	name := kind
	if err == nil {
		name = strconv.Itoa(status)
	}
	if e, ok := providerErrors[name]; ok {
		return e, nil
	}
	e := provider.Error{Status: status, Retryable: status >= 500}
	switch {
	case err != nil || status < 100 || status > 599:
		return provider.Error{},
			message.Errorf("fail takes auth, rate, overload, context, quota, model, tools, bad, loading, unreachable or an HTTP status, not %q", kind)
	case status >= 400 && status < 500:
		e.Kind = provider.ErrBadRequest
	}
	return e, nil
}
