package config

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/tailscale/hujson"
)

// ParseServers parses a file with MCP servers in the common form: an object mcpServers, by name, or
// only the content of that object. It expands variables, and returns a server with an unset
// variable as skipped. It uses no variable for which withheld, which may be nil, returns true.
func ParseServers(text []byte, getenv func(string) string,
	withheld func(string) bool) (servers map[string]json.RawMessage, skipped []Skipped, err error) {
	src, err := parseConfig(mcpServers, text)
	if err != nil {
		return nil, nil, err
	}
	src.root.Standardize()
	var file map[string]json.RawMessage
	if json.Unmarshal(src.root.Pack(), &file) != nil {
		return nil, nil, errors.New("expected an object with mcpServers")
	}
	if inner, ok := file[mcpServers]; ok {
		if file = nil; json.Unmarshal(inner, &file) != nil {
			return nil, nil, errors.New("mcpServers: expected an object")
		}
	}
	y := layer{loader: newLoader(Options{Getenv: getenv}), source: src, isWithheld: withheld}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		entry, err := hujson.Parse(file[name])
		if err == nil {
			err = y.expandStrings(y.root.childByName[mcpServers], &entry)
		}
		if err != nil {
			skipped = append(skipped, Skipped{name, err, isDisabled(entry)})
			delete(file, name)
			continue
		}
		file[name] = entry.Pack()
	}
	return file, skipped, nil
}

// Skipped is a server that is unusable as written.
type Skipped struct {
	Name     string
	Err      error
	Disabled bool // it would not start anyway
}

const mcpServers = "mcpServers"

// skipServer reports whether to skip an MCP server in this layer: it has a
// variable that it must not use, or it is a project's and the user has one
// with the same name. The user's servers are never merged with a project's.
func (y *layer) skipServer(name string, entry hujson.Value, err error, at Origin) bool {
	same := func(l SkippedServer) bool { return l.Name == name && l.Project == y.projectServers[name] }
	_, there := y.cfg.MCPServers[name]
	if y.project && !y.projectServers[name] && (there || slices.ContainsFunc(y.report.SkippedServers, same)) {
		err = errors.New("you already have one of that name")
	}
	if !y.project && (err != nil || y.projectServers[name]) {
		delete(y.cfg.MCPServers, name)
	}
	if err == nil {
		y.projectServers[name] = y.project
		y.report.SkippedServers = slices.DeleteFunc(y.report.SkippedServers, same)
		return false
	}
	y.report.SkippedServers = append(y.report.SkippedServers,
		SkippedServer{Skipped{name, err, isDisabled(entry)}, at, y.project})
	return true
}

// isDisabled reports whether a server is switched off.
func isDisabled(entry hujson.Value) bool {
	standard := entry.Clone()
	standard.Standardize()
	var is struct{ Disabled bool }
	return json.Unmarshal(standard.Pack(), &is) == nil && is.Disabled
}

// RemoveServer returns a file of settings, or of MCP servers, without one of
// its servers. The rest is unchanged. It reports whether the server existed.
func RemoveServer(content []byte, name string) (without []byte, found bool, err error) {
	src, err := parseConfig("settings", content)
	if err != nil {
		return nil, false, err
	}
	file, err := toObject(src.root)
	if err != nil {
		return nil, false, err
	}
	for _, m := range file.Members {
		servers, ok := m.Value.Value.(*hujson.Object)
		if memberName(m) != mcpServers || !ok {
			continue
		}
		before := len(servers.Members)
		servers.Members = slices.DeleteFunc(servers.Members,
			func(m hujson.ObjectMember) bool { return memberName(m) == name })
		found = len(servers.Members) < before
	}
	return src.root.Pack(), found, nil
}
