// Package telemetry reports to the user's own collector what a session does: how
// long its turns, steps and tools took, and what they used. It reads records and
// sends OTLP as JSON over HTTP, named by the conventions for generative AI.
//
//  1. Nothing is sent unless the environment names an address.
//  2. No content is sent: no prompt, reply, argument, result, path, title or reason;
//     only names, numbers and times.
//  3. It never delays a session: unsent data waits in a queue of limited size, then
//     is dropped, and closing takes a limited time.
package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// Options configures an Exporter. All fields are required.
type Options struct {
	Settings
	Version   string
	Provider  func() (name, server string) // the model provider and its server
	Transport http.RoundTripper
	Random    func([]byte)
	Now       func() time.Time
	Warn      func(string)
}

const (
	sendInterval    = 5 * time.Second
	metricsInterval = 12 // in units of sendInterval
	maxQueue        = 2048
	maxBatch        = 512
	maxUnfinished   = 4096 // unfinished tasks and calls
	maxSeries       = 500  // per instrument
	closeTimeout    = 2 * time.Second
	invalidTool     = "(invalid)" // the name of an invalid call's tool: its real name is the model's own text
	conversationKey = "gen_ai.conversation.id"
	operationKey    = "gen_ai.operation.name"
)

// Exporter sends telemetry about the records it gets. It is
// safe for concurrent use. The nil Exporter does nothing.
type Exporter struct {
	options   Options
	startTime time.Time

	mu          sync.Mutex           // guards the fields below
	tasks       map[string]*openTask // by id
	calls       map[string]*span     // by task and call id
	queue       []span
	dropped     int
	instruments []*instrument
	warned      bool // warned that sending failed
	stop        chan struct{}
	done        chan struct{} // nil until something is to be sent
	cancel      context.CancelFunc
}

// openTask is an unfinished task.
type openTask struct {
	span
	lastRecord time.Time // time of its last record
	afterReply bool      // the last record was a reply
}

// New returns an Exporter, or nil if nothing is to be sent.
func New(o Options) *Exporter {
	if !o.Enabled() {
		return nil
	}
	e := &Exporter{options: o, startTime: o.Now(), tasks: make(map[string]*openTask), calls: make(map[string]*span),
		stop: make(chan struct{})}
	e.options.Resource = append(slices.Clip(o.Resource), Attribute{"service.instance.id", e.randomID(16)})
	e.instruments = []*instrument{
		{name: "gen_ai.client.token.usage", unit: "{token}", description: "Tokens of requests and replies.",
			bounds: []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304}},
		{name: "gen_ai.client.operation.duration", unit: "s", description: "Duration of steps.",
			bounds: []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8}},
		{name: "coder.cost", unit: "USD", description: "Cost of replies, as far as prices are known."},
		{name: "coder.turns", unit: "{turn}", description: "Turns and subtasks, by outcome."},
		{name: "coder.tool.calls", unit: "{call}", description: "Tool calls, by outcome."},
	}
	return e
}

// These are the indices of the instruments.
const (
	tokenUsage = iota
	stepTime
	cost
	turns
	toolCalls
)

// instrument is a metric.
type instrument struct {
	name, unit, description string
	bounds                  []float64 // of a histogram; nil for a sum
	series                  []*series
}

type series struct {
	attributes []Attribute
	sum        float64
	count      int
	buckets    []int
}

// add adds v under attributes.
func (m *instrument) add(v float64, attributes ...Attribute) {
	is := func(s *series) bool { return slices.Equal(s.attributes, attributes) }
	i := slices.IndexFunc(m.series, is)
	if i < 0 && len(m.series) >= maxSeries-1 {
		attributes = []Attribute{{"otel.metric.overflow", true}}
		i = slices.IndexFunc(m.series, is)
	}
	if i < 0 {
		m.series = append(m.series, &series{attributes: attributes, buckets: make([]int, len(m.bounds)+1)})
		i = len(m.series) - 1
	}
	s := m.series[i]
	s.sum += v
	s.count++
	at, _ := slices.BinarySearch(m.bounds, v) // a bound is the largest value of its bucket
	s.buckets[at]++
}

// randomID returns a random id of n bytes.
func (e *Exporter) randomID(n int) string {
	b := make([]byte, n)
	e.options.Random(b)
	return hex.EncodeToString(b)
}

// Add processes a record of this process.
func (e *Exporter) Add(r event.Record) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	reply := false
	switch ev := r.Event.(type) {
	case event.TaskCreated:
		e.startTask(r, ev)
	case event.TaskCompleted:
		e.endTask(r, ev.TaskID, "")
	case event.TaskFailed:
		if t := e.tasks[r.Task]; ev.Code != "" && t != nil && !t.afterReply {
			e.recordReply(r, event.MessageAdded{}, ev.Code)
		}
		e.endTask(r, ev.TaskID, cmp.Or(ev.Code, "failed"))
	case event.TaskCanceled:
		e.endTask(r, ev.TaskID, "canceled")
	case event.ToolCallRequested:
		e.startCall(r, ev)
	case event.ToolCallCompleted:
		e.endCall(r, ev)
	case event.MessageAdded:
		if reply = ev.Message.Role == chat.Assistant && ev.Model != ""; reply {
			e.recordReply(r, ev, "")
		}
	case event.Spent:
		e.countUsage(ev.Model, ev.Usage)
	}
	if t := e.tasks[r.Task]; t != nil {
		t.lastRecord, t.afterReply = r.Time, reply
	}
}

// startTask begins a turn, or the task of another agent below the call that delegated it.
func (e *Exporter) startTask(r event.Record, ev event.TaskCreated) {
	if len(e.tasks) >= maxUnfinished {
		e.dropped++
		return
	}
	s := span{TraceID: e.randomID(16), ID: e.randomID(8), Name: "invoke_agent " + ev.AgentID, Kind: internalKind,
		Start: nanos(r.Time)}
	if parent := e.tasks[ev.ParentID]; parent != nil {
		s.TraceID, s.Parent = parent.TraceID, parent.ID
		if call := e.calls[ev.ParentID+"/"+ev.CallID]; call != nil {
			s.Parent = call.ID
		}
	}
	s.Attributes = []Attribute{{operationKey, "invoke_agent"}, {"gen_ai.agent.name", ev.AgentID},
		{conversationKey, r.Session}}
	e.tasks[ev.TaskID] = &openTask{span: s, lastRecord: r.Time}
}

// endTask ends a turn.
func (e *Exporter) endTask(r event.Record, id, why string) {
	t := e.tasks[id]
	if t == nil {
		return
	}
	delete(e.tasks, id)
	outcome := "completed"
	if why != "" {
		outcome = why
		t.fail(why)
	}
	e.instruments[turns].add(1, Attribute{"outcome", outcome})
	e.queueSpan(t.span, r.Time)
}

// recordReply records a reply of the model. Its duration is the time since the previous record.
func (e *Exporter) recordReply(r event.Record, ev event.MessageAdded, why string) {
	t := e.tasks[r.Task]
	if t == nil {
		return
	}
	provider, server := e.options.Provider()
	about := []Attribute{{operationKey, "chat"}, {"gen_ai.provider.name", provider}}
	if ev.Model != "" {
		about = append(about, Attribute{"gen_ai.request.model", ev.Model})
	}
	s := span{
		TraceID: t.TraceID, ID: e.randomID(8), Parent: t.ID, Name: "chat", Kind: clientKind, Start: nanos(t.lastRecord),
		Attributes: append(slices.Clip(about), Attribute{conversationKey, r.Session}),
	}
	if ev.Model != "" {
		s.Name += " " + ev.Model
	}
	if server != "" {
		s.Attributes = append(s.Attributes, Attribute{"server.address", server})
	}
	if ev.StopReason != "" {
		s.Attributes = append(s.Attributes, Attribute{"gen_ai.response.finish_reasons", []string{ev.StopReason}})
	}
	if u := ev.Usage; u != nil {
		s.Attributes = append(s.Attributes,
			Attribute{"gen_ai.usage.input_tokens", u.In}, Attribute{"gen_ai.usage.output_tokens", u.Out},
			Attribute{"gen_ai.usage.cache_read.input_tokens", u.Cached},
			Attribute{"gen_ai.usage.cache_creation.input_tokens", u.CacheWritten})
		if u.Cost > 0 {
			s.Attributes = append(s.Attributes, Attribute{"coder.cost_usd", u.Cost})
		}
		e.countUsage(ev.Model, *u)
	}
	if ev.Interrupted {
		why = "interrupted"
	}
	if why != "" {
		s.fail(why)
		about = append(about, Attribute{"error.type", why})
	}
	e.instruments[stepTime].add(r.Time.Sub(t.lastRecord).Seconds(), about...)
	e.queueSpan(s, r.Time)
}

// countUsage counts what a model used.
func (e *Exporter) countUsage(model string, u chat.Usage) {
	provider, _ := e.options.Provider()
	about := []Attribute{{operationKey, "chat"}, {"gen_ai.provider.name", provider}, {"gen_ai.request.model", model}}
	for kind, n := range map[string]int{"input": u.In, "output": u.Out} {
		e.instruments[tokenUsage].add(float64(max(n, 0)), append(slices.Clip(about), Attribute{"gen_ai.token.type", kind})...)
	}
	if u.Cost > 0 {
		e.instruments[cost].add(u.Cost, about[1:]...)
	}
}

// startCall begins a call.
func (e *Exporter) startCall(r event.Record, ev event.ToolCallRequested) {
	if len(e.calls) >= maxUnfinished {
		e.dropped++
		return
	}
	name := ev.Tool
	if ev.Verdict == event.VerdictInvalid || ev.Verdict == event.VerdictUnsure {
		name = invalidTool
	}
	s := &span{TraceID: e.randomID(16), ID: e.randomID(8), Name: "execute_tool " + name, Kind: internalKind,
		Start: nanos(r.Time)}
	if t := e.tasks[ev.TaskID]; t != nil {
		s.TraceID, s.Parent = t.TraceID, t.ID
	}
	s.Attributes = []Attribute{
		{operationKey, "execute_tool"}, {"gen_ai.tool.name", name}, {conversationKey, r.Session},
		{"coder.tool.verdict", cmp.Or(string(ev.Verdict), string(event.VerdictAllowed))},
	}
	e.calls[ev.TaskID+"/"+ev.CallID] = s
}

// endCall ends a call.
func (e *Exporter) endCall(r event.Record, ev event.ToolCallCompleted) {
	key := ev.TaskID + "/" + ev.CallID
	s := e.calls[key]
	if s == nil {
		return
	}
	delete(e.calls, key)
	name, verdict, outcome := s.Attributes[1], s.Attributes[3].Value, "ok"
	switch {
	case verdict != string(event.VerdictAllowed):
		outcome = verdict.(string)
	case ev.OutcomeUnknown:
		outcome = "unknown"
	case ev.IsError:
		outcome = "error"
	}
	if outcome != "ok" {
		s.fail(outcome)
	}
	e.instruments[toolCalls].add(1, name, Attribute{"outcome", outcome})
	ended := r.Time // the time of its record; parallel calls are recorded in order
	if took := time.Duration(ev.DurationMs) * time.Millisecond; took > 0 {
		ended = time.Time(s.Start).Add(took)
	}
	e.queueSpan(*s, ended)
}

// queueSpan queues a finished span, and makes sure that it is sent.
func (e *Exporter) queueSpan(s span, at time.Time) {
	s.End = nanos(at)
	if e.done == nil {
		ctx, cancel := context.WithCancel(context.Background())
		e.cancel, e.done = cancel, make(chan struct{})
		go e.run(ctx)
	}
	if e.options.Traces == nil {
		return
	}
	if len(e.queue) >= maxQueue {
		e.dropped++
		return
	}
	e.queue = append(e.queue, s)
}

// run sends periodically until it is stopped, and then sends the rest.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	tick := time.NewTicker(sendInterval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-e.stop:
			e.sendSpans(ctx)
			e.sendMetrics(ctx)
			return
		case <-tick.C:
			e.sendSpans(ctx)
			if n%metricsInterval == 0 {
				e.sendMetrics(ctx)
			}
		}
	}
}

// sendSpans sends the queue. It requeues what a retry may deliver.
func (e *Exporter) sendSpans(ctx context.Context) {
	for ctx.Err() == nil {
		e.mu.Lock()
		n := min(len(e.queue), maxBatch)
		batch := slices.Clone(e.queue[:n])
		e.queue = slices.Delete(e.queue, 0, n)
		e.mu.Unlock()
		if n == 0 {
			return
		}
		body, err := json.Marshal(object{"resourceSpans": []object{{
			"resource":   object{"attributes": e.options.Resource},
			"scopeSpans": []object{{"scope": e.scopeInfo(), "spans": batch}},
		}}})
		again := false
		if err == nil {
			again, err = e.send(ctx, e.options.Traces, body)
		}
		if err == nil {
			continue
		}
		e.mu.Lock()
		if again && len(e.queue)+n <= maxQueue {
			e.queue = slices.Concat(batch, e.queue)
		} else {
			e.dropped += n
		}
		e.mu.Unlock()
		e.warnOnce(e.options.Traces, err)
		return
	}
}

// sendMetrics sends the metrics.
func (e *Exporter) sendMetrics(ctx context.Context) {
	if e.options.Metrics == nil || ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	now := e.metricsRequest(e.options.Now())
	e.mu.Unlock()
	if now == nil {
		return
	}
	body, err := json.Marshal(now)
	if err == nil {
		_, err = e.send(ctx, e.options.Metrics, body)
	}
	if err != nil {
		e.warnOnce(e.options.Metrics, err)
	}
}

// warnOnce warns the user once that sending failed.
func (e *Exporter) warnOnce(t *Target, err error) {
	e.mu.Lock()
	told := e.warned
	e.warned = true
	e.mu.Unlock()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	if !told {
		e.options.Warn(fmt.Sprintf("telemetry cannot be sent to %s: %v", t.DisplayURL(), err))
	}
}

// Close sends the rest, as far as possible in a short time.
func (e *Exporter) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	ended, cancel := e.done, e.cancel
	e.mu.Unlock()
	if ended == nil {
		return nil
	}
	late := time.AfterFunc(closeTimeout, cancel)
	defer late.Stop()
	close(e.stop)
	<-ended
	cancel()
	e.mu.Lock()
	dropped := e.dropped + len(e.queue)
	told := e.warned
	e.mu.Unlock()
	if dropped > 0 && e.options.Traces != nil && !told {
		e.options.Warn(fmt.Sprintf("telemetry: %d spans were dropped", dropped))
	}
	return nil
}
