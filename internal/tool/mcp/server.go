package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
)

// The ways to reach a server.
const (
	Stdio = "stdio" // a program, over its standard streams
	HTTP  = "http"  // an address, by streamable HTTP
	SSE   = "sse"   // an address, by the older way with server-sent events
	Relay = "sdk"   // a part of the program that drives the session, which passes messages on
)

// Server is a server as people configure it.
type Server struct {
	Name       string
	Type       string // Stdio, HTTP, SSE or Relay
	Command    string
	Args       []string
	Env        map[string]string
	URL        string
	Headers    map[string]string
	Timeout    time.Duration // the longest call; 0 means the usual
	AlwaysLoad bool          // its tools are described to the model however many there are
	Disabled   bool
	// TrustHints says that the person believes what the server says of its tools:
	// one that it says only reads is taken to only read.
	TrustHints bool
	// Unconfined says that the person lets it run without bounds.
	Unconfined bool
	OAuth      OAuth
	From       string // where it is written, for people
	Project    bool   // it is a project's, not the person's
}

// OAuth is how a server wants this program to log in, where it takes no
// strangers.
type OAuth struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	CallbackPort int    `json:"callbackPort"` // where the browser is sent; 0 means any
}

// written is a server in the form that people have it in for other agents, and
// with what is ours. What else stands there is for others.
type written struct {
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

// Read reads the settings of one server. The error says what is wrong with them.
func Read(name string, settings json.RawMessage) (Server, error) {
	var w written
	if err := json.Unmarshal(settings, &w); err != nil {
		return Server{Name: name}, fmt.Errorf("it cannot be read: %w", jsonx.Misfit(err, w))
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
	case Clean(s.Name) == "":
		return errors.New("its name has no letter or digit")
	case s.Type == Relay:
		return nil
	case s.Type == Stdio && strings.TrimSpace(s.Command) == "":
		return errors.New("it has neither a command nor a url")
	case s.Type == Stdio:
		return nil
	case s.Type != HTTP && s.Type != SSE:
		return fmt.Errorf("its type is %q; it must be stdio, http or sse", s.Type)
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("its url is not a web address")
	}
	return nil
}

// Where is the server's command line or address, for people, without what may
// be secret: values of its environment, headers, what stands before the host.
func (s Server) Where() string {
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

// Clean is a name of a server or a tool as it may stand in the name of a tool:
// letters, digits, - and _. A server's part has no two _ in a row, and none at
// its ends, so that it can be told where it ends.
func Clean(name string) string {
	clean := letters(name)
	for strings.Contains(clean, "__") {
		clean = strings.ReplaceAll(clean, "__", "_")
	}
	return strings.Trim(clean, "_-")
}

// Key is what tells servers apart: two of one key cannot stand beside each other,
// since names of tools and rules are the same in any case, and with _ or without.
func Key(name string) string { return folded(Clean(name)) }

// identity is what makes a server this one and no other: what somebody agreed to for
// one does not hold for another of its name.
func (s Server) identity() []any {
	return []any{s.Name, s.Type, s.Command, s.Args, s.URL, slices.Sorted(maps.Keys(s.Env)), s.Project}
}

// letters is s with _ for whatever else is in it.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
