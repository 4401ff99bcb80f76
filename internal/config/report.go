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

// Report says where the settings came from and what was passed over.
type Report struct {
	Files    []string // that were read, the weakest first
	Warnings []Warning
	Parts    map[string][]Part // of settings whose layers are joined, by key
	LeftOut  []LeftOut         // MCP servers that cannot be used as they are written
	Limits   []Limits          // of managed settings, file by file

	cfg        Config
	locks      map[string]lock   // of managed settings, by key
	origins    map[string]Origin // by key; a key without has its default
	secretVars []string
}

// Part is what one layer says of a setting.
type Part struct {
	Value   json.RawMessage
	Project bool // the layer is the project's, which is trusted
}

// LeftOut is an MCP server that is not used, though a file has it.
type LeftOut struct {
	Skipped
	Origin  Origin
	Project bool // the file is the project's
}

// maxWarnings bounds how many settings one report says were passed over.
const maxWarnings = 100

// Warning is a setting that was passed over.
type Warning struct {
	Origin Origin
	Key    string
	Text   string
}

func (w Warning) String() string { return w.Origin.String() + ": " + w.Text }

// Origin is where a value came from. The zero Origin is the defaults.
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

// Shown is where a value came from, for people.
func (o Origin) Shown() string {
	if name, ok := strings.CutPrefix(o.Source, "env "); ok {
		return fmt.Sprintf("environment variable %s", name)
	}
	return o.String()
}

// OverFiles reports whether a value came from a variable that is stronger than files; those
// of vendors fill in only what is open.
func (o Origin) OverFiles() bool {
	return slices.ContainsFunc(variables, func(v variable) bool { return o.Source == "env "+v.name })
}

// Origin tells where the value of key came from.
func (r Report) Origin(key string) Origin { return r.origins[key] }

// RuleOrigin tells where the rule of a tool for a pattern came from.
func (r Report) RuleOrigin(tool, pattern string) Origin { return r.origins[rulePath(tool, pattern)] }

// Row is a setting for people to look at.
type Row struct {
	Key    string
	Value  string // as JSON, with secrets masked
	Origin Origin
	Lock   Origin // the managed settings that bound it; zero if none do
}

// From is where the value came from, or what locks it, for people.
func (r Row) From() string {
	if r.Lock.Source != "" {
		return fmt.Sprintf("locked by %s", r.Lock)
	}
	return r.Origin.Shown()
}

// Rows lists every setting in the order of the documentation.
func (r Report) Rows() []Row {
	var rows []Row
	fields().all(func(f *field) {
		rows = append(rows, r.rows(f)...)
	})
	return append(rows, r.managedRows()...)
}

// rows lists f: one row, or one for each entry it has.
func (r Report) rows(f *field) []Row {
	entries := map[string]any{}
	switch v := f.in(&r.cfg).Interface().(type) {
	case map[string]string:
		for name, s := range v {
			if f.path != "ui.colors" {
				s = mask(s)
			}
			entries[Entry(f.path, name)] = s
		}
	case map[string]json.RawMessage:
		for name, raw := range v {
			var v any
			if json.Unmarshal(raw, &v) != nil {
				v = "****"
			}
			entries[Entry(f.path, name)] = maskUnder(v, false)
		}
	case map[string]Rules:
		for tool, rules := range v {
			for pattern, verdict := range rules {
				entries[rulePath(tool, pattern)] = verdict
			}
		}
	case string:
		if f.secret() {
			v = mask(v)
		} else if f.address() {
			v = maskAddress(v)
		}
		entries[f.path] = v
	default:
		entries[f.path] = v
	}
	if len(entries) == 0 && f.kind != rules {
		entries[f.path] = struct{}{}
	}
	var rows []Row
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value, err := jsonx.JSON(entries[key])
		if err != nil {
			value = json.RawMessage("?")
		}
		rows = append(rows, Row{Key: key, Value: string(value), Origin: r.origins[key], Lock: r.locks[key].from})
	}
	return rows
}

// mask hides a secret but for its end, by which its owner knows it.
func mask(s string) string {
	const tail, enough = 4, 16
	switch {
	case s == "":
		return ""
	case len(s) < enough:
		return "****"
	}
	return "****" + strings.ToValidUTF8(s[len(s)-tail:], "?")
}

// Address is where the models are, as it may be shown.
func (p Provider) Address() string { return maskAddress(p.BaseURL) }

// maskAddress hides a password and whatever a query holds.
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

func maskUnder(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret {
			return mask(v)
		}
		return maskAddress(v)
	case []any:
		for i := range v {
			v[i] = maskUnder(v[i], secret)
		}
	case map[string]any:
		for k := range v {
			v[k] = maskUnder(v[k], secret || k == "env" || k == "headers" || secretName(k))
		}
	}
	return v
}

// secretName reports whether something of that name is likely a secret:
// API_KEY, githubToken, Authorization.
func secretName(name string) bool {
	name = strings.TrimRight(strings.ToUpper(name), "_-0123456789")
	ends := []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "COOKIE"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

// SecretVariables names the variables of the environment that hold keys: those
// of [KeyVariables] and those that files took secrets from.
func (r Report) SecretVariables() []string {
	names := append(KeyVariables(), r.secretVars...)
	slices.Sort(names)
	return slices.Compact(names)
}

// minSecret is how long a value is that cannot be a common word.
const minSecret = 8

// Secrets lists the values that must not be shown or logged: the keys in use,
// and what environ, in the form NAME=value, keeps under [Report.SecretVariables].
func (r Report) Secrets(environ []string) []string {
	found := []string{strings.TrimSpace(r.cfg.Provider.APIKey)}
	for name, v := range r.cfg.Provider.Headers {
		if secretName(name) {
			found = append(found, bare(v))
		}
	}
	for _, blocks := range []map[string]json.RawMessage{r.cfg.MCPServers, r.cfg.Profiles} {
		for _, raw := range blocks {
			var v any
			if json.Unmarshal(raw, &v) == nil {
				found = append(found, secretsUnder(v, false)...)
			}
		}
	}
	vars := r.SecretVariables()
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); slices.Contains(vars, name) {
			found = append(found, bare(strings.TrimSpace(value)))
		}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return len(s) < minSecret })
	slices.Sort(found)
	return slices.Compact(found)
}

// bare is the secret in a header's value such as "Bearer secret".
func bare(s string) string {
	return s[strings.LastIndexByte(s, ' ')+1:]
}

func secretsUnder(v any, secret bool) []string {
	var found []string
	switch v := v.(type) {
	case string:
		if secret {
			found = append(found, bare(v))
		}
	case []any:
		for _, e := range v {
			found = append(found, secretsUnder(e, secret)...)
		}
	case map[string]any:
		for k, e := range v {
			found = append(found, secretsUnder(e, secret || secretName(k))...)
		}
	}
	return found
}
