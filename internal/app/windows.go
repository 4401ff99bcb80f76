package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"coder/internal/config"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
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
	at := modelAt(a.endpoint().BaseURL, model)
	a.windows.mu.Lock()
	defer a.windows.mu.Unlock()
	a.windows.load(a.windowsFile())
	return max(a.windows.known[at], 0)
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
			a.windows.keep(a.windowsFile(), modelAt(base, model), untold)
		}
		return tokens
	}
	patience := time.Duration(0)
	u, err := url.Parse(base)
	if err == nil && transport.Local(u) && a.windowsFile() != "" && !a.windows.asked(a.windowsFile(), modelAt(base, a.ModelName())) {
		patience = firstContact // where nothing is kept it would wait at every start
	}
	return provider.Learn(client, provider.Lookup{Ask: ask, Patience: patience, Keep: func(model string, tokens int) {
		a.windows.keep(a.windowsFile(), modelAt(base, model), tokens)
	}}), nil
}

// firstContact is how long the very first request to a server nearby waits to hear
// how much it takes.
const firstContact = 200 * time.Millisecond

// windowsFile is where windows are remembered; "" if nothing is to be kept.
func (a *App) windowsFile() string {
	if a.Home == "" || a.Options.Ephemeral {
		return ""
	}
	return filepath.Join(a.Home, "windows.json")
}

// modelAt names a model at a server. What may be secret in an address is left out.
func modelAt(base, model string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/") + " " + model
}

// windows are the windows of models by the word of their servers. They outlive
// the program: what a server said last is the best guess until it is asked.
type windows struct {
	mu    sync.Mutex // guards the fields below
	read  bool
	known map[string]int
}

// mostWindows is how many are remembered, and mostOfWindows how many bytes.
const (
	mostWindows   = 500
	mostOfWindows = 1 << 20
)

// untold stands for the window of a server that was asked and did not say.
const untold = -1

// asked reports whether a place was ever asked.
func (w *windows) asked(file, place string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load(file)
	return w.known[place] != 0
}

// load reads what earlier processes learnt, once. What cannot be read is learnt
// again.
func (w *windows) load(file string) {
	if w.read {
		return
	}
	w.read = true
	if text, err := repofile.Own(file, mostOfWindows); file != "" && err == nil {
		_ = json.Unmarshal(text, &w.known) // what is of another form is none of ours
	}
	for place, n := range w.known {
		if n <= 0 && n != untold {
			delete(w.known, place)
		}
	}
}

// keep remembers the window of a place. That it cannot be written is no harm: it
// is learnt again.
func (w *windows) keep(file, place string, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load(file)
	if w.known[place] == tokens || place == "" || tokens == untold && w.known[place] > 0 {
		return
	}
	if w.known == nil || len(w.known) >= mostWindows {
		w.known = make(map[string]int)
	}
	w.known[place] = tokens
	text, err := json.MarshalIndent(w.known, "", "  ")
	if err != nil || file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = atomicfile.Write(file, append(text, '\n'), 0o600)
}
