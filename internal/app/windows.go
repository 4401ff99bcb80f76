package app

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"coder/internal/config"
	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

// window is how many tokens a model takes, and whether that is known or only
// assumed: by the word of its server, now or the last time, else of the person,
// else of the catalogue.
func (a *App) window(model string) (tokens int, known bool) {
	if n := a.servedWindow(model); n > 0 {
		return n, true
	}
	m := a.figures(model)
	return m.Context, !m.Guessed
}

// servedWindow is what the server in use said that a model takes; 0 if it did
// not say.
func (a *App) servedWindow(model string) int {
	if a.Recorded != nil {
		return a.Recorded.Run().Window
	}
	if a.scripted() {
		return 0
	}
	return max(a.windows.of(a.remembers(windowsFile), modelAt(a.endpoint().BaseURL, model)), 0)
}

// contextLimit is how many tokens a request may have: what the person says, but
// no more than the server takes.
func (a *App) contextLimit() int {
	window, _ := a.window(a.ModelName())
	limit := a.Config.Runtime.ContextTokenLimit
	if served := a.servedWindow(a.ModelName()); limit <= 0 || served > 0 && served < limit {
		return window
	}
	return limit
}

// raiseWindow is how the server in use is made to take more.
func (a *App) raiseWindow() string {
	c := a.endpoint()
	p := config.PresetNamed(c.Preset)
	if p.Raise == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", p.Title, p.Raise)
}

// lookTime is how long a server may take to say how many tokens it takes.
const lookTime = 3 * time.Second

// learning is the configured endpoint, which is asked beside the first request
// how many tokens the model takes, if that can be otherwise than is known: it is
// a server of the person's own, or nobody knows the model.
func (a *App) learning() (provider.Provider, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	base := a.endpoint().BaseURL
	ask := func(ctx context.Context, model string) int {
		u, err := url.Parse(base)
		if err != nil || !transport.Local(u) && !a.figures(model).Guessed {
			return 0
		}
		ctx, stop := context.WithTimeout(ctx, lookTime)
		defer stop()
		tokens := client.Window(ctx, model)
		if tokens == 0 && ctx.Err() == nil {
			a.keepWindow(base, model, untold)
		}
		return tokens
	}
	patience := time.Duration(0)
	u, err := url.Parse(base)
	file := a.remembers(windowsFile)
	if err == nil && transport.Local(u) && file != "" && a.windows.of(file, modelAt(base, a.ModelName())) == 0 {
		patience = firstContact // where nothing is kept it would wait at every start
	}
	return provider.Learn(client, provider.Lookup{Ask: ask, Patience: patience, Keep: func(model string, tokens int) {
		a.keepWindow(base, model, tokens)
	}}), nil
}

// firstContact is how long the very first request to a server nearby waits to hear
// how much it takes.
const firstContact = 200 * time.Millisecond

// modelAt names a model at a server. What may be secret in an address is left out.
func modelAt(base, model string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/") + " " + model
}

// windowsFile holds the windows of models by the word of their servers; mostWindows is
// how many.
const (
	windowsFile = "windows.json"
	mostWindows = 500
)

// untold stands for the window of a server that was asked and did not say.
const untold = -1

// keepWindow remembers what a server said that a model takes.
func (a *App) keepWindow(base, model string, tokens int) {
	a.windows.keep(a.remembers(windowsFile), modelAt(base, model), tokens, mostWindows, func(was int) bool { return was == tokens || tokens == untold && was > 0 })
}
