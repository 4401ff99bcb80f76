// Package hooks runs the user's commands on events of a session, in the form that other
// agents use: JSON on standard input, exit code 2 or JSON on standard output for a decision.
//
//  1. Running a hook is a call in the session: confined, recorded before it begins
//     and when it ended, undone with its turn.
//  2. Of the decisions on one event, the strictest counts. A failing hook is reported
//     once and blocks nothing, unless it was written to block.
//  3. Only the user's own hooks can allow a call without approval, and only if
//     the policy's verdict is ask.
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
	"coder/internal/core/message"
	"coder/internal/core/nearest"
)

// Event is the name of an event that hooks can run on.
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

// Events lists all events.
var Events = []Event{PreToolUse, PostToolUse, PostToolFailure, UserPromptSubmit, SessionStart, SessionEnd, Stop,
	SubagentStart, SubagentStop, PreCompact, Notification}

// Hook is a command to run on an event.
type Hook struct {
	Event   Event
	Matcher string
	Command string
	Args    []string
	// Callback, instead of a command, is a function in the program that drives the session.
	Callback       string
	Timeout        time.Duration
	FromUser       bool     // the user's, not a project's
	Plugin         string   // the name of its plugin, if any
	PluginRoot     string   // and its folder
	HiddenPaths    []string // paths hidden from it
	Once           bool     // run it once per session
	IgnoreDecision bool     // ignore its decision
	DenyOnFailure  bool     // treat its failure as a denial

	matcherPattern *regexp.Regexp // the parsed Matcher; nil matches everything
}

const (
	defaultTimeout = time.Minute
	maxTimeout     = 10 * time.Minute
	maxHooks       = 200
)

// hookGroup is a group of hooks in the user's notation.
type hookGroup struct {
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

// Source is where hooks come from.
type Source struct {
	FromUser    bool     // the user's
	Plugin      string   // the name of a plugin
	PluginRoot  string   // and its folder
	HiddenPaths []string // full paths to hide from its hooks
}

// Parse parses hooks by event. It reports and skips unusable entries; an
// error is a mistake in a hook that would otherwise block something.
func Parse(by map[string]json.RawMessage, from Source) (list []Hook, skipped []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(Events, Event(name)) {
			skipped = append(skipped, unknownEventMessage(name))
			continue
		}
		var groups []hookGroup
		dec := json.NewDecoder(bytes.NewReader(by[name]))
		if err := dec.Decode(&groups); err != nil {
			return nil, skipped,
				message.Errorf(`hooks.%s: expected a list of {"matcher", "hooks": [{"type": "command", "command": …}]}: %w`, name,
					jsonx.ExplainMismatch(err, hookGroup{}))
		}
		for _, g := range groups {
			names, err := parseMatcher(g.Matcher)
			if err != nil {
				return nil, skipped, message.Errorf("hooks.%s: matcher %q: %w", name, g.Matcher, err)
			}
			if len(g.Hooks) == 0 { // the author relies on it
				return nil, skipped,
					message.Errorf("hooks.%s: a group has no \"hooks\": [{\"type\": \"command\", \"command\": …}]",
						name)
			}
			for _, w := range g.Hooks {
				if w.Type != "command" && w.Type != "" {
					skipped = append(skipped, fmt.Sprintf("hooks.%s: hooks of type %s are not supported, only commands", name, w.Type))
					continue
				}
				if strings.TrimSpace(w.Command) == "" {
					return nil, skipped, message.Errorf("hooks.%s: a hook has no command", name)
				}
				if w.If != "" {
					skipped = append(skipped, fmt.Sprintf(`hooks.%s: %q runs on every call that its matcher matches: "if" is ignored`,
						name, w.Command))
				}
				list = append(list, Hook{
					Event: Event(name), Matcher: g.Matcher, Command: w.Command, Args: w.Args, Timeout: parseTimeout(w.Timeout),
					FromUser: from.FromUser,
					Plugin:   from.Plugin, PluginRoot: from.PluginRoot, HiddenPaths: from.HiddenPaths, Once: w.Once,
					IgnoreDecision: w.Async, DenyOnFailure: w.OnFailure == "block", matcherPattern: names,
				})
			}
		}
	}
	if len(list) > maxHooks {
		return nil, skipped, message.Errorf("too many hooks: %d, at most %d", len(list), maxHooks)
	}
	return list, skipped, nil
}

// ParseCallbacks parses the functions that the driving program
// wants called on events. They count as the user's own.
func ParseCallbacks(by map[string][]CallbackGroup) (list []Hook, skipped []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(Events, Event(name)) {
			skipped = append(skipped, unknownEventMessage(name))
			continue
		}
		for _, g := range by[name] {
			names, err := parseMatcher(g.Matcher)
			if err != nil {
				return nil, skipped, message.Errorf("hooks.%s: matcher %q: %w", name, g.Matcher, err)
			}
			for _, id := range g.IDs {
				list = append(list, Hook{
					Event: Event(name), Matcher: g.Matcher, Callback: id, Timeout: parseTimeout(g.Timeout), FromUser: true,
					DenyOnFailure: g.OnFailure != "" && g.OnFailure != "continue", matcherPattern: names,
				})
			}
		}
	}
	if len(list) > maxHooks {
		return nil, skipped, message.Errorf("too many hooks: %d, at most %d", len(list), maxHooks)
	}
	return list, skipped, nil
}

// CallbackGroup is a list of functions with one matcher, as the program sends it.
type CallbackGroup struct {
	Matcher   string   `json:"matcher"`
	IDs       []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout"`
	OnFailure string   `json:"onFailure"`
}

// unknownEventMessage reports an unknown event and lists the known ones.
func unknownEventMessage(name string) string {
	var names []string
	for _, e := range Events {
		names = append(names, string(e))
	}
	if near := nearest.Find(name, names); near != "" {
		return fmt.Sprintf("hooks.%s: unknown event; did you mean %s?", name, near)
	}
	return fmt.Sprintf("hooks.%s: unknown event; the events are %s", name, strings.Join(names, ", "))
}

// parseTimeout parses seconds. A very large number must mean milliseconds, and counts as such.
func parseTimeout(seconds float64) time.Duration {
	switch {
	case seconds <= 0:
		return defaultTimeout
	case seconds >= 1000:
		seconds /= 1000
	}
	return min(time.Duration(seconds*float64(time.Second)), maxTimeout)
}

// parseMatcher parses the pattern for whole names; nil matches all. A list of names is also an expression.
func parseMatcher(text string) (*regexp.Regexp, error) {
	if text == "" || text == "*" {
		return nil, nil
	}
	return regexp.Compile("^(?:" + text + ")$")
}

// matches reports whether a hook applies to something known by any of names.
func (h Hook) matches(e Event, names ...string) bool {
	return h.Event == e && (h.matcherPattern == nil || len(names) == 0 ||
		slices.ContainsFunc(names, h.matcherPattern.MatchString))
}
