// Package hooks runs commands of people's own on events of a session, in the form
// they have them for other agents: JSON on standard input, exit code 2 or JSON on
// standard output for a decision.
//
//  1. What a hook does is a call of the session: confined, on record before it
//     begins and when it ended, undone with its turn.
//  2. Of what the hooks of an event say the strictest counts. One that fails says so
//     once and holds nothing up, unless it was written to.
//  3. Only the person's own hooks can let something pass unasked, and only what
//     policy merely asks about.
package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/nearest"
)

// Event is something hooks can be run on, by the name people write.
type Event string

// The events.
const (
	PreToolUse       Event = "PreToolUse"
	PostToolUse      Event = "PostToolUse"
	PostToolFailure  Event = "PostToolUseFailure"
	UserPromptSubmit Event = "UserPromptSubmit"
	SessionStart     Event = "SessionStart"
	SessionEnd       Event = "SessionEnd"
	Stop             Event = "Stop"
	SubagentStart    Event = "SubagentStart"
	SubagentStop     Event = "SubagentStop"
	PreCompact       Event = "PreCompact"
	Notification     Event = "Notification"
)

// Events are all of them.
var Events = []Event{PreToolUse, PostToolUse, PostToolFailure, UserPromptSubmit, SessionStart, SessionEnd, Stop, SubagentStart, SubagentStop, PreCompact, Notification}

// Hook is a command to be run on an event.
type Hook struct {
	Event   Event
	Matcher string
	Command string
	Args    []string
	// Callback, in place of a command, is a function of the program that drives
	// the session.
	Callback string
	Timeout  time.Duration
	Own      bool     // the person's, not a project's
	Plugin   string   // the name of the plugin it belongs to, if any
	Root     string   // and its folder
	Hide     []string // what it must not see
	Once     bool     // in a session
	Quiet    bool     // its decision does not count
	Blocks   bool     // if it fails it counts as a refusal

	names *regexp.Regexp // what Matcher matches, if not everything
}

const (
	defaultTimeout = time.Minute
	maxTimeout     = 10 * time.Minute
	maxHooks       = 200
)

// written is a group of hooks as people write it.
type written struct {
	Matcher string `json:"matcher"`
	Hooks   []struct {
		Type      string   `json:"type"`
		Command   string   `json:"command"`
		Args      []string `json:"args"`
		Timeout   float64  `json:"timeout"`
		If        string   `json:"if"`
		Async     bool     `json:"async"`
		Once      bool     `json:"once"`
		OnFailure string   `json:"onFailure"`
	} `json:"hooks"`
}

// Source is where hooks were written down.
type Source struct {
	Own    bool     // the person's
	Plugin string   // the name of a plugin
	Root   string   // and its folder
	Hide   []string // what its hooks must not see, by full paths
}

// Read reads hooks by their events. What it cannot use it says and leaves out; an
// error is a mistake in what would otherwise hold something back.
func Read(by map[string]json.RawMessage, from Source) (list []Hook, skipped []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(Events, Event(name)) {
			skipped = append(skipped, unknown(name))
			continue
		}
		var groups []written
		dec := json.NewDecoder(bytes.NewReader(by[name]))
		if err := dec.Decode(&groups); err != nil {
			return nil, skipped, fmt.Errorf(`hooks.%s: expected a list of {"matcher", "hooks": [{"type": "command", "command": …}]}: %w`, name, jsonx.Misfit(err, written{}))
		}
		for _, g := range groups {
			names, err := matcher(g.Matcher)
			if err != nil {
				return nil, skipped, fmt.Errorf("hooks.%s: matcher %q: %w", name, g.Matcher, err)
			}
			if len(g.Hooks) == 0 { // whoever wrote it relies on it
				return nil, skipped, fmt.Errorf("hooks.%s: a group has no \"hooks\": [{\"type\": \"command\", \"command\": …}]", name)
			}
			for _, w := range g.Hooks {
				if w.Type != "command" && w.Type != "" {
					skipped = append(skipped, fmt.Sprintf("hooks.%s: hooks of type %s are not supported, only commands", name, w.Type))
					continue
				}
				if strings.TrimSpace(w.Command) == "" {
					return nil, skipped, fmt.Errorf("hooks.%s: a hook has no command", name)
				}
				if w.If != "" {
					skipped = append(skipped, fmt.Sprintf(`hooks.%s: %q runs on every call that its matcher matches: "if" is ignored`, name, w.Command))
				}
				list = append(list, Hook{
					Event: Event(name), Matcher: g.Matcher, Command: w.Command, Args: w.Args, Timeout: timeout(w.Timeout), Own: from.Own,
					Plugin: from.Plugin, Root: from.Root, Hide: from.Hide, Once: w.Once, Quiet: w.Async, Blocks: w.OnFailure == "block", names: names,
				})
			}
		}
	}
	if len(list) > maxHooks {
		return nil, skipped, fmt.Errorf("too many hooks: %d, at most %d", len(list), maxHooks)
	}
	return list, skipped, nil
}

// Callbacks reads the functions that the program which drives a session wants
// called on events. They count as the person's own.
func Callbacks(by map[string][]CallbackGroup) (list []Hook, skipped []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(Events, Event(name)) {
			skipped = append(skipped, unknown(name))
			continue
		}
		for _, g := range by[name] {
			names, err := matcher(g.Matcher)
			if err != nil {
				return nil, skipped, fmt.Errorf("hooks.%s: matcher %q: %w", name, g.Matcher, err)
			}
			for _, id := range g.IDs {
				list = append(list, Hook{
					Event: Event(name), Matcher: g.Matcher, Callback: id, Timeout: timeout(g.Timeout), Own: true,
					Blocks: g.OnFailure != "" && g.OnFailure != "continue", names: names,
				})
			}
		}
	}
	if len(list) > maxHooks {
		return nil, skipped, fmt.Errorf("too many hooks: %d, at most %d", len(list), maxHooks)
	}
	return list, skipped, nil
}

// CallbackGroup is functions with one matcher, as the program sends them.
type CallbackGroup struct {
	Matcher   string   `json:"matcher"`
	IDs       []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout"`
	OnFailure string   `json:"onFailure"`
}

// unknown says that there is no event of a name, and which there are.
func unknown(name string) string {
	var names []string
	for _, e := range Events {
		names = append(names, string(e))
	}
	if near := nearest.Of(name, names); near != "" {
		return fmt.Sprintf("hooks.%s: unknown event; did you mean %s?", name, near)
	}
	return fmt.Sprintf("hooks.%s: unknown event; the events are %s", name, strings.Join(names, ", "))
}

// timeout reads seconds. Where they are so many that they must be meant as
// milliseconds they are taken as such.
func timeout(seconds float64) time.Duration {
	switch {
	case seconds <= 0:
		return defaultTimeout
	case seconds >= 1000:
		seconds /= 1000
	}
	return min(time.Duration(seconds*float64(time.Second)), maxTimeout)
}

// matcher reads which whole names hooks are run for; nil is for all. A list of
// names is an expression, too.
func matcher(text string) (*regexp.Regexp, error) {
	if text == "" || text == "*" {
		return nil, nil
	}
	return regexp.Compile("^(?:" + text + ")$")
}

// matches reports whether a hook is run for something known by any of names.
func (h Hook) matches(e Event, names ...string) bool {
	return h.Event == e && (h.names == nil || len(names) == 0 || slices.ContainsFunc(names, h.names.MatchString))
}
