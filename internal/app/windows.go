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

// window returns a model's window in tokens, and whether it is known or only assumed: from
// its server, now or last time, otherwise from the user, otherwise from the catalogue.
func (a *Models) window(model string) (tokens int, known bool) {
	if n := a.servedWindow(model); n > 0 {
		return n, true
	}
	m := a.figures(model)
	return m.Context, !m.Guessed
}

// servedWindow returns the window that the server in use reported for a model; 0 if it reported none.
func (a *Models) servedWindow(model string) int {
	if a.Recorded != nil {
		return a.Recorded.Window()
	}
	if a.scripted() {
		return 0
	}
	return max(a.windows.of(a.remembers(windowsFile), modelAt(a.endpoint().BaseURL, model)).Tokens, 0)
}

// contextLimit returns how many tokens a request may have: the user's limit, but at most the server's window.
func (a *Models) contextLimit() int {
	window, _ := a.window(a.ModelName())
	limit := a.Config.Runtime.ContextTokenLimit
	if served := a.servedWindow(a.ModelName()); limit <= 0 || served > 0 && served < limit {
		return window
	}
	return limit
}

// raiseWindow returns how to get a larger window from the server in use.
func (a *Models) raiseWindow() string {
	c := a.endpoint()
	p := config.PresetNamed(c.Preset)
	if p.Raise == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", p.Title, p.Raise)
}

// lookTime limits how long a server may take to report a window.
const lookTime = 3 * time.Second

// learning returns the configured endpoint's provider. It asks the server for the model's window
// if that may differ from the known one: the server is the user's own, or the model is unknown.
func (a *Models) learning() (provider.Provider, error) {
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

// heardWindow is what a server last reported about a model's window.
type heardWindow struct {
	Tokens int       `json:"tokens"` // 0 if the server did not report it
	Seen   time.Time `json:"seen"`
	By     string    `json:"by,omitempty"` // the model that replied, as the server reported
	now    bool      // reported in this process
}

// UnmarshalJSON also reads a plain number, which earlier versions wrote.
func (w *heardWindow) UnmarshalJSON(text []byte) error {
	type plain heardWindow
	if json.Unmarshal(text, &w.Tokens) == nil {
		return nil
	}
	return json.Unmarshal(text, (*plain)(w))
}

// windowAge is how long coder does not ask a server again, whether or not it reported a window.
const windowAge = 24 * time.Hour

// tight is the share of a remembered window that a request may fill before
// coder asks the server again: the user may have raised the window since.
const tight = 0.5

// windowDue reports whether to ask a server for a model's
// window, alongside a request of about estimate tokens.
func (a *Models) windowDue(base, model string, estimate int) bool {
	u, err := url.Parse(base)
	if err != nil || !transport.Local(u) && !a.figures(model).Guessed {
		return false
	}
	w := a.windows.of(a.remembers(windowsFile), modelAt(base, model))
	age := a.Env.Now().Sub(w.Seen)
	return age < 0 || age >= windowAge || !w.now && w.Tokens > 0 && float64(estimate) > tight*float64(w.Tokens)
}

// otherReplied records which model replied, and reports whether another
// one did before: the server may serve another model under the same name.
func (a *Models) otherReplied(base, model, by string) (other bool) {
	a.windows.change(a.remembers(windowsFile), modelAt(base, model), mostWindows, func(w *heardWindow) bool {
		was := w.By
		w.By = cmp.Or(by, model)
		other = was != "" && was != w.By
		return !w.Seen.IsZero() && was != w.By
	})
	return other
}

// modelAt returns a name for a model at a server. It omits possible secrets in the address.
func modelAt(base, model string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/") + " " + model
}

// windowsFile holds models' windows as their servers reported them; mostWindows limits their number.
const (
	windowsFile = "windows.json"
	mostWindows = 500
)

// keepWindow stores a model's window as the server reported
// it. A missing report does not remove the stored one.
func (a *Models) keepWindow(base, model string, tokens int) {
	a.windows.change(a.remembers(windowsFile), modelAt(base, model), mostWindows, func(w *heardWindow) bool {
		w.Tokens, w.Seen, w.now = max(cmp.Or(tokens, w.Tokens), 0), a.Env.Now(), true
		return true
	})
}
