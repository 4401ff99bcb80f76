package app

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"coder/internal/model/provider"
)

// defaultMaxOutput limits a reply if the wire requires a limit and the user set none.
const defaultMaxOutput = 32000

// replyParams are the parameters for a model's replies.
type replyParams struct {
	effort        string
	effortByLevel bool
	temperature   *float64
	maxOutput     int
	defaultMax    int // if neither the caller nor the user sets one
}

// requestTuner returns a function that adds parameters to each request: the user's
// or the model maker's, without those that the model is known to reject.
func (a *Models) requestTuner() func(*provider.Request) {
	type asked struct{ model, effort string }
	var known sync.Map // wishes by model: computing them takes a moment
	return func(req *provider.Request) {
		key := asked{model: req.Model}
		if level := a.effort.Load(); level != nil {
			key.effort = *level
		}
		w, ok := known.Load(key)
		if !ok {
			w, _ = known.LoadOrStore(key, a.replyParamsFor(key.model, key.effort))
		}
		wish := w.(replyParams)
		req.Effort, req.ByLevel, req.Temperature = wish.effort, wish.effortByLevel, wish.temperature
		if req.MaxTokens = cmp.Or(req.MaxTokens, wish.maxOutput, wish.defaultMax); wish.maxOutput > 0 {
			req.MaxTokens = min(req.MaxTokens, wish.maxOutput)
		}
	}
}

// replyParamsFor returns the parameters for a model, with effort if that is not empty.
func (a *Models) replyParamsFor(model, effort string) (w replyParams) {
	c, m := a.endpoint(), a.modelFigures(model)
	var own modelInfo
	_ = json.Unmarshal(c.ModelInfo[model], &own) // an unreadable entry was reported earlier
	w = replyParams{
		effort: cmp.Or(effort, own.Effort, c.Effort), temperature: m.Temperature,
		maxOutput:     cmp.Or(own.MaxOutput, c.MaxOutput),
		effortByLevel: slices.Contains(m.Efforts, "max") || slices.Contains(m.Efforts, "xhigh"),
	}
	if c.Temperature >= 0 && own.Temperature == nil {
		w.temperature = &c.Temperature
	}
	if slices.Contains(m.Refuses, "temperature") {
		w.temperature = nil
	}
	switch {
	case len(m.Efforts) > 0:
		w.effort = nearestEffort(w.effort, m.Efforts)
	case !m.Guessed && !m.Reasoning, slices.Contains(m.Refuses, "effort"):
		w.effort = "" // the model is known not to reason
	}
	if c.Kind == "anthropic" {
		w.defaultMax = min(m.Output, defaultMaxOutput)
	}
	return w
}

// nearestEffort returns the model's level nearest to the requested one, the lower of two.
func nearestEffort(wish string, has []string) string {
	at := slices.Index(provider.Efforts, wish)
	if at < 0 || slices.Contains(has, wish) {
		return wish
	}
	best, distance := "", len(provider.Efforts)
	for i, level := range provider.Efforts {
		if d := max(i-at, at-i); d < distance && slices.Contains(has, level) {
			best, distance = level, d
		}
	}
	return best
}
