package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/core/nearest"
	"coder/internal/host/repofile"
	"coder/internal/model/anthropic"
	"coder/internal/model/catalogue"
	"coder/internal/model/gemini"
	"coder/internal/model/meter"
	"coder/internal/model/openai"
	"coder/internal/model/provider"
	"coder/internal/model/responses"
	"coder/internal/model/scripted"
	"coder/internal/model/textcalls"
	"coder/internal/model/transport"
)

// Models are the models at the endpoint in use: what is known of them, what they cost, and how to ask them.
type Models struct {
	*Archive
	// Play, if set, replaces the configured model.
	Play provider.Provider

	chosen   atomic.Pointer[string]        // the model chosen with /model
	effort   atomic.Pointer[string]        // reasoning effort set by the driver
	switched atomic.Pointer[config.Config] // the settings of the profile chosen with /model
	windows  remembered[heardWindow]       // of models, by the word of their servers
	lists    remembered[[]string]          // of models, by the word of their servers
	beside   provider.Beside               // additional requests to servers in the current session
	blind    provider.Blind                // models that rejected images
	spending spending                      // the user's usage today, if managed settings limit it
	// asked caches the names of the models at an endpoint, for completion.
	asked struct {
		of    string
		names []string
	}
}

// Provider returns the model's provider: the script if there is one, otherwise the configured
// endpoint, with retries and the selected way of calling tools. m counts the cost.
func (a *Models) Provider(m *meter.Meter) (p provider.Provider, err error) {
	c := a.endpoint()
	switch {
	case a.Play != nil:
		p = a.Play
	case a.Options.Script != "":
		p, err = a.readScript()
	case c.BaseURL == "" && a.NeedsTrust("provider."):
		err = &Error{Untrusted, fmt.Errorf("%s is %s, and its own configuration sets the provider; review it, then run: coder trust %[1]s", a.Root, a.Trusted)}
	case c.BaseURL == "" && c.Preset != "":
		err = configf("provider.preset %s needs an address: set %s, or provider.base_url", c.Preset, config.PresetNamed(c.Preset).Bases[0])
	case c.BaseURL == "":
		err = configf("no provider is configured; set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL (see README), run coder setup, or try: coder demo")
	case c.Model == "" && a.Env.Getenv("CODER_MODEL") != "":
		err = configf("no model is set; CODER_MODEL belongs to another endpoint, so use --model NAME (coder models lists the models)")
	case c.Model == "":
		err = configf("no model is set; use --model NAME or CODER_MODEL (coder models lists the models)")
	default:
		if err = a.allowsModel(c.Model); err != nil {
			return nil, err
		}
		if p, err = a.learning(); err == nil {
			p = limited{rejects{p, a}, a, m}
		}
	}
	if err == nil {
		err = a.checkBudget()
	}
	if err != nil {
		return nil, err
	}
	p = provider.Retry(m.Wrap(provider.Steady(provider.Tuned(provider.Sight(p, &a.blind), a.tuning()))), provider.Backoff{Retries: c.MaxRetries, Jitter: rand.Float64, Sleep: a.Env.Sleep})
	p = textcalls.Wrap(p, textcalls.Mode(c.ToolMode), a.learnt())
	return provider.Fallback(p, c.FallbackModels...), nil
}

// CheckProvider returns an error if [Models.Provider] would fail.
func (a *Models) CheckProvider() error {
	_, err := a.Provider(a.newMeter())
	return err
}

// maxNamedFile limits the size of files that the user names.
const maxNamedFile = 64 << 20

// readScript reads the script that plays the model. A relative
// path is relative to the working directory, not to the workspace.
func (a *Models) readScript() (provider.Provider, error) {
	path := a.Options.Script
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Env.Dir, path)
	}
	text, err := repofile.Named(path, maxNamedFile)
	if err != nil {
		return nil, inputf("read the script: %v", err)
	}
	s, err := scripted.Parse(string(text))
	if err != nil {
		return nil, inputf("%s: %v", path, err)
	}
	return scripted.New(s, scripted.Options{}), nil
}

// wire is a client for an API, which may also list models.
type wire interface {
	provider.Provider
	Models(context.Context) ([]transport.Model, error)
	Window(ctx context.Context, model string) int
}

// client returns a client for the endpoint in use.
func (a *Models) client() (wire, error) { return a.clientOf(a.endpoint()) }

// clientOf returns a client for an endpoint.
func (a *Models) clientOf(c config.Provider) (wire, error) {
	if err := a.allowsEndpoint(c.BaseURL); err != nil {
		return nil, err
	}
	ca, proxy, err := network(a.Env, c)
	if err != nil {
		return nil, err
	}
	silence, progress, err := a.idleTimes(c)
	if err != nil {
		return nil, err
	}
	o := transport.Options{
		BaseURL: c.BaseURL, APIKey: c.APIKey, KeyHeader: c.KeyHeader, Headers: c.Headers, CA: ca, Query: c.Query, FreshKey: a.freshKey(c),
		Timeout: time.Duration(c.TimeoutMS) * time.Millisecond, IdleTimeout: silence, ProgressTimeout: progress,
		Proxy: proxy, SendReasoning: c.SendReasoning, UserAgent: "coder/" + Version, Now: a.Env.Now,
	}
	if c.Preset == "llamacpp" {
		o.Server = transport.LlamaCpp
	}
	if o.Cert, o.CertKey, err = a.certificate(c); err != nil {
		return nil, err
	}
	switch c.Kind {
	case "anthropic":
		return anthropic.New(o), nil
	case "responses":
		return responses.New(o), nil
	case "gemini":
		return gemini.New(o), nil
	}
	return openai.New(o), nil
}

// idleTimes returns how long to wait for a reply: in silence, and without progress.
func (a *Models) idleTimes(c config.Provider) (silence, progress time.Duration, err error) {
	silence = time.Duration(c.IdleTimeoutMS) * time.Millisecond
	if progress, err = time.ParseDuration(c.IdleTimeout); err != nil || progress < 0 {
		return 0, 0, configf("%s: provider.idle_timeout is not a duration such as 5m: %q", a.Report.Origin("provider.idle_timeout"), c.IdleTimeout)
	}
	byMS := a.Report.Origin("provider.idle_timeout_ms").Source != "" && a.Report.Origin("provider.idle_timeout").Source == ""
	switch {
	case byMS && silence == 0:
		return 0, 0, nil
	case byMS:
		return silence, max(silence, progress), nil
	case silence == 0 || progress > 0 && progress < silence:
		silence = progress
	}
	return silence, progress, nil
}

func (a *Models) scripted() bool { return a.Options.Script != "" || a.Play != nil }

// ModelName returns the name of the model in use.
func (a *Models) ModelName() string {
	if name := a.chosen.Load(); name != nil {
		return *name
	}
	model := a.endpoint().Model
	if model == "" && a.scripted() {
		return "script"
	}
	return model
}

// settings returns the current settings, including a model chosen in the session.
func (a *Models) settings() []config.Row {
	rows := a.Report.Rows()
	if name := a.chosen.Load(); name != nil {
		i := slices.IndexFunc(rows, func(r config.Row) bool { return r.Key == "provider.model" })
		rows[i].Value, rows[i].Origin = string(jsonx.Must(*name)), config.Origin{Source: "/model"}
	}
	return rows
}

// ModelAssumed reports whether nobody chose the model and it is a vendor's usual one, although
// the address is not the vendor's, such as a gateway's, which may not have that model.
func (a *Models) ModelAssumed() bool {
	c := a.Config.Provider
	return a.chosen.Load() == nil && a.Report.Origin("provider.model").Source == config.UsualModel && !slices.Contains(config.PresetNamed(c.Preset).Addresses, strings.TrimSuffix(c.BaseURL, "/"))
}

// endpoint returns the endpoint in use: the settings', or that of the profile chosen with /model.
func (a *Models) endpoint() config.Provider {
	if c := a.switched.Load(); c != nil {
		return c.Provider
	}
	return a.Config.Provider
}

// live is the current endpoint's provider, with its meter.
type live struct {
	now   atomic.Pointer[provider.Provider]
	meter *meter.Meter
}

func (l *live) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return (*l.now.Load()).Stream(ctx, req)
}

// models are the available models, for /model.
type models struct {
	*Models
	live *live
}

// Switch changes the model from the next turn on, and tries to save it for later sessions. notice
// says why later sessions may not use it. A profile's name selects its endpoint and model.
func (a models) Switch(ctx context.Context, name string, force bool) (notice string, err error) {
	if _, ok := a.Config.Profiles[name]; ok {
		return fmt.Sprintf("the profile is active until the program ends; to start with it, use --profile %s, or set profile in your own settings", name), a.switchProfile(name)
	}
	if err := a.allowsModel(name); err != nil && !a.scripted() {
		return "", err
	}
	unasked, err := a.doubt(ctx, name)
	if err != nil && !force {
		return "", err
	}
	a.chosen.Store(&name)
	if err := a.saveModel(name); err != nil {
		return fmt.Sprintf("the model is active, but the choice could not be saved: %v", err), nil
	}
	if a.scripted() && a.endpoint().BaseURL != "" {
		return fmt.Sprintf("a script plays the model: coder saved the choice without asking the endpoint for %s", oneLine(name)), nil
	}
	if unasked != nil {
		return fmt.Sprintf("the choice is saved, but the endpoint could not be asked for %s: %v", oneLine(name), unasked), nil
	}
	if o := a.Report.Origin("provider.model"); o.OverFiles() || o.Source != "" && o.Source == a.configFile {
		return fmt.Sprintf("the choice is saved, but %s takes precedence at startup", o.Shown()), nil
	}
	return "", nil
}

// doubt returns an error if the endpoint lists its models without this one and the
// settings do not name it either. unasked is why the endpoint could not be asked.
func (a *Models) doubt(ctx context.Context, name string) (unasked, err error) {
	if a.named(name) {
		return nil, nil
	}
	list, err := a.offered(ctx)
	if err != nil {
		return err, nil
	}
	near, missing := a.unlisted(name, list)
	if !missing {
		return nil, nil
	}
	if near != "" {
		return nil, fmt.Errorf("unknown model %s; did you mean %s? (/model %s force uses it anyway)", oneLine(name), oneLine(near), oneLine(name))
	}
	return nil, fmt.Errorf("unknown model %s; /model lists the models (/model %s force uses it anyway)", oneLine(name), oneLine(name))
}

// named reports whether the settings of the endpoint in use name a model.
func (a *Models) named(name string) bool {
	c := a.endpoint()
	_, described := c.ModelInfo[name]
	return described || slices.Contains(slices.Concat(c.Models, c.FallbackModels), name)
}

// unlisted reports whether a model is missing from an endpoint's list, and returns the most
// similar one. With an empty list, no model is missing; nor are those that the settings name.
func (a *Models) unlisted(name string, list []transport.Model) (near string, missing bool) {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	if len(names) == 0 || slices.Contains(names, name) || a.named(name) {
		return "", false
	}
	return nearest.Of(name, names), true
}

// Takes returns an error if the endpoint in use does not have
// a model, or nil if it has it or does not list its models.
func (a *Models) Takes(ctx context.Context, name string) error {
	if a.scripted() || a.endpoint().BaseURL == "" {
		return errors.New("no endpoint could offer it")
	}
	_, err := a.doubt(ctx, name)
	return err
}

// switchProfile switches to a profile's endpoint and model. If they are unusable, nothing changes.
func (a models) switchProfile(name string) error {
	o := a.Options
	o.Profile, o.Provider, o.Model = name, "", ""
	s, err := Load(a.Env, o)
	if err != nil {
		return err
	}
	before, chosen := a.switched.Swap(&s.Config), a.chosen.Swap(&s.Config.Provider.Model)
	p, err := a.Provider(a.live.meter)
	if err != nil {
		a.switched.Store(before)
		a.chosen.Store(chosen)
		return err
	}
	if !a.scripted() { // a script continues
		a.live.now.Store(&p)
	}
	return nil
}

// saveModel writes the model to the project's own settings and leaves the rest
// unchanged. Trust in the project survives the change, because it is the user's.
func (a *Models) saveModel(name string) error {
	if a.Options.Ephemeral {
		return errors.New("--no-session-persistence saves nothing")
	}
	_, err := a.editProject(func(text []byte) ([]byte, error) { return config.Set(text, "provider.model", name) })
	return err
}

// listTime is how long an endpoint may take to list its models.
const listTime = 5 * time.Second

// mostModels limits how many models are listed.
const mostModels = 200

// offered returns the models that the endpoint lists.
func (a *Models) offered(ctx context.Context) ([]transport.Model, error) {
	if a.scripted() || a.endpoint().BaseURL == "" {
		return nil, nil
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	list, err := client.Models(ctx)
	if err == nil {
		a.keepList(a.endpoint(), list)
	}
	return list, err
}

// List returns the available models: the one in use, the settings', and the endpoint's.
func (a models) List(ctx context.Context) (t display.Table, err error) {
	var offered []string
	windows := map[string]int{} // as the endpoint reports
	c := a.endpoint()
	used, _ := a.EndpointInUse()
	own := used.ownServer() // its models have the window that was configured there
	list, err := a.offered(ctx)
	for _, m := range list {
		offered, windows[m.Name] = append(offered, m.Name), m.Window
	}
	names := slices.Concat([]string{a.ModelName()}, c.Models, c.FallbackModels, offered)
	t.Head = display.Words("", "model", "window", "in $/M", "out $/M", "can")
	for i, name := range names {
		if name == "" || slices.Index(names, name) < i {
			continue
		}
		if len(t.Rows) == mostModels {
			t.Rows = append(t.Rows, display.Words("", fmt.Sprintf("and %d more", len(names)-i)))
			break
		}
		m := a.figures(name)
		window, known := a.window(name)
		context := strconv.Itoa(cmp.Or(windows[name], window))
		_, written := c.ModelInfo[name]
		if told := max(windows[name], a.servedWindow(name)) > 0; !told && (!known || own && !written) { // an assumption
			context += "?"
		}
		var can []string
		for _, ability := range []struct {
			has  bool
			name string
		}{{m.Tools, "tools"}, {m.Vision, "pictures"}, {m.Reasoning, "thinking"}} {
			if ability.has {
				can = append(can, ability.name)
			}
		}
		if len(offered) > 0 && !slices.Contains(offered, name) {
			can = []string{"not in the endpoint's list"}
		}
		mark, in, out := "", "?", "?"
		if i == 0 {
			mark = "*"
		}
		if price := a.price(a.endpoint(), name); price.Known {
			in, out = fmt.Sprintf("%.2f", price.In), fmt.Sprintf("%.2f", price.Out)
		}
		t.Rows = append(t.Rows, slices.Concat(display.Data(mark, oneLine(name), context, in, out), display.Words(strings.Join(can, ", "))))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Config.Profiles)) {
		t.Rows = append(t.Rows, slices.Concat(display.Data("", oneLine(name)), display.Words("profile")))
	}
	return t, err
}

// figures returns what is known about a model; the user's entries take
// precedence. Unreadable entries were reported when the settings were checked.
func (a *Models) figures(name string) catalogue.Model {
	var own []catalogue.Model
	for name, raw := range a.endpoint().ModelInfo {
		var i modelInfo
		if json.Unmarshal(raw, &i) != nil {
			continue
		}
		m := catalogue.Model{
			Name: name, Context: i.Context, Output: i.Output, Vision: i.Vision, Tools: i.Tools, Reasoning: i.Reasoning,
			Refuses: i.Refuses, Efforts: i.Efforts, Temperature: i.Temperature,
		}
		if i.PriceIn != nil && i.PriceOut != nil {
			m.Price = catalogue.Price{In: *i.PriceIn, Out: *i.PriceOut, CachedIn: i.PriceCached, CacheWrite: i.PriceCacheWrite, Known: true}
		}
		own = append(own, m)
	}
	m, _ := catalogue.Lookup(name, own...)
	return m
}

// price returns a model's price at an endpoint. The user's own server is free, unless they set a price.
func (a *Models) price(at config.Provider, model string) catalogue.Price {
	if _, own := a.endpoint().ModelInfo[model]; !own && config.PresetNamed(at.Preset).Local {
		return catalogue.Price{Known: true}
	}
	return a.figures(model).Price
}

// sees reports whether the model accepts images: it is known to, or the user says so.
func (a *Models) sees() bool { return a.endpoint().Vision || a.figures(a.ModelName()).Vision }

// modelInfo is an entry of provider.model_info.
type modelInfo struct {
	Context         int      `json:"context"`
	Output          int      `json:"output"`
	PriceIn         *float64 `json:"price_in"`
	PriceOut        *float64 `json:"price_out"`
	PriceCached     float64  `json:"price_cached"`
	PriceCacheWrite float64  `json:"price_cache_write"`
	Vision          bool     `json:"vision"`
	Tools           bool     `json:"tools"`
	Reasoning       bool     `json:"reasoning"`
	Refuses         []string `json:"refuses"`
	Efforts         []string `json:"efforts"`
	Temperature     *float64 `json:"temperature"`
	Effort          string   `json:"effort"`     // these two are the user's choices,
	MaxOutput       int      `json:"max_output"` // not properties of the model
}

// checkModelInfo rejects unreadable entries.
func (a *Site) checkModelInfo() error {
	for name, raw := range a.Config.Provider.ModelInfo {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		var i modelInfo
		if err := d.Decode(&i); err != nil {
			return configf("%s: provider.model_info.%s: %w", a.Report.Origin(config.Entry("provider.model_info", name)), name, jsonx.Misfit(err, i))
		}
		if (i.PriceIn == nil) != (i.PriceOut == nil) {
			return configf("%s: provider.model_info.%s: price_in and price_out must be set together", a.Report.Origin(config.Entry("provider.model_info", name)), name)
		}
	}
	return nil
}
