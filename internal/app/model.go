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
	"coder/internal/core/message"
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
	// ScriptedProvider, if set, replaces the configured model.
	ScriptedProvider provider.Provider

	chosenModel    atomic.Pointer[string]        // the model chosen with /model
	effort         atomic.Pointer[string]        // reasoning effort set by the driver
	profileConfig  atomic.Pointer[config.Config] // the settings of the profile chosen with /model
	windows        serverFacts[reportedWindow]   // of models, by the word of their servers
	modelLists     serverFacts[[]string]         // of models, by the word of their servers
	extraRequests  provider.Background           // additional requests to servers in the current session
	imageRejecters provider.ImageRefusals        // models that rejected images
	spending       dailySpending                 // the user's usage today, if managed settings limit it
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
	case a.ScriptedProvider != nil:
		p = a.ScriptedProvider
	case a.Options.Script != "":
		p, err = a.readScript()
	case c.BaseURL == "" && a.NeedsTrust("provider."):
		err = &Error{KindUntrusted,
			message.Errorf("%s is %s, and its own configuration sets the provider; review it, then run: coder trust %[1]s",
				a.Root,
				a.Trusted)}
	case c.BaseURL == "" && c.Preset != "":
		err = configErrorf("provider.preset %s needs an address: set %s, or provider.base_url", c.Preset,
			config.FindPreset(c.Preset).AddressVars[0])
	case c.BaseURL == "":
		err = configErrorf("no provider is configured; set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL (see README), run coder setup, or try: coder demo")
	case c.Model == "" && a.Env.Getenv("CODER_MODEL") != "":
		err = configErrorf("no model is set; CODER_MODEL belongs to another endpoint, so use --model NAME (coder models lists the models)")
	case c.Model == "":
		err = configErrorf("no model is set; use --model NAME or CODER_MODEL (coder models lists the models)")
	default:
		if err = a.checkModel(c.Model); err != nil {
			return nil, err
		}
		if p, err = a.learningProvider(); err == nil {
			p = managedProvider{keySourceProvider{p, a}, a, m}
		}
	}
	if err == nil {
		err = a.checkBudget()
	}
	if err != nil {
		return nil, err
	}
	p = provider.Retry(m.Wrap(provider.GuardReply(provider.MapRequests(provider.ImageFallback(p, &a.imageRejecters),
		a.requestTuner()))), provider.Backoff{Retries: c.MaxRetries, Jitter: rand.Float64, Sleep: a.Env.Sleep})
	p = textcalls.Wrap(p, textcalls.Mode(c.ToolMode), a.newLearnedModels())
	return provider.Fallback(p, c.FallbackModels...), nil
}

// CheckProvider returns an error if [Models.Provider] would fail.
func (a *Models) CheckProvider() error {
	_, err := a.Provider(a.newMeter())
	return err
}

// maxUserFile limits the size of files that the user names.
const maxUserFile = 64 << 20

// readScript reads the script that plays the model. A relative
// path is relative to the working directory, not to the workspace.
func (a *Models) readScript() (provider.Provider, error) {
	path := a.Options.Script
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Env.Dir, path)
	}
	text, err := repofile.ReadNamed(path, maxUserFile)
	if err != nil {
		return nil, inputErrorf("read the script: %v", err)
	}
	s, err := scripted.Parse(string(text))
	if err != nil {
		return nil, inputErrorf("%s: %v", path, err)
	}
	return scripted.New(s, scripted.Options{}), nil
}

// apiClient is a client for an API, which may also list models.
type apiClient interface {
	provider.Provider
	Models(context.Context) ([]transport.Model, error)
	Window(ctx context.Context, model string) int
}

// newClient returns a client for the endpoint in use.
func (a *Models) newClient() (apiClient, error) { return a.newClientFor(a.endpoint()) }

// newClientFor returns a client for an endpoint.
func (a *Models) newClientFor(c config.Provider) (apiClient, error) {
	if err := a.checkEndpoint(c.BaseURL); err != nil {
		return nil, err
	}
	ca, proxy, err := network(a.Env, c)
	if err != nil {
		return nil, err
	}
	silence, progress, err := a.idleTimeouts(c)
	if err != nil {
		return nil, err
	}
	o := transport.Options{
		BaseURL: c.BaseURL, APIKey: c.APIKey, KeyHeader: c.KeyHeader, Headers: c.Headers, CA: ca, Query: c.Query,
		FreshKey: a.keyReader(c),
		Timeout:  time.Duration(c.TimeoutMS) * time.Millisecond, IdleTimeout: silence, ProgressTimeout: progress,
		Proxy: proxy, SendReasoning: c.SendReasoning, UserAgent: "coder/" + Version, Now: a.Env.Now,
	}
	if c.Preset == "llamacpp" {
		o.Server = transport.LlamaCpp
	}
	if o.Cert, o.CertKey, err = a.readCertificate(c); err != nil {
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

// idleTimeouts returns how long to wait for a reply: in silence, and without progress.
func (a *Models) idleTimeouts(c config.Provider) (silence, progress time.Duration, err error) {
	silence = time.Duration(c.IdleTimeoutMS) * time.Millisecond
	if progress, err = time.ParseDuration(c.IdleTimeout); err != nil || progress < 0 {
		return 0, 0, configErrorf("%s: provider.idle_timeout is not a duration such as 5m: %q",
			a.Report.Origin("provider.idle_timeout"), c.IdleTimeout)
	}
	byMS := a.Report.Origin("provider.idle_timeout_ms").Source != "" &&
		a.Report.Origin("provider.idle_timeout").Source == ""
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

func (a *Models) isScripted() bool { return a.Options.Script != "" || a.ScriptedProvider != nil }

// ModelName returns the name of the model in use.
func (a *Models) ModelName() string {
	if name := a.chosenModel.Load(); name != nil {
		return *name
	}
	model := a.endpoint().Model
	if model == "" && a.isScripted() {
		return "script"
	}
	return model
}

// settings returns the current settings, including a model chosen in the session.
func (a *Models) settings() []config.Row {
	rows := a.Report.Rows()
	if name := a.chosenModel.Load(); name != nil {
		i := slices.IndexFunc(rows, func(r config.Row) bool { return r.Key == "provider.model" })
		rows[i].Value, rows[i].Origin = string(jsonx.MustMarshal(*name)), config.Origin{Source: "/model"}
	}
	return rows
}

// IsModelAssumed reports whether nobody chose the model and it is a vendor's usual one, although
// the address is not the vendor's, such as a gateway's, which may not have that model.
func (a *Models) IsModelAssumed() bool {
	c := a.Config.Provider
	return a.chosenModel.Load() == nil && a.Report.Origin("provider.model").Source == config.DefaultModelSource &&
		!slices.Contains(config.FindPreset(c.Preset).Addresses, strings.TrimSuffix(c.BaseURL, "/"))
}

// endpoint returns the endpoint in use: the settings', or that of the profile chosen with /model.
func (a *Models) endpoint() config.Provider {
	if c := a.profileConfig.Load(); c != nil {
		return c.Provider
	}
	return a.Config.Provider
}

// liveProvider is the current endpoint's provider, with its meter.
type liveProvider struct {
	current atomic.Pointer[provider.Provider]
	meter   *meter.Meter
}

func (l *liveProvider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return (*l.current.Load()).Stream(ctx, req)
}

// modelSwitcher are the available models, for /model.
type modelSwitcher struct {
	*Models
	live *liveProvider
}

// Switch changes the model from the next turn on, and tries to save it for later sessions. notice
// says why later sessions may not use it. A profile's name selects its endpoint and model.
func (a modelSwitcher) Switch(ctx context.Context, name string, force bool) (notice string, err error) {
	if _, ok := a.Config.Profiles[name]; ok {
		return fmt.Sprintf("the profile is active until the program ends; to start with it, use --profile %s, or set profile in your own settings", name), a.switchProfile(name)
	}
	if err := a.checkModel(name); err != nil && !a.isScripted() {
		return "", err
	}
	unasked, err := a.checkListed(ctx, name)
	if err != nil && !force {
		return "", err
	}
	a.chosenModel.Store(&name)
	if err := a.saveModel(name); err != nil {
		return fmt.Sprintf("the model is active, but the choice could not be saved: %v", err), nil
	}
	if a.isScripted() && a.endpoint().BaseURL != "" {
		return fmt.Sprintf("a script plays the model: coder saved the choice without asking the endpoint for %s",
			singleLine(name)), nil
	}
	if unasked != nil {
		return fmt.Sprintf("the choice is saved, but the endpoint could not be asked for %s: %v", singleLine(name),
			unasked), nil
	}
	if o := a.Report.Origin("provider.model"); o.OverridesFiles() || o.Source != "" && o.Source == a.configFile {
		return fmt.Sprintf("the choice is saved, but %s takes precedence at startup", o.DisplayText()), nil
	}
	return "", nil
}

// checkListed returns an error if the endpoint lists its models without this one and the
// settings do not name it either. unasked is why the endpoint could not be asked.
func (a *Models) checkListed(ctx context.Context, name string) (unasked, err error) {
	if a.isModelConfigured(name) {
		return nil, nil
	}
	list, err := a.fetchModels(ctx)
	if err != nil {
		return err, nil
	}
	near, missing := a.findUnlisted(name, list)
	if !missing {
		return nil, nil
	}
	if near != "" {
		return nil, message.Errorf("unknown model %s; did you mean %s? (/model %s force uses it anyway)",
			singleLine(name),
			singleLine(near), singleLine(name))
	}
	return nil, message.Errorf("unknown model %s; /model lists the models (/model %s force uses it anyway)",
		singleLine(name),
		singleLine(name))
}

// isModelConfigured reports whether the settings of the endpoint in use name a model.
func (a *Models) isModelConfigured(name string) bool {
	c := a.endpoint()
	_, described := c.ModelInfo[name]
	return described || slices.Contains(slices.Concat(c.Models, c.FallbackModels), name)
}

// findUnlisted reports whether a model is missing from an endpoint's list, and returns the most
// similar one. With an empty list, no model is missing; nor are those that the settings name.
func (a *Models) findUnlisted(name string, list []transport.Model) (near string, missing bool) {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	if len(names) == 0 || slices.Contains(names, name) || a.isModelConfigured(name) {
		return "", false
	}
	return nearest.Find(name, names), true
}

// CheckModelExists returns an error if the endpoint in use does not have
// a model, or nil if it has it or does not list its models.
func (a *Models) CheckModelExists(ctx context.Context, name string) error {
	if a.isScripted() || a.endpoint().BaseURL == "" {
		return errors.New("no endpoint could offer it")
	}
	_, err := a.checkListed(ctx, name)
	return err
}

// switchProfile switches to a profile's endpoint and model. If they are unusable, nothing changes.
func (a modelSwitcher) switchProfile(name string) error {
	o := a.Options
	o.Profile, o.Provider, o.Model = name, "", ""
	s, err := Load(a.Env, o)
	if err != nil {
		return err
	}
	before, chosen := a.profileConfig.Swap(&s.Config), a.chosenModel.Swap(&s.Config.Provider.Model)
	p, err := a.Provider(a.live.meter)
	if err != nil {
		a.profileConfig.Store(before)
		a.chosenModel.Store(chosen)
		return err
	}
	if !a.isScripted() { // a script continues
		a.live.current.Store(&p)
	}
	return nil
}

// saveModel writes the model to the project's own settings and leaves the rest
// unchanged. Trust in the project survives the change, because it is the user's.
func (a *Models) saveModel(name string) error {
	if a.Options.Ephemeral {
		return errors.New("--no-session-persistence saves nothing")
	}
	_, err := a.editProject(func(text []byte) ([]byte, error) { return config.SetValue(text, "provider.model", name) })
	return err
}

// listModelsTimeout is how long an endpoint may take to list its models.
const listModelsTimeout = 5 * time.Second

// maxModels limits how many models are listed.
const maxModels = 200

// fetchModels returns the models that the endpoint lists.
func (a *Models) fetchModels(ctx context.Context) ([]transport.Model, error) {
	if a.isScripted() || a.endpoint().BaseURL == "" {
		return nil, nil
	}
	client, err := a.newClient()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, listModelsTimeout)
	defer stop()
	list, err := client.Models(ctx)
	if err == nil {
		a.saveModelList(a.endpoint(), list)
	}
	return list, err
}

// List returns the available models: the one in use, the settings', and the endpoint's.
func (a modelSwitcher) List(ctx context.Context) (t display.Table, err error) {
	var offered []string
	windows := map[string]int{} // as the endpoint reports
	c := a.endpoint()
	used, _ := a.CurrentEndpoint()
	own := used.isLocalServer() // its models have the window that was configured there
	list, err := a.fetchModels(ctx)
	for _, m := range list {
		offered, windows[m.Name] = append(offered, m.Name), m.Window
	}
	names := slices.Concat([]string{a.ModelName()}, c.Models, c.FallbackModels, offered)
	t.Header = display.TextCells("", "model", "window", "in $/M", "out $/M", "can")
	for i, name := range names {
		if name == "" || slices.Index(names, name) < i {
			continue
		}
		if len(t.Rows) == maxModels {
			t.Rows = append(t.Rows, display.TextCells("", fmt.Sprintf("and %d more", len(names)-i)))
			break
		}
		m := a.modelFigures(name)
		window, known := a.modelWindow(name)
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
		if price := a.modelPrice(a.endpoint(), name); price.Known {
			in, out = fmt.Sprintf("%.2f", price.In), fmt.Sprintf("%.2f", price.Out)
		}
		t.Rows = append(t.Rows, slices.Concat(display.DataCells(mark, singleLine(name), context, in, out),
			display.TextCells(strings.Join(can, ", "))))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Config.Profiles)) {
		t.Rows = append(t.Rows, slices.Concat(display.DataCells("", singleLine(name)), display.TextCells("profile")))
	}
	return t, err
}

// modelFigures returns what is known about a model; the user's entries take
// precedence. Unreadable entries were reported when the settings were checked.
func (a *Models) modelFigures(name string) catalogue.Model {
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
			m.Price = catalogue.Price{In: *i.PriceIn, Out: *i.PriceOut, CachedIn: i.PriceCached, CacheWrite: i.PriceCacheWrite,
				Known: true}
		}
		own = append(own, m)
	}
	m, _ := catalogue.Lookup(name, own...)
	return m
}

// modelPrice returns a model's price at an endpoint. The user's own server is free, unless they set a price.
func (a *Models) modelPrice(at config.Provider, model string) catalogue.Price {
	if _, own := a.endpoint().ModelInfo[model]; !own && config.FindPreset(at.Preset).Local {
		return catalogue.Price{Known: true}
	}
	return a.modelFigures(model).Price
}

// acceptsImages reports whether the model accepts images: it is known to, or the user says so.
func (a *Models) acceptsImages() bool {
	return a.endpoint().Vision || a.modelFigures(a.ModelName()).Vision
}

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
			return configErrorf("%s: provider.model_info.%s: %w", a.Report.Origin(config.EntryKey("provider.model_info", name)),
				name, jsonx.ExplainMismatch(err, i))
		}
		if (i.PriceIn == nil) != (i.PriceOut == nil) {
			return configErrorf("%s: provider.model_info.%s: price_in and price_out must be set together",
				a.Report.Origin(config.EntryKey("provider.model_info", name)), name)
		}
	}
	return nil
}
