package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"
)

// Servers reads a file of MCP servers, in the form that programs share: an object
// mcpServers, by name, or what would stand in it alone. Variables in it are
// expanded; a server that names one which is not set is left out, and said to be.
func Servers(text []byte, getenv func(string) string) (servers map[string]json.RawMessage, skipped []error, err error) {
	src, err := parse(mcpServers, text)
	if err != nil {
		return nil, nil, err
	}
	src.root.Standardize()
	var file map[string]json.RawMessage
	if json.Unmarshal(src.root.Pack(), &file) != nil {
		return nil, nil, errors.New("want an object with mcpServers")
	}
	if inner, ok := file[mcpServers]; ok {
		if file = nil; json.Unmarshal(inner, &file) != nil {
			return nil, nil, errors.New("mcpServers: want an object")
		}
	}
	y := layer{loader: newLoader(Options{Getenv: getenv}), src: src}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		entry, err := hujson.Parse(file[name])
		if err == nil {
			err = y.expandAll(y.root.byName[mcpServers], &entry)
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("%s.%s: %w", mcpServers, name, err))
			delete(file, name)
			continue
		}
		file[name] = entry.Pack()
	}
	return file, skipped, nil
}

const mcpServers = "mcpServers"

// DropServer is a file of settings, or of MCP servers, without one of them. All
// else stays as it is. It reports whether the server was there.
func DropServer(content []byte, name string) (without []byte, found bool, err error) {
	src, err := parse("settings", content)
	if err != nil {
		return nil, false, err
	}
	file, err := asObject(src.root)
	if err != nil {
		return nil, false, err
	}
	for _, m := range file.Members {
		servers, ok := m.Value.Value.(*hujson.Object)
		if memberName(m) != mcpServers || !ok {
			continue
		}
		before := len(servers.Members)
		servers.Members = slices.DeleteFunc(servers.Members, func(m hujson.ObjectMember) bool { return memberName(m) == name })
		found = len(servers.Members) < before
	}
	return src.root.Pack(), found, nil
}
