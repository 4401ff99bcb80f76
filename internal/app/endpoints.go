package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/config"
	"coder/internal/core/sanitize"
	"coder/internal/host/keychain"
	"coder/internal/model/catalogue"
	"coder/internal/model/provider"
)

// Endpoint is an endpoint for models.
type Endpoint struct {
	Title     string
	Provider  config.Provider
	KeyVar    string // the variable that holds its key; "" if none does
	InUse     bool   // the configured endpoint
	Local     bool   // searched for on this machine
	UserNamed bool   // the user named its address

	Models []ModelOffer
	Err    error // why it did not list its models
}

// ModelOffer is a model at an endpoint.
type ModelOffer struct {
	Name   string
	Window int // 0 if unknown
	Price  catalogue.Price
	InUse  bool // the default model
}

// Setup finds endpoints, and saves one to the user's settings.
type Setup struct{ *Models }

// maxParallelProbes limits how many endpoints are asked at the same time.
const maxParallelProbes = 8

// ListEndpoints asks every reachable endpoint for its models: the configured endpoint, the presets with a key
// in the environment, and servers on this machine. It asks them in parallel, each with a short timeout.
func (a *Setup) ListEndpoints(ctx context.Context) []Endpoint {
	list := a.candidateEndpoints()
	slots := make(chan struct{}, maxParallelProbes)
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a.LoadModels(ctx, &list[i])
		})
	}
	wg.Wait()
	return list
}

// candidateEndpoints returns the endpoints that may exist.
func (a *Setup) candidateEndpoints() (list []Endpoint) {
	add := func(e Endpoint) {
		if !slices.ContainsFunc(list, func(o Endpoint) bool { return sameAddress(o.Provider.BaseURL, e.Provider.BaseURL) }) {
			list = append(list, e)
		}
	}
	if e, ok := a.CurrentEndpoint(); ok {
		add(e)
	}
	for _, p := range config.Presets() {
		if c, variable := p.EndpointFromEnv(a.Env.Getenv); !p.Local && variable != "" && c.BaseURL != "" {
			add(Endpoint{Title: p.Title, Provider: c, KeyVar: variable})
		}
	}
	for _, address := range a.localServerAddresses() {
		e := a.EndpointAt(address, true)
		e.UserNamed = !slices.Contains(config.Default().Discovery.Local, address)
		add(e)
	}
	return list
}

// CurrentEndpoint returns the configured endpoint, if any.
func (a *Models) CurrentEndpoint() (Endpoint, bool) {
	c := a.endpoint()
	variable, _ := strings.CutPrefix(a.Report.Origin("provider.api_key").Source, "env ")
	return Endpoint{Title: cmp.Or(config.FindPreset(c.Preset).Title, addressHost(c.BaseURL)), Provider: c,
		KeyVar: variable, InUse: true}, c.BaseURL != ""
}

// localServerAddresses returns the addresses at which to look for servers on this
// machine. A variable with an address takes precedence over the usual one.
func (a *Setup) localServerAddresses() []string {
	list := slices.Clone(a.Config.Discovery.Local)
	for i, address := range list {
		list[i] = addScheme(strings.TrimSpace(address))
	}
	for _, p := range config.Presets() {
		if address, variable := p.FindAddress(a.Env.Getenv); p.Local && variable != "" {
			for i, usual := range list {
				if slices.Contains(p.Addresses, usual) {
					list[i] = address
				}
			}
		}
	}
	return list
}

// EndpointAt returns the endpoint at an address, with a preset's details if the address is a preset's.
func (a *Setup) EndpointAt(address string, local bool) Endpoint {
	p := config.PresetAt(address, a.Env.Getenv)
	if p.Name == "" {
		c := config.Default().Provider
		c.BaseURL = address
		return Endpoint{Title: addressHost(address), Provider: c, Local: local}
	}
	c, variable := p.EndpointFromEnv(a.Env.Getenv)
	c.BaseURL = address
	return Endpoint{Title: p.Title, Provider: c, KeyVar: variable, Local: local}
}

// FindEndpoint returns a preset's endpoint, or the one at an address.
func (a *Setup) FindEndpoint(name string) (Endpoint, error) {
	e, err := a.FindEndpointWithoutKey(name)
	p := config.FindPreset(name)
	if err == nil && p.Name != "" && e.LacksKey() {
		return Endpoint{}, configErrorf("%s needs a key: set %s and try again", p.Title, p.KeyVars[0])
	}
	return e, err
}

// FindEndpointWithoutKey is [Setup.FindEndpoint] for an endpoint whose key the user has yet to enter.
func (a *Setup) FindEndpointWithoutKey(name string) (Endpoint, error) {
	p := config.FindPreset(name)
	if p.Name == "" {
		name = addScheme(name)
	}
	if strings.Contains(name, "://") {
		e := a.EndpointAt(name, false)
		if u, err := url.Parse(name); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return e, inputErrorf("%s is not an address such as https://host/v1", singleLine(name))
		}
		if key := a.Env.Getenv("CODER_API_KEY"); e.KeyVar == "" && key != "" {
			e.KeyVar, e.Provider.APIKey = "CODER_API_KEY", key
		}
		return e, nil
	}
	switch {
	case p.Name == "" && LooksLikeKey(name):
		return Endpoint{}, inputErrorf("this looks like an API key, not the name of a provider; coder setup asks for the key without showing it")
	case p.Name == "":
		var names []string
		for _, p := range config.Presets() {
			names = append(names, p.Name)
		}
		return Endpoint{}, inputErrorf("unknown endpoint %s; use one of: %s; or an address such as https://host/v1",
			singleLine(name), strings.Join(names, ", "))
	}
	c, variable := p.EndpointFromEnv(a.Env.Getenv)
	if c.BaseURL == "" {
		return Endpoint{}, configErrorf("%s needs an address: set %s", p.Title, p.AddressVars[0])
	}
	return Endpoint{Title: p.Title, Provider: c, KeyVar: variable, Local: p.Local}, nil
}

// PresetEndpoint returns a preset's endpoint at an address that the user entered.
func (a *Setup) PresetEndpoint(p config.Preset, address string) (Endpoint, error) {
	address = addScheme(address)
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return Endpoint{}, inputErrorf("%s is not an address such as https://host/v1", singleLine(address))
	}
	c, variable := p.EndpointAt(address, a.Env.Getenv)
	return Endpoint{Title: p.Title, Provider: c, KeyVar: variable}, nil
}

// LacksKey reports whether an endpoint needs a key and none is known.
func (e Endpoint) LacksKey() bool {
	p := config.FindPreset(e.Provider.Preset)
	return e.Provider.APIKey == "" && e.Provider.KeyStore == "" && len(e.Provider.APIKeyCommand) == 0 &&
		len(p.KeyVars) > 0 && !p.Local
}

// addScheme adds a missing scheme to an address: http for
// this machine and its private network, otherwise https.
func addScheme(name string) string {
	if strings.Contains(name, "://") || !strings.ContainsAny(name, ".:/") || strings.ContainsAny(name, " \t") {
		return name
	}
	u, err := url.Parse("http://" + name)
	if err != nil {
		return name
	}
	if ip := net.ParseIP(u.Hostname()); isLocalAddress(u.String()) || ip.IsPrivate() {
		return u.String()
	}
	return "https://" + name
}

// isLocalServer reports whether an endpoint is a model server on this
// machine: its models have the window that was configured there.
func (e Endpoint) isLocalServer() bool {
	p := config.FindPreset(e.Provider.Preset)
	return e.Local || isLocalAddress(e.Provider.BaseURL) && (p.Name == "" || p.Local)
}

// isLocalAddress reports whether an address is on this machine.
func isLocalAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// IsFound reports whether an endpoint exists. One that was only
// searched for on this machine and did not answer does not count.
func (e Endpoint) IsFound() bool { return !e.Local || e.Err == nil || e.InUse }

// IsExpectedMissing reports whether the user would expect an endpoint that was not
// found: they named its address, or a server there is too slow to answer.
func (e Endpoint) IsExpectedMissing() bool {
	return !e.IsFound() && (e.UserNamed || errors.As(e.Err, new(slowEndpointError)))
}

// slowEndpointError reports that an endpoint took too long to list its models.
type slowEndpointError time.Duration

func (e slowEndpointError) Error() string {
	return fmt.Sprintf("no answer within %v", time.Duration(e))
}

// IsUnreachable reports whether the endpoint could not be reached.
func (e Endpoint) IsUnreachable() bool { return errors.Is(e.Err, provider.ErrUnreachable) }

// RejectsKey reports whether an endpoint rejects requests with its key, or without one.
func (e Endpoint) RejectsKey() bool { return errors.Is(e.Err, provider.ErrAuth) }

// LoadModels asks an endpoint for its models. An endpoint on this
// machine gets a short timeout: it answers at once or not at all.
func (a *Setup) LoadModels(ctx context.Context, e *Endpoint) {
	client, err := a.newClientFor(e.Provider)
	if err != nil {
		e.Err = err
		return
	}
	limit := listModelsTimeout
	if e.Local {
		limit = time.Duration(a.Config.Discovery.TimeoutMS) * time.Millisecond
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	listed, err := client.Models(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = slowEndpointError(limit)
	}
	if e.Err = err; err == nil {
		a.saveModelList(e.Provider, listed)
	}
	for _, m := range listed {
		o := ModelOffer{Name: m.Name, Window: m.Window, InUse: m.Name == e.Provider.Model}
		known := a.modelFigures(m.Name)
		if o.Window == 0 && e.Local && len(listed) <= maxModelProbes {
			o.Window = client.Window(ctx, m.Name)
		}
		if o.Window == 0 && !e.isLocalServer() && !known.Guessed {
			o.Window = known.Context
		}
		switch {
		case m.Price != nil:
			o.Price = catalogue.Price{In: m.Price.In, Out: m.Price.Out, CachedIn: m.Price.CachedIn,
				CacheWrite: m.Price.CacheWrite, Known: true}
		default:
			o.Price = a.modelPrice(e.Provider, m.Name)
		}
		e.Models = append(e.Models, o)
	}
}

// maxModelProbes limits the number of models that a server on this machine is asked about one by one.
const maxModelProbes = 12

// TryModel sends a small request to a model at an endpoint, and remembers its
// window if the server reports one. It returns the beginning of the answer.
func (a *Setup) TryModel(ctx context.Context, e Endpoint, model string) (answer string, window int, err error) {
	client, err := a.newClientFor(e.Provider)
	if err != nil {
		return "", 0, err
	}
	ctx, stop := context.WithTimeout(ctx, tryTimeout)
	defer stop()
	reply, err := provider.Collect(client.Stream(ctx, provider.Prompt(model, "Answer with the one word: ready")),
		func(provider.Delta) error { return nil })
	if err != nil {
		return "", 0, err
	}
	if window = client.Window(ctx, model); window > 0 {
		a.saveWindow(e.Provider.BaseURL, model, window)
	}
	return sanitize.Line(reply.Message.Text(), maxShownAnswer), window, nil
}

// maxShownAnswer limits the shown part of the answer.
const maxShownAnswer = 60

// tryTimeout limits the wait for a model's first answer: the server may have to load it.
const tryTimeout = 2 * time.Minute

// addressHost returns the server in an address, for display.
func addressHost(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

func sameAddress(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host) &&
		strings.Trim(ua.Path, "/") == strings.Trim(ub.Path, "/")
}

// SavedSettings describes the changes to the user's own settings.
type SavedSettings struct {
	Path       string
	Written    []string // without the key
	Removed    []string // settings for another endpoint
	AddressVar string   // the variable that says where the endpoint is, "" if none has to
	KeyPlace   keychain.Location
}

// SetupChoices are the user's choices besides the endpoint and the model.
type SetupChoices struct {
	SaveKey bool   // in coder's store; otherwise it stays in its place
	Mode    string // to start in; "" leaves it as it is
}

// SaveEndpoint writes an endpoint and a model to the user's own settings. It removes settings
// that were for another endpoint, and leaves all others unchanged. It never writes a key to them.
func (a *Setup) SaveEndpoint(ctx context.Context, e Endpoint, model string, o SetupChoices) (saved SavedSettings,
	err error) {
	if a.Home == "" {
		return saved, inputErrorf("no folder for your settings: set HOME or CODER_HOME")
	}
	path := filepath.Join(a.Home, "config.json")
	saved.Path = path
	has, err := a.userSettingsReport()
	if err != nil {
		return saved, err
	}
	p := e.Provider
	if o.SaveKey {
		if saved.KeyPlace, err = a.saveKey(ctx, p); err != nil {
			return saved, err
		}
	}
	now, nowErr := a.ConfiguredEndpoint()
	_, err = a.editOwn(func(text []byte) (_ []byte, err error) {
		if nowErr == nil && now != "" && now != p.Preset && now != p.BaseURL {
			if text, saved.Removed, err = config.ForgetEndpoint(text); err != nil {
				return nil, err
			}
			saved.Removed = slices.DeleteFunc(saved.Removed, func(key string) bool { // the endpoint itself is replaced, not gone
				return slices.Contains([]string{"provider.preset", "provider.base_url", "provider.kind", "provider.model"}, key)
			})
		}
		f := settingsEdit{text: text, hasKey: func(key string) bool { return has.Origin(key).Source == path }, saved: &saved}
		f.setEndpoint(a, e, model, o)
		return f.text, f.err
	})
	if err != nil {
		return saved, inputErrorf("%v", err)
	}
	return saved, nil
}

// settingsEdit is a settings file during changes.
type settingsEdit struct {
	text   []byte
	hasKey func(key string) bool // in the original file
	saved  *SavedSettings
	err    error
}

// setEndpoint writes an endpoint.
func (f *settingsEdit) setEndpoint(a *Setup, e Endpoint, model string, o SetupChoices) {
	p := e.Provider
	base := p.BaseURL
	if usual, from := config.FindPreset(p.Preset).FindAddress(a.Env.Getenv); usual == base && (from == "" || !o.SaveKey) {
		base, f.saved.AddressVar = "", from // the preset or the variable says it; but a saved key is for this address only
	}
	f.setKey("provider.preset", p.Preset, p.Preset != "")
	f.setKey("provider.base_url", base, base != "")
	f.setKey("provider.kind", p.Kind, false)
	f.setKey("provider.key_header", p.KeyHeader, false)
	f.setKey("provider.model", model, true)
	f.setKey("agents.default", o.Mode, o.Mode != "")
	switch {
	case o.SaveKey:
		f.removeKey("provider.api_key")
		f.removeKey("provider.api_key_command")
		f.setKey("provider.key_store", string(f.saved.KeyPlace), true)
	case e.KeyVar != "":
		f.removeKey("provider.key_store")
		if p.Preset == "" {
			f.setKey("provider.api_key", "${"+e.KeyVar+"}", true)
		}
	}
}

// setKey writes a setting: always, or only over another value.
func (f *settingsEdit) setKey(key, value string, always bool) {
	if f.err != nil || !always && !f.hasKey(key) {
		return
	}
	if f.text, f.err = config.SetValue(f.text, key, value); f.err == nil && value != "" {
		f.saved.Removed = slices.DeleteFunc(f.saved.Removed, func(gone string) bool { return gone == key })
		if key != "provider.key_store" && key != "provider.api_key" {
			f.saved.Written = append(f.saved.Written, fmt.Sprintf("%s = %q", key, value))
		}
	}
}

func (f *settingsEdit) removeKey(key string) {
	if f.err == nil {
		f.text, _, f.err = config.RemoveKey(f.text, key)
	}
}

// Override is a setting from a source that takes precedence over the written file.
type Override struct {
	Key    string
	Origin config.Origin
}

// ListOverrides lists the settings that take precedence at the
// next start over an endpoint and a model written to path.
func (a *Setup) ListOverrides(path string, e Endpoint, model string) (list []Override, err error) {
	next, err := Load(a.Env, Options{Dir: a.Project, Overrides: Overrides{ConfigFile: a.configFile}})
	if err != nil {
		return nil, err
	}
	elsewhere := !sameAddress(next.Config.Provider.BaseURL, e.Provider.BaseURL)
	for _, s := range []struct {
		key   string
		other bool
	}{{"provider.preset", elsewhere}, {"provider.base_url", elsewhere},
		{"provider.model", next.Config.Provider.Model != model}} {
		if o := next.Report.Origin(s.key); s.other && (o.OverridesFiles() || o.Line > 0 && o.Source != path) {
			list = append(list, Override{s.key, o})
		}
	}
	return list, nil
}

// userSettingsReport returns the report on the user's own settings alone.
func (a *Setup) userSettingsReport() (config.Report, error) {
	_, report, err := config.Load(config.Options{Home: a.Home, Getenv: func(name string) string {
		if strings.HasPrefix(name, "CODER_") || strings.HasPrefix(name, "AGENT_") {
			return ""
		}
		return a.Env.Getenv(name)
	}})
	if err != nil {
		return report, &Error{KindConfig, err}
	}
	return report, nil
}

// ConfiguredEndpoint returns the endpoint in the user's own settings, or "".
func (a *Setup) ConfiguredEndpoint() (string, error) {
	report, err := a.userSettingsReport()
	if err != nil {
		return "", err
	}
	for _, key := range []string{"profile", "provider.preset", "provider.base_url"} {
		o := report.Origin(key)
		if !strings.HasPrefix(o.Source, a.Home) {
			continue
		}
		for _, row := range report.Rows() {
			if value := strings.Trim(row.Value, `"`); row.Key == key && value != "" {
				return value, nil
			}
		}
	}
	return "", nil
}
