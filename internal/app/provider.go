package app

import (
	"coder/internal/host/repofile"
	"coder/internal/model/openai"
	"coder/internal/model/provider"
	"coder/internal/model/scripted"
	"coder/internal/model/textcalls"
	"coder/internal/model/transport"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"
)

// Provider builds the model's side: the script where one is given, else the
// configured endpoint, with retries and the chosen way of calling tools.
func (a *App) Provider() (provider.Provider, error) {
	p, err := a.wireProvider()
	if err != nil {
		return nil, err
	}
	p = provider.Retry(p, provider.Backoff{Retries: a.Config.Provider.MaxRetries, Jitter: rand.Float64, Sleep: a.Env.Sleep})
	p = provider.Fallback(p, a.Config.Provider.FallbackModels...)
	return textcalls.Wrap(p, textcalls.Mode(a.Config.Provider.ToolMode)), nil
}

func (a *App) wireProvider() (provider.Provider, error) {
	if a.Play != nil {
		return a.Play, nil
	}
	if a.Options.Script != "" {
		return readScript(filepath.Join(a.scriptDir(), a.Options.Script))
	}
	c := a.Config.Provider
	switch {
	case c.Kind != "openai":
		return nil, configf("provider.kind %q is not built yet; use an OpenAI-compatible endpoint (openai)", c.Kind)
	case c.BaseURL == "" && a.NeedsTrust("provider."):
		return nil, &Error{Untrusted, fmt.Errorf("%s is %s, and the provider is set by the project's own configuration; look at it, then run: coder trust %[1]s", a.Root, a.Trusted)}
	case c.BaseURL == "":
		return nil, configf("no provider is configured; set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL (see README), or try: coder demo")
	case c.Model == "":
		return nil, configf("no model is chosen; use --model NAME or CODER_MODEL")
	}
	return a.client()
}

// maxNamedFile bounds the files that the person names.
const maxNamedFile = 64 << 20

// client speaks to the configured endpoint.
func (a *App) client() (*openai.Client, error) {
	c := a.Config.Provider
	var ca []byte
	if c.CAFile != "" {
		var err error
		if ca, err = repofile.Own(c.CAFile, maxNamedFile); err != nil {
			return nil, configf("provider.ca_file: %v", err)
		}
	}
	return openai.New(transport.Options{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Headers: c.Headers, CA: ca,
		Timeout:     time.Duration(c.TimeoutMS) * time.Millisecond,
		IdleTimeout: time.Duration(c.IdleTimeoutMS) * time.Millisecond,
		Proxy:       http.ProxyFromEnvironment, SendReasoning: c.SendReasoning, UserAgent: "coder/" + Version, Now: a.Env.Now,
	}), nil
}

// scriptDir is what a relative script path is relative to: where the person
// is, not where the work is.
func (a *App) scriptDir() string {
	if filepath.IsAbs(a.Options.Script) {
		return ""
	}
	return a.Env.Dir
}

func readScript(path string) (provider.Provider, error) {
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
