package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
	"coder/internal/model/provider"
)

// Model is a model in a server's list. A figure that the server does not report is zero.
type Model struct {
	Name           string
	Window, Output int          // tokens of a request with its reply, and of a reply alone
	Price          *ListedPrice // nil if not reported
	server         server
}

// ListedPrice is a price in US dollars per million tokens.
type ListedPrice struct{ In, Out, CachedIn, CacheWrite float64 }

// Listing says where a wire's server lists its models, and with which header to ask.
type Listing struct {
	Client   *Client
	Endpoint func() (*url.URL, http.Header, error)
}

// Models asks the server for its models. It asks only once: a list is a convenience.
func (l Listing) Models(ctx context.Context) ([]Model, error) {
	u, header, err := l.Endpoint()
	if err != nil {
		return nil, err
	}
	body, err := l.Client.Get(ctx, u, header)
	if err != nil {
		return nil, err
	}
	list := readModels(body)
	if len(list) == 0 {
		return nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: message.Errorf("%s has no model list",
			l.Client.Route(u))}
	}
	return list, nil
}

// readModels parses a list in any known form: objects with an id
// or a name, or bare names, under data or models or alone.
func readModels(body []byte) (list []Model) {
	var whole struct{ Data, Models json.RawMessage }
	raw := json.RawMessage(body)
	if json.Unmarshal(body, &whole) == nil {
		raw = whole.Data
		if raw == nil {
			raw = whole.Models
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	for _, item := range items {
		var m Model
		if json.Unmarshal(item, &m.Name) != nil {
			m = readModel(item)
		}
		if m.Name = CleanLine(strings.TrimPrefix(m.Name, "models/")); m.Name != "" {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b Model) bool { return a.Name == b.Name })
}

// listedModel is a model with the field names of all servers that report more than a name.
type listedModel struct {
	ID, Name, Model string
	OwnedBy         string `json:"owned_by"`

	Meta struct {
		NCtx float64 `json:"n_ctx"`
	} // llama.cpp
	MaxModelLen      float64 `json:"max_model_len"`      // vLLM, SGLang
	ContextLength    float64 `json:"context_length"`     // OpenRouter, Moonshot, Together
	ContextWindow    float64 `json:"context_window"`     // Groq
	MaxContextLength float64 `json:"max_context_length"` // Mistral
	InputTokenLimit  float64 // Gemini
	MaxInputTokens   float64 `json:"max_input_tokens"` // Anthropic

	// LM Studio reports the maximum context of a model, and its
	// actual context if it is loaded; only the latter counts.
	State         string
	LoadedContext float64 `json:"loaded_context_length"`

	OutputTokenLimit    float64
	MaxTokens           float64 `json:"max_tokens"`
	MaxCompletionTokens float64 `json:"max_completion_tokens"`
	TopProvider         struct {
		MaxCompletionTokens float64 `json:"max_completion_tokens"`
	} `json:"top_provider"`

	Pricing struct { // OpenRouter's, per token
		Prompt, Completion string
		Read               string `json:"input_cache_read"`
		Write              string `json:"input_cache_write"`
	}
}

func readModel(item json.RawMessage) (m Model) {
	var l listedModel
	if _, odd := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(item, &l)); odd &&
		cmp.Or(l.ID, l.Model, l.Name) == "" {
		return m // a price in another form counts as no price
	}
	m.Name, m.server = cmp.Or(l.ID, l.Model, l.Name), serversByOwner[l.OwnedBy]
	window := cmp.Or(l.Meta.NCtx, l.MaxModelLen, l.ContextLength, l.ContextWindow, l.MaxContextLength, l.InputTokenLimit,
		l.MaxInputTokens)
	if l.State != "" {
		window = l.LoadedContext
	}
	m.Window = toTokens(window)
	m.Output = toTokens(cmp.Or(l.OutputTokenLimit, l.MaxTokens, l.MaxCompletionTokens, l.TopProvider.MaxCompletionTokens))
	in, hasIn := pricePerMillion(l.Pricing.Prompt)
	out, hasOut := pricePerMillion(l.Pricing.Completion)
	if hasIn && hasOut {
		read, _ := pricePerMillion(l.Pricing.Read) // a missing price is no price
		write, _ := pricePerMillion(l.Pricing.Write)
		m.Price = &ListedPrice{In: in, Out: out, CachedIn: read, CacheWrite: write}
	}
	return m
}

// maxTokens is larger than any real window.
const maxTokens = 1 << 30

// toTokens converts a figure to a number of tokens, or 0 if it cannot be one.
func toTokens(n float64) int {
	if !(n >= 1 && n < maxTokens) {
		return 0
	}
	return int(n)
}

// pricePerMillion converts a price per token to a price per million tokens.
func pricePerMillion(s string) (price float64, ok bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n < 1) {
		return 0, false
	}
	return math.Round(n*1e12) / 1e6, true
}

// server is a program that serves models on users' own machines, if its list identifies it.
type server int

const (
	unknownServer server = iota
	ollama
	llamaCpp
	lmStudio
	vllm
)

// serversByOwner are the model owners that identify a server.
var serversByOwner = map[string]server{"library": ollama, "llamacpp": llamaCpp, "organization_owner": lmStudio,
	"vllm": vllm}

// Window returns a model's context window in tokens as reported by the server; 0 if it does not report
// one. A local server whose list does not report it is asked through its own API.
func (l Listing) Window(ctx context.Context, model string) int {
	list, err := l.Models(ctx)
	if err != nil && !errors.Is(err, provider.ErrNotAnAPI) {
		return 0
	}
	m := findModel(list, model)
	if m.Window > 0 {
		return m.Window
	}
	models, header, err := l.Endpoint()
	if err != nil {
		return 0
	}
	root := *models
	root.Path, root.RawPath, root.RawQuery = strings.TrimSuffix(strings.TrimSuffix(root.Path, "/models"), "/v1"), "", ""
	ask := windowQuery{l.Client, &root, header, model}
	for _, w := range []struct {
		of  server
		ask func(context.Context) int
	}{{ollama, ask.ollama}, {llamaCpp, ask.llamaCpp}, {lmStudio, ask.lmStudio}} {
		if m.server != w.of && (m.server != unknownServer || !IsLocal(models)) {
			continue
		}
		if n := w.ask(ctx); n > 0 {
			return n
		}
	}
	return 0
}

// findModel returns the model called name. Ollama also accepts a name
// without a tag, and a server with one model accepts any name.
func findModel(list []Model, name string) Model {
	for _, alias := range []string{name, name + ":latest"} {
		if i := slices.IndexFunc(list, func(m Model) bool { return m.Name == alias }); i >= 0 {
			return list[i]
		}
	}
	if len(list) == 1 && list[0].server == llamaCpp {
		return list[0]
	}
	return Model{}
}

// IsLocal reports whether an address is on this machine or in a local network.
func IsLocal(u *url.URL) bool {
	name := u.Hostname()
	if ip := net.ParseIP(name); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return name == "localhost" || !strings.Contains(name, ".") || strings.HasSuffix(name, ".local")
}

// windowQuery is a question about a model to a server's own API.
type windowQuery struct {
	client *Client
	root   *url.URL
	header http.Header
	model  string
}

// fetch requests path, below the root of the server, and decodes the answer into v.
func (a windowQuery) fetch(ctx context.Context, path string, body []byte, v any) {
	r := Request{Method: http.MethodGet, URL: a.root.JoinPath(path), Header: a.header.Clone()}
	if body != nil {
		r.Method, r.Length = http.MethodPost, int64(len(body))
		r.Body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Header.Set("Content-Type", "application/json")
	}
	if answer, err := a.client.get(ctx, r); err == nil {
		_ = json.Unmarshal(answer, v) // an unreadable answer says nothing
	}
}

// ollama asks for the context that the model was loaded with, or would
// be by its own settings. The possible maximum does not count.
func (a windowQuery) ollama(ctx context.Context) int {
	var loaded struct {
		Models []struct {
			Name, Model string
			Context     float64 `json:"context_length"`
		}
	}
	a.fetch(ctx, "api/ps", nil, &loaded)
	for _, m := range loaded.Models {
		if strings.TrimSuffix(cmp.Or(m.Model, m.Name), ":latest") == strings.TrimSuffix(a.model, ":latest") &&
			toTokens(m.Context) > 0 {
			return toTokens(m.Context)
		}
	}
	name, err := json.Marshal(map[string]string{"model": a.model})
	if err != nil {
		return 0
	}
	var shown struct{ Parameters string }
	a.fetch(ctx, "api/show", name, &shown)
	for line := range strings.Lines(shown.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			n, _ := strconv.ParseFloat(f[1], 64)
			return toTokens(n)
		}
	}
	return 0
}

func (a windowQuery) llamaCpp(ctx context.Context) int {
	var props struct {
		NCtx     float64 `json:"n_ctx"`
		Settings struct {
			NCtx float64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	a.fetch(ctx, "props", nil, &props)
	return toTokens(cmp.Or(props.Settings.NCtx, props.NCtx))
}

func (a windowQuery) lmStudio(ctx context.Context) int {
	var list json.RawMessage
	a.fetch(ctx, "api/v0/models", nil, &list)
	return findModel(readModels(list), a.model).Window
}
