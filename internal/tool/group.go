package tool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// Group combines several tools that are one idea. They are advertised under one
// name, with an argument that selects the tool, so that their common part is
// described once. Each is judged, recorded and called under its own name.
type Group struct {
	Name, Doc string
	Members   []Member
}

// Member is a tool of a group with its name there.
type Member struct {
	Action string
	Tool   Tool
}

// actionArg is the argument that selects a tool of a group.
const actionArg = "action"

// Spec describes the whole group.
func (g Group) Spec() Spec { return g.specWithout(func(string) bool { return false }) }

// specWithout describes the group without the tools for which off is true.
func (g Group) specWithout(off func(name string) bool) Spec {
	var all properties
	var actions []string
	for _, m := range g.Members {
		spec := m.Tool.Spec()
		if off(spec.Name) {
			continue
		}
		own := spec.properties
		for _, p := range own.all {
			if !slices.ContainsFunc(all.all, func(q property) bool { return q.name == p.name }) {
				all.all = append(all.all, p)
			}
		}
		if actions = append(actions, m.Action); len(actions) == 1 {
			all.required = slices.Clone(own.required)
		}
		all.required = slices.DeleteFunc(all.required, func(name string) bool { return !slices.Contains(own.required, name) })
	}
	which := append(appendList([]byte(`{"enum":`), actions), `,"type":"string"}`...)
	all.all = append(all.all, property{actionArg, which})
	all.required = slices.Insert(all.required, 0, actionArg)
	return Spec{Name: g.Name, Doc: strings.TrimSpace(g.Doc), Class: ClassOf(g.Name), Schema: all.schema()}
}

// Select returns the tool that a call of the group selects, and its arguments.
// A call without arguments selects the tool that needs none.
func (g Group) Select(args json.RawMessage) (Tool, json.RawMessage, error) {
	var given map[string]json.RawMessage
	if len(args) > 0 && json.Unmarshal(args, &given) != nil {
		return nil, nil, &ArgumentError{g.Name, errors.New("arguments must be a JSON object")}
	}
	var action string
	_ = json.Unmarshal(given[actionArg], &action) // anything but a string selects no tool
	var actions []string
	for _, m := range g.Members {
		if len(given) == 0 && len(m.Tool.Spec().properties.required) == 0 || fold(m.Action) == fold(action) ||
			fold(m.Tool.Spec().Name) == fold(action) {
			delete(given, actionArg)
			return m.Tool, jsonx.MustMarshal(given), nil
		}
		actions = append(actions, m.Action)
	}
	return nil, nil, &ArgumentError{g.Name, message.Errorf("argument %q must be one of %s", actionArg,
		strings.Join(actions, ", "))}
}

// Prepare returns an error: coder prepares and judges the selected tool instead.
func (g Group) Prepare(context.Context, json.RawMessage) (Call, error) {
	return nil, message.Errorf("%s is a group of tools", g.Name)
}
