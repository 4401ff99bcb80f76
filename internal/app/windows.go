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

// modelWindow returns a model's window in tokens, and whether it is known or only assumed: from
// its server, now or last time, otherwise from the user, otherwise from the catalogue.
func (a *Models) modelWindow(model string) (tokens int, known bool) {
	if n := a.servedWindow(model); n > 0 {
		return n, true
	}
	m := a.modelFigures(model)
	return m.Context, !m.Guessed
}

// servedWindow returns the window that the server in use reported for a model; 0 if it reported none.
func (a *Models) servedWindow(model string) int {
	if a.Replay != nil {
		return a.Replay.Window()
	}
	if a.isScripted() {
		return 0
	}
	return max(a.windows.get(a.factsFile(windowsFile), modelKey(a.endpoint().BaseURL, model)).Tokens, 0)
}

// maxRequestTokens returns how many tokens a request may have: the user's limit, but at most the server's window.
func (a *Models) maxRequestTokens() int {
	window, _ := a.modelWindow(a.ModelName())
	limit := a.Config.Runtime.ContextTokenLimit
	if served := a.servedWindow(a.ModelName()); limit <= 0 || served > 0 && served < limit {
		return window
	}
	return limit
}

// raiseWindowHint returns how to get a larger window from the server in use.
func (a *Models) raiseWindowHint() string {
	c := a.endpoint()
	p := config.FindPreset(c.Preset)
	if p.RaiseWindowHint == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", p.Title, p.RaiseWindowHint)
}

// windowLookupTimeout limits how long a server may take to report a window.
const windowLookupTimeout = 3 * time.Second

// learningProvider returns the configured endpoint's provider. It asks the server for the model's window
// if that may differ from the known one: the server is the user's own, or the model is unknown.
func (a *Models) learningProvider() (provider.Provider, error) {
	client, err := a.newClient()
	if err != nil {
		return nil, err
	}
	base := a.endpoint().BaseURL
	return provider.LearnWindows(client, provider.WindowLookup{
		IsDue: func(model string, estimate int) bool { return a.needsWindowLookup(base, model, estimate) },
		Ask: func(ctx context.Context, model string) int {
			ctx, stop := context.WithTimeout(ctx, windowLookupTimeout)
			defer stop()
			return client.Window(ctx, model)
		},
		Save:        func(model string, tokens int) { a.saveWindow(base, model, tokens) },
		RecordReply: func(model, by string) bool { return a.recordReplyModel(base, model, by) },
		Background:  &a.extraRequests,
	}), nil
}

// reportedWindow is what a server last reported about a model's window.
type reportedWindow struct {
	Tokens  int       `json:"tokens"` // 0 if the server did not report it
	Seen    time.Time `json:"seen"`
	Model   string    `json:"by,omitempty"` // the model that replied, as the server reported
	current bool      // reported in this process
}

// UnmarshalJSON also reads a plain number, which earlier versions wrote.
func (w *reportedWindow) UnmarshalJSON(text []byte) error {
	type plain reportedWindow
	if json.Unmarshal(text, &w.Tokens) == nil {
		return nil
	}
	return json.Unmarshal(text, (*plain)(w))
}

// windowMaxAge is how long coder does not ask a server again, whether or not it reported a window.
const windowMaxAge = 24 * time.Hour

// maxRememberedShare is the share of a remembered window that a request may fill before
// coder asks the server again: the user may have raised the window since.
const maxRememberedShare = 0.5

// needsWindowLookup reports whether to ask a server for a model's
// window, alongside a request of about estimate tokens.
func (a *Models) needsWindowLookup(base, model string, estimate int) bool {
	u, err := url.Parse(base)
	if err != nil || !transport.IsLocal(u) && !a.modelFigures(model).Guessed {
		return false
	}
	w := a.windows.get(a.factsFile(windowsFile), modelKey(base, model))
	age := a.Env.Now().Sub(w.Seen)
	return age < 0 || age >= windowMaxAge || !w.current && w.Tokens > 0 &&
		float64(estimate) > maxRememberedShare*float64(w.Tokens)
}

// recordReplyModel records which model replied, and reports whether another
// one did before: the server may serve another model under the same name.
func (a *Models) recordReplyModel(base, model, by string) (other bool) {
	a.windows.update(a.factsFile(windowsFile), modelKey(base, model), maxWindows, func(w *reportedWindow) bool {
		was := w.Model
		w.Model = cmp.Or(by, model)
		other = was != "" && was != w.Model
		return !w.Seen.IsZero() && was != w.Model
	})
	return other
}

// modelKey returns a name for a model at a server. It omits possible secrets in the address.
func modelKey(base, model string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/") + " " + model
}

// windowsFile holds models' windows as their servers reported them; maxWindows limits their number.
const (
	windowsFile = "windows.json"
	maxWindows  = 500
)

// saveWindow stores a model's window as the server reported
// it. A missing report does not remove the stored one.
func (a *Models) saveWindow(base, model string, tokens int) {
	a.windows.update(a.factsFile(windowsFile), modelKey(base, model), maxWindows, func(w *reportedWindow) bool {
		w.Tokens, w.Seen, w.current = max(cmp.Or(tokens, w.Tokens), 0), a.Env.Now(), true
		return true
	})
}
