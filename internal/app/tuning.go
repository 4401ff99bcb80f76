package app

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"coder/internal/model/provider"
)

// usualOutput is the longest reply asked for where the wire wants a figure and
// the person gave none.
const usualOutput = 32000

// wishes are what a model is told of the replies that are wanted.
type wishes struct {
	effort      string
	byLevel     bool
	temperature *float64
	maxOutput   int
	usual       int // if neither the caller nor the person says
}

// tuning puts to each request what the person wishes of its model, or its maker
// recommends, without what the model is known to refuse.
func (a *App) tuning() func(*provider.Request) {
	type asked struct{ model, effort string }
	var known sync.Map // wishes by model: figures take a moment to find
	return func(req *provider.Request) {
		key := asked{model: req.Model}
		if level := a.effort.Load(); level != nil {
			key.effort = *level
		}
		w, ok := known.Load(key)
		if !ok {
			w, _ = known.LoadOrStore(key, a.wishesFor(key.model, key.effort))
		}
		wish := w.(wishes)
		req.Effort, req.ByLevel, req.Temperature = wish.effort, wish.byLevel, wish.temperature
		if req.MaxTokens = cmp.Or(req.MaxTokens, wish.maxOutput, wish.usual); wish.maxOutput > 0 {
			req.MaxTokens = min(req.MaxTokens, wish.maxOutput)
		}
	}
}

// wishesFor are those for a model, at the level effort if that is not empty.
func (a *App) wishesFor(model, effort string) (w wishes) {
	c, m := a.endpoint(), a.figures(model)
	var own modelInfo
	_ = json.Unmarshal(c.ModelInfo[model], &own) // one that cannot be read was told of
	w = wishes{
		effort: cmp.Or(effort, own.Effort, c.Effort), temperature: m.Temperature, maxOutput: cmp.Or(own.MaxOutput, c.MaxOutput),
		byLevel: slices.Contains(m.Efforts, "max") || slices.Contains(m.Efforts, "xhigh"),
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
		w.effort = "" // it is known not to think
	}
	if c.Kind == "anthropic" {
		w.usual = min(m.Output, usualOutput)
	}
	return w
}

// nearestEffort is the level that a model has which is nearest to the one wished
// for, the lesser of two.
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
