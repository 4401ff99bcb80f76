package cli

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/rerun"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/worktree"
	"coder/internal/policy/judge"
	"coder/internal/record/session"
	"coder/internal/report/fulltext"
	"coder/internal/report/ledger"
	"coder/internal/ui/events"
)

// schemaVersion increases when a program that reads by the schema would have to change.
const schemaVersion = 1

// outputs are what the commands print with --json: one value, or one in each line.
var outputs = map[string]any{
	"audit": auditRow{}, "blame": []originRow{}, "config": []settingRow{}, "config get": settingRow{},
	"config set": settingChange{},
	"context":    ledger.Ledger{}, "doctor": doctorReport{}, "golden list": []string{}, "golden run": []goldenResult{},
	"mcp": []mcpRow{}, "models": endpointList{},
	"plugin": []pluginRow{}, "policy check": policyVerdict{}, "policy list": []judge.ListedGrant{},
	"policy test": policyTestResult{},
	"prune":       pruneReport{}, "replay": rerun.Report{}, "search": []fulltext.Result{}, "sessions": []session.Head{},
	"sessions from": []foreignRow{},
	"tasks":         []taskRow{}, "trust": trustReport{}, "usage": usageReport{}, "version": app.Build{},
	"why":           []originRow{},
	"worktree list": []worktree.Entry{},
}

// durable are the events on record.
var durable = []event.Event{
	event.TaskCreated{}, event.TaskStarted{}, event.TaskCompleted{}, event.TaskFailed{}, event.TaskCanceled{},
	event.InteractionRequested{},
	event.InteractionResponded{}, event.ToolCallRequested{}, event.ToolCallCompleted{}, event.MessageAdded{},
	event.LocalAdded{}, event.Spent{},
	event.TodosChanged{}, event.ModeChanged{}, event.ContextReplaced{}, event.ContextRestored{}, event.ContextRewound{},
}

// shape is JSON Schema.
type shape map[string]any

// runEvents prints the schema of the events and of what commands print for programs.
func (inv *invocation) runEvents(context.Context) error {
	text, err := json.MarshalIndent(programSchema(), "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(inv.Stdout, "%s\n", text)
	}
	return err
}

func programSchema() shape {
	d := definitions{all: shape{}, types: map[string]reflect.Type{}}
	d.byHand()
	var lines []any
	add := func(name string, version int, saved bool, payload any) {
		envelope := shape{
			"type": shape{"const": name}, "v": shape{"const": version}, "sessionId": shape{"type": "string"},
			"streamId": shape{"type": "string"},
			"actor":    shape{"type": "string"}, "createdAt": shape{"type": "string", "format": "date-time"},
			"payload": d.of(reflect.TypeOf(payload)),
		}
		required := []string{"type", "v", "sessionId", "streamId", "createdAt", "payload"}
		if saved {
			envelope["seq"], envelope["seal"] = shape{"type": "integer"}, shape{"type": "string"}
			required = append(required, "seq")
		}
		d.all[name+"Event"] = object(envelope, required)
		lines = append(lines, ref(name+"Event"))
	}
	for _, e := range durable {
		name, version := event.WireName(e)
		add(name, version, true, e)
	}
	transients := events.Transients()
	for _, name := range slices.Sorted(maps.Keys(transients)) {
		add(name, events.SightVersion, false, transients[name])
	}
	printed := shape{}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		printed[name] = d.of(reflect.TypeOf(outputs[name]))
	}
	d.all["Event"], d.all["Outputs"] = shape{"anyOf": lines}, object(printed, nil)
	return shape{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "coder for programs", "version": schemaVersion,
		"description": "Event is a line of --events native; Outputs has, by command, what the command prints with --json. Members may be added; ignore unknown ones.",
		"$ref":        "#/$defs/Event", "$defs": d.all,
	}
}

func ref(name string) shape { return shape{"$ref": "#/$defs/" + name} }

func object(properties shape, required []string) shape {
	s := shape{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

// definitions collects the shapes of types by name.
type definitions struct {
	all   shape
	types map[string]reflect.Type
}

// byHand defines what encodes itself, under names that no other type takes.
func (d definitions) byHand() {
	d.types["Message"], d.types["Block"] = reflect.TypeFor[chat.Message](), reflect.TypeFor[display.Blocks]()
	d.types["Display"] = reflect.TypeFor[uip.Display]()
	text := shape{"type": "string"}
	call := object(shape{
		"id": text, "type": text, "function": object(shape{"name": text, "arguments": text}, []string{"name", "arguments"}),
		"broken": text, "extra_content": shape{},
	}, []string{"id", "type", "function"})
	d.all["Message"] = object(shape{
		"role": text, "content": shape{"type": []string{"string", "array", "null"}}, "reasoning": text,
		"reasoning_field": text, "reasoning_details": shape{},
		"tool_calls": shape{"type": "array", "items": call}, "tool_call_id": text, "name": text,
		"failed": shape{"type": "boolean"},
	}, []string{"role", "content"})
	d.all["Block"] = object(shape{
		"kind": text, "text": text, "lang": text, "added": shape{"type": "integer"}, "deleted": shape{"type": "integer"},
		"more": shape{"type": "integer"},
		"head": shape{"type": "array"}, "rows": shape{"type": "array"}, "first": shape{"type": "integer"},
		"checks": shape{"type": "array"}, "shell": shape{"type": "object"},
	}, []string{"kind"})
	d.all["Display"] = object(shape{
		"title": text, "description": text, "content": shape{}, "contentKind": text,
		"metadata": shape{"type": "object", "additionalProperties": text},
	}, []string{"title"})
}

// known are types that encode themselves.
var known = map[reflect.Type]shape{
	reflect.TypeFor[time.Time]():       {"type": "string", "format": "date-time"},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[chat.Message]():    ref("Message"),
	reflect.TypeFor[display.Blocks]():  {"type": []string{"array", "null"}, "items": ref("Block")},
	reflect.TypeFor[uip.Display]():     ref("Display"),
}

// of returns the shape of a type's values in JSON.
func (d definitions) of(t reflect.Type) shape {
	if s, ok := known[t]; ok {
		return s
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return shape{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return shape{"type": "boolean"}
	case reflect.String:
		return shape{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return shape{"type": "number"}
	case reflect.Pointer:
		return shape{"anyOf": []any{d.of(t.Elem()), shape{"type": "null"}}}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return shape{"type": []string{"string", "null"}}
		}
		return shape{"type": []string{"array", "null"}, "items": d.of(t.Elem())}
	case reflect.Map:
		return shape{"type": []string{"object", "null"}, "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	case reflect.Interface:
		return shape{}
	}
	return shape{"type": "integer"}
}

// structure defines a struct under its name, and refers to it.
func (d definitions) structure(t reflect.Type) shape {
	name := strings.ToUpper(t.Name()[:min(1, len(t.Name()))]) + t.Name()[min(1, len(t.Name())):]
	if other, taken := d.types[name]; taken && other != t {
		_, pkg, _ := strings.Cut(t.String(), "*")
		pkg, _, _ = strings.Cut(cmp.Or(pkg, t.String()), ".")
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	if _, done := d.types[name]; !done || name == "" {
		d.types[name] = t
		properties, required := shape{}, []string{}
		d.members(t, properties, &required)
		if name == "" {
			return object(properties, required)
		}
		d.all[name] = object(properties, required)
	}
	return ref(name)
}

// members adds a struct's members, and those of structs in it without a name.
func (d definitions) members(t reflect.Type, properties shape, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			d.members(inner, properties, required)
			continue
		case !f.IsExported(), name == "-":
			continue
		}
		name = cmp.Or(name, f.Name)
		properties[name] = d.of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}
