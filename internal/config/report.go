package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
)

// Report says where settings came from and which were ignored.
type Report struct {
	Files          []string // the files read, the weakest first
	Warnings       []Warning
	Parts          map[string][]Part // parts of settings with joined layers, by key
	SkippedServers []SkippedServer   // MCP servers that are unusable as written
	Limits         []ManagedLimits   // from managed settings, one per file

	cfg        Config
	locks      map[string]managedLimit // from managed settings, by key
	origins    map[string]Origin       // by key; other keys have their defaults
	secretVars []string
}

// Part is one layer's part of a setting.
type Part struct {
	Value   json.RawMessage
	Project bool // the layer is the project's, which is trusted
}

// SkippedServer is an MCP server in a file that is not used.
type SkippedServer struct {
	Skipped
	Origin  Origin
	Project bool // the file is the project's
}

// maxWarnings limits how many ignored settings one report lists.
const maxWarnings = 100

// Warning is about an ignored setting.
type Warning struct {
	Origin Origin
	Key    string
	Text   string
}

func (w Warning) String() string { return w.Origin.String() + ": " + w.Text }

// Origin is the source of a value. The zero Origin means the defaults.
type Origin struct {
	Source  string // a file, "env NAME", "--name"
	Line    int    // in the file
	Project bool   // the file is the project's
}

func (o Origin) String() string {
	switch {
	case o.Source == "":
		return "default"
	case o.Line == 0:
		return o.Source
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// DisplayText returns the origin for display.
func (o Origin) DisplayText() string {
	if name, ok := strings.CutPrefix(o.Source, "env "); ok {
		return fmt.Sprintf("environment variable %s", name)
	}
	return o.String()
}

// OverridesFiles reports whether a value came from a variable that takes
// precedence over files; vendors' variables only fill in unset settings.
func (o Origin) OverridesFiles() bool {
	return slices.ContainsFunc(envVars, func(v envVar) bool { return o.Source == "env "+v.name })
}

// Origin returns the source of key's value.
func (r Report) Origin(key string) Origin { return r.origins[key] }

// RuleOrigin returns the source of a tool's rule for a pattern.
func (r Report) RuleOrigin(tool, pattern string) Origin { return r.origins[rulePath(tool, pattern)] }

// Row is a setting for display.
type Row struct {
	Key    string
	Value  string // as JSON, with secrets masked
	Origin Origin
	Lock   Origin // the managed settings that limit it; zero if none do
}

// DisplayOrigin returns the source of the value, or of its lock, for display.
func (r Row) DisplayOrigin() string {
	if r.Lock.Source != "" {
		return fmt.Sprintf("locked by %s", r.Lock)
	}
	return r.Origin.DisplayText()
}

// Rows lists every setting in the order of the documentation.
func (r Report) Rows() []Row {
	var rows []Row
	rootField().walk(func(f *field) {
		rows = append(rows, r.fieldRows(f)...)
	})
	return append(rows, r.managedRows()...)
}

// fieldRows lists f: one row, or one for each of its entries.
func (r Report) fieldRows(f *field) []Row {
	entries := map[string]any{}
	switch v := f.valueIn(&r.cfg).Interface().(type) {
	case map[string]string:
		for name, s := range v {
			if f.path != "ui.colors" {
				s = maskSecret(s)
			}
			entries[EntryKey(f.path, name)] = s
		}
	case map[string]json.RawMessage:
		for name, raw := range v {
			var v any
			if json.Unmarshal(raw, &v) != nil {
				v = "****"
			}
			entries[EntryKey(f.path, name)] = maskValue(v, false)
		}
	case map[string]Rules:
		for tool, rules := range v {
			for pattern, verdict := range rules {
				entries[rulePath(tool, pattern)] = verdict
			}
		}
	case string:
		if f.isSecret() {
			v = maskSecret(v)
		} else if f.isAddress() {
			v = maskAddress(v)
		}
		entries[f.path] = v
	default:
		entries[f.path] = v
	}
	if len(entries) == 0 && f.kind != kindRules {
		entries[f.path] = struct{}{}
	}
	var rows []Row
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value, err := jsonx.Marshal(entries[key])
		if err != nil {
			value = json.RawMessage("?")
		}
		rows = append(rows, Row{Key: key, Value: string(value), Origin: r.origins[key], Lock: r.locks[key].origin})
	}
	return rows
}

// maskSecret hides a secret except for its end, by which its owner recognises it.
func maskSecret(s string) string {
	const tail, enough = 4, 16
	switch {
	case s == "":
		return ""
	case len(s) < enough:
		return "****"
	}
	return "****" + strings.ToValidUTF8(s[len(s)-tail:], "?")
}

// Address returns the endpoint's address for display.
func (p Provider) Address() string { return maskAddress(p.BaseURL) }

// maskAddress masks a password and the query in an address.
func maskAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil && u.RawQuery == "" {
		return s
	}
	if u.RawQuery != "" {
		u.RawQuery = "****"
	}
	return u.Redacted()
}

func maskValue(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret {
			return maskSecret(v)
		}
		return maskAddress(v)
	case []any:
		for i := range v {
			v[i] = maskValue(v[i], secret)
		}
	case map[string]any:
		for k := range v {
			v[k] = maskValue(v[k], secret || k == "env" || k == "headers" || isSecretName(k))
		}
	}
	return v
}

// isSecretName reports whether a name suggests a secret: API_KEY, githubToken, Authorization.
func isSecretName(name string) bool {
	name = strings.TrimRight(strings.ToUpper(name), "_-0123456789")
	ends := []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "COOKIE"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

// SecretVariables returns the environment variables that hold
// keys: [KeyVariables] and those that files read secrets from.
func (r Report) SecretVariables() []string {
	names := append(KeyVariables(), r.secretVars...)
	slices.Sort(names)
	return slices.Compact(names)
}

// minSecretLen is the minimum length of a value that cannot be a common word.
const minSecretLen = 8

// Secrets lists the values that must not be shown or logged: the keys in use, and
// the values of [Report.SecretVariables] in environ, which has the form NAME=value.
func (r Report) Secrets(environ []string) []string {
	found := []string{strings.TrimSpace(r.cfg.Provider.APIKey)}
	for name, v := range r.cfg.Provider.Headers {
		if isSecretName(name) {
			found = append(found, stripScheme(v))
		}
	}
	for _, blocks := range []map[string]json.RawMessage{r.cfg.MCPServers, r.cfg.Profiles} {
		for _, raw := range blocks {
			var v any
			if json.Unmarshal(raw, &v) == nil {
				found = append(found, collectSecrets(v, false)...)
			}
		}
	}
	vars := r.SecretVariables()
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); slices.Contains(vars, name) {
			found = append(found, stripScheme(strings.TrimSpace(value)))
		}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return len(s) < minSecretLen })
	slices.Sort(found)
	return slices.Compact(found)
}

// stripScheme returns the secret in a header's value such as "Bearer secret".
func stripScheme(s string) string {
	return s[strings.LastIndexByte(s, ' ')+1:]
}

func collectSecrets(v any, secret bool) []string {
	var found []string
	switch v := v.(type) {
	case string:
		if secret {
			found = append(found, stripScheme(v))
		}
	case []any:
		for _, e := range v {
			found = append(found, collectSecrets(e, secret)...)
		}
	case map[string]any:
		for k, e := range v {
			found = append(found, collectSecrets(e, secret || isSecretName(k))...)
		}
	}
	return found
}
