package app

import (
	"cmp"
	"context"
	"encoding/json"
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
		return a.Recorded.Window()
	}
	if a.scripted() {
		return 0
	}
	return max(a.windows.of(a.remembers(windowsFile), modelAt(a.endpoint().BaseURL, model)).Tokens, 0)
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

// learning is the configured endpoint. Its server is asked how many tokens the model takes,
// if that can be otherwise than is known: it is a server of the person's own, or nobody
// knows the model.
func (a *App) learning() (provider.Provider, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	base := a.endpoint().BaseURL
	return provider.Learn(client, provider.Lookup{
		Due: func(model string, estimate int) bool { return a.windowDue(base, model, estimate) },
		Ask: func(ctx context.Context, model string) int {
			ctx, stop := context.WithTimeout(ctx, lookTime)
			defer stop()
			return client.Window(ctx, model)
		},
		Keep:    func(model string, tokens int) { a.keepWindow(base, model, tokens) },
		Replied: func(model, by string) bool { return a.otherReplied(base, model, by) },
		Beside:  &a.beside,
	}), nil
}

// heardWindow is what a server last said of the window of a model.
type heardWindow struct {
	Tokens int       `json:"tokens"` // 0 if the server did not say
	Seen   time.Time `json:"seen"`
	By     string    `json:"by,omitempty"` // the model that replied, by the server's word
	now    bool      // this process heard it
}

// UnmarshalJSON also reads a number alone, which earlier versions kept.
func (w *heardWindow) UnmarshalJSON(text []byte) error {
	type plain heardWindow
	if json.Unmarshal(text, &w.Tokens) == nil {
		return nil
	}
	return json.Unmarshal(text, (*plain)(w))
}

// windowAge is how long a server is not asked again, whether it said its window or not.
const windowAge = 24 * time.Hour

// tight is the part of a remembered window that a request may fill before the server is
// asked again: the person may have raised the window since.
const tight = 0.5

// windowDue reports whether a server should be asked for the window of a model, beside a
// request of about estimate tokens.
func (a *App) windowDue(base, model string, estimate int) bool {
	u, err := url.Parse(base)
	if err != nil || !transport.Local(u) && !a.figures(model).Guessed {
		return false
	}
	w := a.windows.of(a.remembers(windowsFile), modelAt(base, model))
	age := a.Env.Now().Sub(w.Seen)
	return age < 0 || age >= windowAge || !w.now && w.Tokens > 0 && float64(estimate) > tight*float64(w.Tokens)
}

// otherReplied notes which model replied, and reports whether another one did before: the
// server may serve another model under the same name.
func (a *App) otherReplied(base, model, by string) (other bool) {
	a.windows.change(a.remembers(windowsFile), modelAt(base, model), mostWindows, func(w *heardWindow) bool {
		was := w.By
		w.By = cmp.Or(by, model)
		other = was != "" && was != w.By
		return !w.Seen.IsZero() && was != w.By
	})
	return other
}

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

// keepWindow remembers what a server said that a model takes. A server that does not say
// takes back nothing.
func (a *App) keepWindow(base, model string, tokens int) {
	a.windows.change(a.remembers(windowsFile), modelAt(base, model), mostWindows, func(w *heardWindow) bool {
		w.Tokens, w.Seen, w.now = max(cmp.Or(tokens, w.Tokens), 0), a.Env.Now(), true
		return true
	})
}
