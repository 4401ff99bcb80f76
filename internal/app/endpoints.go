package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/config"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/keychain"
	"coder/internal/host/repofile"
	"coder/internal/model/catalogue"
	"coder/internal/model/provider"
)

// Endpoint is an endpoint for models.
type Endpoint struct {
	Title    string
	Provider config.Provider
	Key      string // the variable that holds its key; "" if none does
	InUse    bool   // the configured endpoint
	Local    bool   // searched for on this machine
	Named    bool   // the user named its address

	Models []Offer
	Err    error // why it did not list its models
}

// Offer is a model at an endpoint.
type Offer struct {
	Name   string
	Window int // 0 if unknown
	Price  catalogue.Price
	InUse  bool // the default model
}

// Setup finds endpoints, and saves one to the user's settings.
type Setup struct{ *Models }

// mostAtOnce limits how many endpoints are asked at the same time.
const mostAtOnce = 8

// Endpoints asks every reachable endpoint for its models: the configured endpoint, the presets with a key
// in the environment, and servers on this machine. It asks them in parallel, each with a short timeout.
func (a *Setup) Endpoints(ctx context.Context) []Endpoint {
	list := a.candidates()
	slots := make(chan struct{}, mostAtOnce)
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a.Ask(ctx, &list[i])
		})
	}
	wg.Wait()
	return list
}

// candidates returns the endpoints that may exist.
func (a *Setup) candidates() (list []Endpoint) {
	add := func(e Endpoint) {
		if !slices.ContainsFunc(list, func(o Endpoint) bool { return sameAddress(o.Provider.BaseURL, e.Provider.BaseURL) }) {
			list = append(list, e)
		}
	}
	if e, ok := a.EndpointInUse(); ok {
		add(e)
	}
	for _, p := range config.Presets() {
		if c, variable := p.In(a.Env.Getenv); !p.Local && variable != "" && c.BaseURL != "" {
			add(Endpoint{Title: p.Title, Provider: c, Key: variable})
		}
	}
	for _, address := range a.localServers() {
		e := a.EndpointAt(address, true)
		e.Named = !slices.Contains(config.Default().Discovery.Local, address)
		add(e)
	}
	return list
}

// EndpointInUse returns the configured endpoint, if any.
func (a *Models) EndpointInUse() (Endpoint, bool) {
	c := a.endpoint()
	variable, _ := strings.CutPrefix(a.Report.Origin("provider.api_key").Source, "env ")
	return Endpoint{Title: cmp.Or(config.PresetNamed(c.Preset).Title, host(c.BaseURL)), Provider: c, Key: variable, InUse: true}, c.BaseURL != ""
}

// localServers returns the addresses at which to look for servers on this
// machine. A variable with an address takes precedence over the usual one.
func (a *Setup) localServers() []string {
	list := slices.Clone(a.Config.Discovery.Local)
	for i, address := range list {
		list[i] = withScheme(strings.TrimSpace(address))
	}
	for _, p := range config.Presets() {
		if address, variable := p.AddressIn(a.Env.Getenv); p.Local && variable != "" {
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
		return Endpoint{Title: host(address), Provider: c, Local: local}
	}
	c, variable := p.In(a.Env.Getenv)
	c.BaseURL = address
	return Endpoint{Title: p.Title, Provider: c, Key: variable, Local: local}
}

// EndpointNamed returns a preset's endpoint, or the one at an address.
func (a *Setup) EndpointNamed(name string) (Endpoint, error) {
	e, err := a.EndpointWithoutKey(name)
	p := config.PresetNamed(name)
	if err == nil && p.Name != "" && e.LacksKey() {
		return Endpoint{}, configf("%s needs a key: set %s and try again", p.Title, p.Keys[0])
	}
	return e, err
}

// EndpointWithoutKey is [Setup.EndpointNamed] for an endpoint whose key the user has yet to enter.
func (a *Setup) EndpointWithoutKey(name string) (Endpoint, error) {
	p := config.PresetNamed(name)
	if p.Name == "" {
		name = withScheme(name)
	}
	if strings.Contains(name, "://") {
		e := a.EndpointAt(name, false)
		if u, err := url.Parse(name); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return e, inputf("%s is not an address such as https://host/v1", oneLine(name))
		}
		if key := a.Env.Getenv("CODER_API_KEY"); e.Key == "" && key != "" {
			e.Key, e.Provider.APIKey = "CODER_API_KEY", key
		}
		return e, nil
	}
	switch {
	case p.Name == "" && LooksLikeKey(name):
		return Endpoint{}, inputf("this looks like an API key, not the name of a provider; coder setup asks for the key without showing it")
	case p.Name == "":
		var names []string
		for _, p := range config.Presets() {
			names = append(names, p.Name)
		}
		return Endpoint{}, inputf("unknown endpoint %s; use one of: %s; or an address such as https://host/v1", oneLine(name), strings.Join(names, ", "))
	}
	c, variable := p.In(a.Env.Getenv)
	if c.BaseURL == "" {
		return Endpoint{}, configf("%s needs an address: set %s", p.Title, p.Bases[0])
	}
	return Endpoint{Title: p.Title, Provider: c, Key: variable, Local: p.Local}, nil
}

// EndpointOf returns a preset's endpoint at an address that the user entered.
func (a *Setup) EndpointOf(p config.Preset, address string) (Endpoint, error) {
	address = withScheme(address)
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return Endpoint{}, inputf("%s is not an address such as https://host/v1", oneLine(address))
	}
	c, variable := p.At(address, a.Env.Getenv)
	return Endpoint{Title: p.Title, Provider: c, Key: variable}, nil
}

// LacksKey reports whether an endpoint needs a key and none is known.
func (e Endpoint) LacksKey() bool {
	p := config.PresetNamed(e.Provider.Preset)
	return e.Provider.APIKey == "" && e.Provider.KeyStore == "" && len(e.Provider.APIKeyCommand) == 0 && len(p.Keys) > 0 && !p.Local
}

// withScheme adds a missing scheme to an address: http for
// this machine and its private network, otherwise https.
func withScheme(name string) string {
	if strings.Contains(name, "://") || !strings.ContainsAny(name, ".:/") || strings.ContainsAny(name, " \t") {
		return name
	}
	u, err := url.Parse("http://" + name)
	if err != nil {
		return name
	}
	if ip := net.ParseIP(u.Hostname()); ownMachine(u.String()) || ip.IsPrivate() {
		return u.String()
	}
	return "https://" + name
}

// ownServer reports whether an endpoint is a model server on this
// machine: its models have the window that was configured there.
func (e Endpoint) ownServer() bool {
	p := config.PresetNamed(e.Provider.Preset)
	return e.Local || ownMachine(e.Provider.BaseURL) && (p.Name == "" || p.Local)
}

// ownMachine reports whether an address is on this machine.
func ownMachine(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// Found reports whether an endpoint exists. One that was only
// searched for on this machine and did not answer does not count.
func (e Endpoint) Found() bool { return !e.Local || e.Err == nil || e.InUse }

// Missed reports whether the user would expect an endpoint that was not
// found: they named its address, or a server there is too slow to answer.
func (e Endpoint) Missed() bool {
	return !e.Found() && (e.Named || errors.As(e.Err, new(slowError)))
}

// slowError reports that an endpoint took too long to list its models.
type slowError time.Duration

func (e slowError) Error() string {
	return fmt.Sprintf("it did not answer within %v", time.Duration(e))
}

// Unreachable reports whether the endpoint could not be reached.
func (e Endpoint) Unreachable() bool { return errors.Is(e.Err, provider.ErrUnreachable) }

// WantsKey reports whether an endpoint rejects requests with its key, or without one.
func (e Endpoint) WantsKey() bool { return errors.Is(e.Err, provider.ErrAuth) }

// Ask asks an endpoint for its models. An endpoint on this
// machine gets a short timeout: it answers at once or not at all.
func (a *Setup) Ask(ctx context.Context, e *Endpoint) {
	client, err := a.clientOf(e.Provider)
	if err != nil {
		e.Err = err
		return
	}
	limit := listTime
	if e.Local {
		limit = time.Duration(a.Config.Discovery.TimeoutMS) * time.Millisecond
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	listed, err := client.Models(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = slowError(limit)
	}
	if e.Err = err; err == nil {
		a.keepList(e.Provider, listed)
	}
	for _, m := range listed {
		o := Offer{Name: m.Name, Window: m.Window, InUse: m.Name == e.Provider.Model}
		known := a.figures(m.Name)
		if o.Window == 0 && e.Local && len(listed) <= mostAsked {
			o.Window = client.Window(ctx, m.Name)
		}
		if o.Window == 0 && !e.ownServer() && !known.Guessed {
			o.Window = known.Context
		}
		switch {
		case m.Price != nil:
			o.Price = catalogue.Price{In: m.Price.In, Out: m.Price.Out, CachedIn: m.Price.CachedIn, CacheWrite: m.Price.CacheWrite, Known: true}
		default:
			o.Price = a.price(e.Provider, m.Name)
		}
		e.Models = append(e.Models, o)
	}
}

// mostAsked limits the number of models that a server on this machine is asked about one by one.
const mostAsked = 12

// Try sends a small request to a model at an endpoint, and remembers its
// window if the server reports one. It returns the beginning of the answer.
func (a *Setup) Try(ctx context.Context, e Endpoint, model string) (answer string, window int, err error) {
	client, err := a.clientOf(e.Provider)
	if err != nil {
		return "", 0, err
	}
	ctx, stop := context.WithTimeout(ctx, tryTime)
	defer stop()
	reply, err := provider.Collect(client.Stream(ctx, provider.Prompt(model, "Answer with the one word: ready")), func(provider.Delta) error { return nil })
	if err != nil {
		return "", 0, err
	}
	if window = client.Window(ctx, model); window > 0 {
		a.keepWindow(e.Provider.BaseURL, model, window)
	}
	return sanitize.Line(reply.Message.Text(), mostOfAnswer), window, nil
}

// mostOfAnswer limits the shown part of the answer.
const mostOfAnswer = 60

// tryTime limits the wait for a model's first answer: the server may have to load it.
const tryTime = 2 * time.Minute

// host returns the server in an address, for display.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

func sameAddress(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && ua.Scheme == ub.Scheme && strings.EqualFold(ua.Host, ub.Host) && strings.Trim(ua.Path, "/") == strings.Trim(ub.Path, "/")
}

// Saved describes the changes to the user's own settings.
type Saved struct {
	Path    string
	Written []string // without the key
	Gone    []string // settings for another endpoint
	Address string   // the variable that says where the endpoint is, "" if none has to
	KeyIn   keychain.Place
}

// Choices are the user's choices besides the endpoint and the model.
type Choices struct {
	SaveKey bool   // in coder's store; otherwise it stays in its place
	Mode    string // to start in; "" leaves it as it is
}

// SaveEndpoint writes an endpoint and a model to the user's own settings. It removes settings
// that were for another endpoint, and leaves all others unchanged. It never writes a key to them.
func (a *Setup) SaveEndpoint(ctx context.Context, e Endpoint, model string, o Choices) (saved Saved, err error) {
	if a.Home == "" {
		return saved, inputf("no folder for your settings: set HOME or CODER_HOME")
	}
	path := filepath.Join(a.Home, "config.json")
	saved.Path = path
	text, err := repofile.Own(path, maxNamedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return saved, inputf("%v", err)
	}
	has, err := a.ownSettings()
	if err != nil {
		return saved, err
	}
	p := e.Provider
	if now, nowErr := a.Connected(); nowErr == nil && now != "" && now != p.Preset && now != p.BaseURL {
		if text, saved.Gone, err = config.ForgetEndpoint(text); err != nil {
			return saved, inputf("%v", err)
		}
		saved.Gone = slices.DeleteFunc(saved.Gone, func(key string) bool { // the endpoint itself is replaced, not gone
			return slices.Contains([]string{"provider.preset", "provider.base_url", "provider.kind", "provider.model"}, key)
		})
	}
	if o.SaveKey {
		if saved.KeyIn, err = a.saveKey(ctx, p); err != nil {
			return saved, err
		}
	}
	f := settingsText{text: text, has: func(key string) bool { return has.Origin(key).Source == path }, saved: &saved}
	f.endpoint(a, e, model, o)
	if f.err != nil {
		return saved, inputf("%v", f.err)
	}
	if err := os.MkdirAll(a.Home, 0o700); err != nil {
		return saved, inputf("%v", err)
	}
	return saved, atomicfile.Write(path, f.text, 0o600)
}

// settingsText is a settings file during changes.
type settingsText struct {
	text  []byte
	has   func(key string) bool // in the original file
	saved *Saved
	err   error
}

// endpoint writes an endpoint.
func (f *settingsText) endpoint(a *Setup, e Endpoint, model string, o Choices) {
	p := e.Provider
	base := p.BaseURL
	if usual, from := config.PresetNamed(p.Preset).AddressIn(a.Env.Getenv); usual == base && (from == "" || !o.SaveKey) {
		base, f.saved.Address = "", from // the preset or the variable says it; but a saved key is for this address only
	}
	f.set("provider.preset", p.Preset, p.Preset != "")
	f.set("provider.base_url", base, base != "")
	f.set("provider.kind", p.Kind, false)
	f.set("provider.key_header", p.KeyHeader, false)
	f.set("provider.model", model, true)
	f.set("agents.default", o.Mode, o.Mode != "")
	switch {
	case o.SaveKey:
		f.unset("provider.api_key")
		f.unset("provider.api_key_command")
		f.set("provider.key_store", string(f.saved.KeyIn), true)
	case e.Key != "":
		f.unset("provider.key_store")
		if p.Preset == "" {
			f.set("provider.api_key", "${"+e.Key+"}", true)
		}
	}
}

// set writes a setting: always, or only over another value.
func (f *settingsText) set(key, value string, always bool) {
	if f.err != nil || !always && !f.has(key) {
		return
	}
	if f.text, f.err = config.Set(f.text, key, value); f.err == nil && value != "" {
		f.saved.Gone = slices.DeleteFunc(f.saved.Gone, func(gone string) bool { return gone == key })
		if key != "provider.key_store" && key != "provider.api_key" {
			f.saved.Written = append(f.saved.Written, fmt.Sprintf("%s = %q", key, value))
		}
	}
}

func (f *settingsText) unset(key string) {
	if f.err == nil {
		f.text, _, f.err = config.Unset(f.text, key)
	}
}

// Overruling is a setting from a source that takes precedence over the written file.
type Overruling struct {
	Key    string
	Origin config.Origin
}

// Overruled lists the settings that take precedence at the
// next start over an endpoint and a model written to path.
func (a *Setup) Overruled(path string, e Endpoint, model string) (list []Overruling, err error) {
	next, err := Load(a.Env, Options{Dir: a.Project, Overrides: Overrides{ConfigFile: a.configFile}})
	if err != nil {
		return nil, err
	}
	elsewhere := !sameAddress(next.Config.Provider.BaseURL, e.Provider.BaseURL)
	for _, s := range []struct {
		key   string
		other bool
	}{{"provider.preset", elsewhere}, {"provider.base_url", elsewhere}, {"provider.model", next.Config.Provider.Model != model}} {
		if o := next.Report.Origin(s.key); s.other && (o.OverFiles() || o.Line > 0 && o.Source != path) {
			list = append(list, Overruling{s.key, o})
		}
	}
	return list, nil
}

// ownSettings returns the report on the user's own settings alone.
func (a *Setup) ownSettings() (config.Report, error) {
	_, report, err := config.Load(config.Options{Home: a.Home, Getenv: func(name string) string {
		if strings.HasPrefix(name, "CODER_") || strings.HasPrefix(name, "AGENT_") {
			return ""
		}
		return a.Env.Getenv(name)
	}})
	if err != nil {
		return report, &Error{BadConfig, err}
	}
	return report, nil
}

// Connected returns the endpoint in the user's own settings, or "".
func (a *Setup) Connected() (string, error) {
	report, err := a.ownSettings()
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
