package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// The types of servers.
const (
	Stdio = "stdio" // a program, over its standard streams
	HTTP  = "http"  // an address, over streamable HTTP
	SSE   = "sse"   // an address, over the older server-sent events
	Relay = "sdk"   // a part of the program that drives the session, which relays messages
)

// Server is a server as configured.
type Server struct {
	Name       string
	Type       string // Stdio, HTTP, SSE or Relay
	Command    string
	Args       []string
	Env        map[string]string
	URL        string
	Headers    map[string]string
	Timeout    time.Duration // maximum duration of a call; 0 means the default
	AlwaysLoad bool          // its tools are always advertised, however many
	Disabled   bool
	// TrustHints means that the user trusts the server's descriptions of
	// its tools: a tool described as read-only counts as read-only.
	TrustHints bool
	// Unconfined means that the user lets it run without a sandbox.
	Unconfined  bool
	OAuth       OAuth
	Source      string // where it is configured, for display
	FromProject bool   // a project's, not the user's
}

// OAuth configures how coder logs in to a server that requires it.
type OAuth struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	CallbackPort int    `json:"callbackPort"` // the local port that the browser is redirected to; 0 means any
}

// serverConfig is a server in the common format of agents, with coder's own additions. Other members are ignored.
type serverConfig struct {
	Type       string            `json:"type"`
	Transport  string            `json:"transport"`
	Command    string            `json:"command"`
	Args       []string          `json:"args"`
	Env        map[string]string `json:"env"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	Timeout    float64           `json:"timeout"` // ms
	AlwaysLoad bool              `json:"alwaysLoad"`
	Disabled   bool              `json:"disabled"`
	TrustHints bool              `json:"trust_hints"`
	Confined   *bool             `json:"confined"`
	OAuth      OAuth             `json:"oauth"`
}

// ParseServer parses the settings of one server. Its error says what is wrong.
func ParseServer(name string, settings json.RawMessage) (Server, error) {
	var w serverConfig
	if err := json.Unmarshal(settings, &w); err != nil {
		return Server{Name: name}, message.Errorf("cannot read the settings: %w", jsonx.ExplainMismatch(err, w))
	}
	s := Server{
		Name: name, Type: w.Type, Command: w.Command, Args: w.Args, Env: w.Env, URL: w.URL, Headers: w.Headers,
		Timeout: time.Duration(w.Timeout * float64(time.Millisecond)), AlwaysLoad: w.AlwaysLoad, Disabled: w.Disabled,
		TrustHints: w.TrustHints, Unconfined: w.Confined != nil && !*w.Confined, OAuth: w.OAuth,
	}
	if s.Type == "" {
		s.Type = w.Transport
	}
	switch {
	case s.Type == "" && w.URL != "", s.Type == "streamable-http", s.Type == "streamableHttp", s.Type == "streamable_http":
		s.Type = HTTP
	case s.Type == "":
		s.Type = Stdio
	}
	return s, s.check()
}

func (s Server) check() error {
	switch {
	case CleanName(s.Name) == "":
		return errors.New("the name has no letter or digit")
	case s.Type == Relay:
		return nil
	case s.Type == Stdio && strings.TrimSpace(s.Command) == "":
		return errors.New("neither a command nor a url is set")
	case s.Type == Stdio:
		return nil
	case s.Type != HTTP && s.Type != SSE:
		return message.Errorf("unknown type %q: use stdio, http or sse", s.Type)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("the url is not a web address")
	}
	return nil
}

// DisplayAddress returns the server's command line or address for display, without possible secrets: values of
// its environment, headers, the user part of an address.
func (s Server) DisplayAddress() string {
	switch s.Type {
	case Relay:
		return "in the program that drives this session"
	case Stdio:
		return strings.Join(append([]string{s.Command}, s.Args...), " ")
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// CleanName returns the name of a server or a tool in the characters allowed in a tool name: letters, digits, -
// and _. A server's part has no two _ in a row, and none at its ends, so that its end is recognizable.
func CleanName(name string) string {
	clean := replaceSymbols(name)
	for strings.Contains(clean, "__") {
		clean = strings.ReplaceAll(clean, "__", "_")
	}
	return strings.Trim(clean, "_-")
}

// ServerKey identifies a server: two with one key cannot coexist, since names of tools and rules ignore case and _.
func ServerKey(name string) string { return foldName(CleanName(name)) }

// identity returns everything that identifies a server: consent
// to one does not apply to another with the same name.
func (s Server) identity() []any {
	return []any{s.Name, s.Type, s.Command, s.Args, s.URL, slices.Sorted(maps.Keys(s.Env)), s.FromProject}
}

// replaceSymbols returns s with _ for every other character.
func replaceSymbols(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
