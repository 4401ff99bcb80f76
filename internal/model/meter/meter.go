// Package meter counts what a session spends on its models in money,
// tokens and time, and stops requests that would exceed the budget.
//
// The records are the source of all counts: the meter receives each record, including those of earlier
// processes. All users of the same models share one meter.
package meter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/model/catalogue"
	"coder/internal/model/provider"
)

// ErrBudget means that a request was not sent because it would exceed the budget.
var ErrBudget = errors.New("the budget does not cover the next request")

// Budget is the spending limit; a zero field means no limit.
type Budget struct {
	USD    float64
	Tokens int           // of requests and replies
	Time   time.Duration // duration of turns, without waiting for the user
}

// Options configures a Meter.
type Options struct {
	Budget Budget
	Price  func(model string) catalogue.Price
	Now    func() time.Time
}

// Meter counts a session's spending. It is safe for concurrent use.
type Meter struct {
	o Options

	mu          sync.Mutex // guards the fields below
	spent       chat.Usage
	pending     Cost                       // estimates of current requests
	prices      map[string]catalogue.Price // prices looked up so far
	cachedShare map[string]float64         // cached share of a model's last request
	clock       turnClock
	missedUsage bool // a complete reply came without a usage figure
}

// Cost is a cost.
type Cost struct {
	USD    float64
	Tokens int
}

// New returns a Meter at zero.
func New(o Options) *Meter {
	return &Meter{o: o, prices: make(map[string]catalogue.Price), cachedShare: make(map[string]float64)}
}

// Add counts a record. live means that this process made it.
func (m *Meter) Add(r event.Record, live bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.add(r, live)
	model, used, ok := event.UsageOf(r.Event)
	if e, said := r.Event.(event.MessageAdded); said && !ok && e.Message.Role == chat.Assistant && e.Model != "" &&
		!e.Interrupted && e.StopReason != string(provider.StopLoop) {
		m.missedUsage = true
	}
	if !ok {
		return
	}
	m.spent = m.spent.Add(m.withCost(model, used))
	if _, reply := r.Event.(event.MessageAdded); reply && used.In > 0 {
		m.cachedShare[model] = min(max(float64(used.Cached)/float64(used.In), 0), 1)
	}
}

// MissedUsage reports whether complete replies came without usage figures.
func (m *Meter) MissedUsage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missedUsage
}

// Spent returns the usage so far and the duration of the turns.
func (m *Meter) Spent() (chat.Usage, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent, m.clock.elapsedAt(m.o.Now())
}

// WithCost returns u with its cost, if the provider did not report one and the model's price is known.
func (m *Meter) WithCost(model string, u chat.Usage) chat.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.withCost(model, u)
}

func (m *Meter) withCost(model string, u chat.Usage) chat.Usage {
	// Others can write to the records: no record may add room to a budget.
	u.In, u.Out = max(u.In, 0), max(u.Out, 0)
	if u.Cost > 0 {
		return u
	}
	var known bool
	u.Cost, known = m.price(model).Cost(u.In, u.Cached, u.CacheWritten, u.Out)
	u.Unpriced = !known
	return u
}

func (m *Meter) price(model string) catalogue.Price {
	p, ok := m.prices[model]
	if !ok {
		p = m.o.Price(model)
		m.prices[model] = p
	}
	return p
}

// reserve reserves budget for a request of this many tokens, until done is called.
func (m *Meter) reserve(model string, tokens int) (done func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := Cost{Tokens: tokens}
	if m.o.Budget.USD > 0 {
		cached := int(m.cachedShare[model] * float64(tokens))
		var known bool
		if next.USD, known = m.price(model).Cost(tokens, cached, 0, 0); !known {
			return nil, UnknownPriceError(model)
		}
	}
	if err := m.checkBudget(next); err != nil {
		return nil, err
	}
	m.pending = Cost{m.pending.USD + next.USD, m.pending.Tokens + next.Tokens}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.pending = Cost{m.pending.USD - next.USD, m.pending.Tokens - next.Tokens}
	}, nil
}

// checkBudget reports which limit of the budget the next request would exceed.
func (m *Meter) checkBudget(next Cost) error {
	b := m.o.Budget
	used := m.spent.In + m.spent.Out
	took := m.clock.elapsedAt(m.o.Now())
	switch {
	case b.USD > 0 && m.spent.Cost+m.pending.USD+next.USD > b.USD:
		return message.Errorf("%w: %s of %s spent, and the request would cost about %s; raise it with --max-budget-usd or runtime.budget.usd",
			ErrBudget, FormatUSD(m.spent.Cost+m.pending.USD), FormatUSD(b.USD), FormatUSD(next.USD))
	case b.Tokens > 0 && used+m.pending.Tokens+next.Tokens > b.Tokens:
		return message.Errorf("%w: %d of %d tokens used, and the request needs about %d; raise it with runtime.budget.tokens",
			ErrBudget, used+m.pending.Tokens, b.Tokens, next.Tokens)
	case b.Time > 0 && took >= b.Time:
		return message.Errorf("%w: the turns of this session took %v of %v; raise it with runtime.budget.duration",
			ErrBudget,
			took.Round(time.Second), b.Time)
	}
	return nil
}

// FormatUSD formats an amount to a hundredth of a cent, and finer where that would show zero.
func FormatUSD(amount float64) string {
	if amount > 0 && amount < 0.0001 {
		return fmt.Sprintf("$%.8f", amount)
	}
	return fmt.Sprintf("$%.4f", amount)
}

// UnknownPriceError returns the error for a money budget with a model of unknown price.
func UnknownPriceError(model string) error {
	return message.Errorf("the budget is in money, and the price of %s is unknown: set price_in and price_out under provider.model_info (in dollars per million tokens), or set the budget in tokens with runtime.budget.tokens", model)
}

// Wrap returns p with every request counted and checked against the budget. Replies then include their cost.
func (m *Meter) Wrap(p provider.Provider) provider.Provider { return meteredProvider{p, m} }

type meteredProvider struct {
	next  provider.Provider
	meter *Meter
}

func (p meteredProvider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		done := func() {}
		if p.meter.o.Budget != (Budget{}) {
			var err error
			if done, err = p.meter.reserve(req.Model, estimateTokens(req)); err != nil {
				yield(nil, err)
				return
			}
		}
		defer done()
		// A reply that broke off is estimated, unless complete replies are not counted either.
		estimates := p.meter.o.Budget != (Budget{}) || !p.meter.MissedUsage()
		arrived := 0 // bytes of the reply
		for d, err := range p.next.Stream(ctx, req) {
			if err != nil && arrived > 0 && estimates && !yield(p.estimate(req, arrived, false), nil) {
				return
			}
			switch d := d.(type) {
			case provider.TextDelta:
				arrived += len(d)
			case provider.ReasoningDelta:
				arrived += len(d.Text)
			case provider.CallDelta:
				arrived += len(d.Name) + len(d.Args)
			case provider.Done:
				if d.Usage == nil {
					stopped := d.Stop == provider.StopLoop // coder stopped it, before the usage came
					if (stopped && estimates || p.meter.o.Budget != (Budget{})) && !yield(p.estimate(req, arrived, !stopped), nil) {
						return
					}
					break
				}
				u := p.meter.WithCost(req.Model, *d.Usage)
				d.Usage = &u
				yield(d, nil)
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// estimate returns the probable usage of a request without usage figures, after this many bytes of its reply.
func (p meteredProvider) estimate(req provider.Request, arrived int, whole bool) provider.Spent {
	u := chat.Usage{In: estimateTokens(req), Out: int(float64(arrived) / bytesPerToken)}
	return provider.Spent{Model: req.Model, Usage: p.meter.WithCost(req.Model, u), Complete: whole}
}

// bytesPerToken is the ratio for a request without a better estimate.
const bytesPerToken = 3.6

// estimateTokens estimates the tokens of a request.
func estimateTokens(req provider.Request) int {
	if req.Estimate > 0 {
		return req.Estimate
	}
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Doc) + len(t.Schema)
	}
	for _, msg := range req.Messages {
		n += len(msg.Text()) + len(msg.Reasoning())
		for _, c := range msg.Calls() {
			n += len(c.Name) + len(c.Args)
		}
		for r := range chat.PartsOf[chat.ToolResult](msg) {
			n += len(r.Text)
		}
	}
	return int(float64(n) / bytesPerToken)
}

// turnClock adds up the duration of turns, without the time that questions were open.
type turnClock struct {
	elapsed       time.Duration
	last          time.Time       // of the previous record
	task          string          // the current turn
	openQuestions map[string]bool // open questions
	started       bool            // this process has made a record
}

func (c *turnClock) add(r event.Record, live bool) {
	if c.task != "" && len(c.openQuestions) == 0 && (c.started || !live) { // time between two processes does not count
		c.elapsed += max(0, r.Time.Sub(c.last))
	}
	c.last, c.started = r.Time, c.started || live
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			c.task = e.TaskID
		}
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		if r.Task == c.task {
			c.task, c.openQuestions = "", nil
		}
	case event.InteractionRequested:
		if c.openQuestions == nil {
			c.openQuestions = make(map[string]bool)
		}
		c.openQuestions[e.ID] = true
	case event.InteractionResponded:
		delete(c.openQuestions, e.ID)
	}
}

func (c *turnClock) elapsedAt(now time.Time) time.Duration {
	if c.task == "" || len(c.openQuestions) > 0 || !c.started {
		return c.elapsed
	}
	return c.elapsed + max(0, now.Sub(c.last))
}
