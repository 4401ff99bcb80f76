package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/dialect"
)

// Actor is who the record names for what hooks do.
const Actor = "hook"

// Options are what hooks run with. All fields are required.
type Options struct {
	Hooks  []Hook
	Runner *toolrun.Runner // runs each event's hooks as a call
	Tool   tool.Tool       // [bash.Hook]
	NewID  func(prefix string) string
	Facts  func() Facts
	// Holds reports whether a plugin's folder is still what the person agreed to:
	// else its hooks are not run.
	Holds func(root string) bool
}

// Facts are what every hook is told of the session.
type Facts struct {
	Session    string // its id
	Transcript string // a file with what was said
	Root       string // of the workspace
	Mode       string
}

// Hooks runs the hooks of one session. The nil Hooks has none.
type Hooks struct {
	Options
	set tool.Set

	mu   sync.Mutex // guards the fields below
	ran  map[string]bool
	told map[string]bool
}

// New returns Hooks, nil if there are none.
func New(o Options) (*Hooks, error) {
	if len(o.Hooks) == 0 {
		return nil, nil
	}
	set, err := tool.NewSet(o.Tool)
	if err != nil {
		return nil, err
	}
	return &Hooks{Options: o, set: set, ran: make(map[string]bool), told: make(map[string]bool)}, nil
}

// On reports whether there are hooks for an event.
func (h *Hooks) On(e Event) bool {
	if h == nil {
		return false
	}
	for _, one := range h.Hooks {
		if one.Event == e {
			return true
		}
	}
	return false
}

// Scene is where in a session something happens: what the record says of it, and
// who sees it.
type Scene struct {
	Task string
	Sink event.Sink
}

// Fire runs the hooks of an event side by side and returns what they say
// together. Names are what the event is about, for their matchers; fields are
// told to them beside what they are always told. Its error is of the record or
// the context, never of a hook.
func (h *Hooks) Fire(ctx context.Context, at Scene, e Event, names []string, fields map[string]any) (toolrun.Ruling, error) {
	chosen := slices.DeleteFunc(h.choose(e, names), func(c Hook) bool {
		gone := c.Root != "" && !h.Holds(c.Root)
		if gone {
			h.tellOnce(ctx, at, fmt.Sprintf("the plugin in %s was changed: its hooks are off", c.Root))
		}
		return gone
	})
	if len(chosen) == 0 {
		return toolrun.Ruling{}, nil
	}
	facts := h.Facts()
	input := map[string]any{
		"session_id": facts.Session, "transcript_path": facts.Transcript, "cwd": facts.Root, "hook_event_name": e, "permission_mode": OutwardMode(facts.Mode),
	}
	for name, value := range fields {
		input[name] = value
	}
	run := bash.HookRun{Event: string(e), Input: jsonx.Must(input)}
	for _, c := range chosen {
		env := []string{"CLAUDE_PROJECT_DIR=" + facts.Root, "CODER_PROJECT_DIR=" + facts.Root}
		if c.Root != "" {
			for name, value := range PluginEnv(c.Root) {
				env = append(env, name+"="+value)
			}
			slices.Sort(env)
			c = c.inPlugin()
		}
		if c.Callback != "" {
			env = nil
		}
		run.Commands = append(run.Commands, bash.HookCommand{Command: c.Command, Args: c.Args, Callback: c.Callback, Seconds: c.Timeout.Seconds(), Env: env})
	}
	results, err := h.run(ctx, at, run)
	if err != nil {
		return toolrun.Ruling{}, err
	}
	var sum toolrun.Ruling
	for i, r := range results.Hooks {
		if i < len(chosen) {
			h.add(ctx, at, &sum, chosen[i], r)
		}
	}
	return sum, nil
}

// PluginEnv is what programs of a plugin find in their environment beside what
// others do. The folder of a plugin must stay as it is, so nothing is to be
// compiled into it.
func PluginEnv(root string) map[string]string {
	return map[string]string{pluginRoot: root, "PYTHONDONTWRITEBYTECODE": "1"}
}

const pluginRoot = "CLAUDE_PLUGIN_ROOT"

// inPlugin is a hook with the folder of its plugin put in. A path that a shell
// would read more into is left for the shell to put in.
func (h Hook) inPlugin() Hook {
	const name = "${" + pluginRoot + "}"
	if plain := strings.IndexFunc(h.Root, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@", r)
	}) < 0; plain || len(h.Args) > 0 {
		h.Command = strings.ReplaceAll(h.Command, name, h.Root)
	}
	h.Args = slices.Clone(h.Args)
	for i, arg := range h.Args {
		h.Args[i] = strings.ReplaceAll(arg, name, h.Root)
	}
	return h
}

// choose are the hooks to run, each command once.
func (h *Hooks) choose(e Event, names []string) (chosen []Hook) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool)
	for _, one := range h.Hooks {
		key := strings.Join(append([]string{one.Root, one.Command, one.Callback}, one.Args...), "\x00")
		if !one.matches(e, names...) || seen[key] || one.Once && h.ran[string(e)+key] {
			continue
		}
		seen[key], h.ran[string(e)+key] = true, true
		chosen = append(chosen, one)
	}
	return chosen
}

// run puts the hooks of one event through as one call. They are people's own
// commands, so nobody is asked about them; that they run is not shown.
func (h *Hooks) run(ctx context.Context, at Scene, run bash.HookRun) (results bash.HookResults, err error) {
	quiet := event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch r.Event.(type) {
		case event.ToolStarted, event.ToolOutput, event.ToolFinished:
			return nil
		}
		return at.Sink.Emit(ctx, r)
	})
	err = h.Runner.Run(ctx, toolrun.Round{
		Task: at.Task, Actor: Actor, Direct: true, Set: h.set, Person: uip.Nobody, Sink: quiet,
		Calls: []chat.ToolCall{{ID: h.NewID("hook"), Name: bash.HookTool, Args: jsonx.Must(run)}},
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			if json.Unmarshal([]byte(out.Result.Text), &results) != nil || len(results.Hooks) == 0 { // it did not get as far as running them
				for range run.Commands {
					results.Hooks = append(results.Hooks, tool.ShellResult{ExitCode: -1, Error: clip.Text(out.Result.Text, 500)})
				}
			}
			return nil
		},
	})
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return results, err
}

// output is what a hook may write on standard output.
type output struct {
	Continue      *bool  `json:"continue"`
	StopReason    string `json:"stopReason"`
	SystemMessage string `json:"systemMessage"`
	Decision      string `json:"decision"`
	Reason        string `json:"reason"`
	Specific      struct {
		Event      string          `json:"hookEventName"`
		Permission string          `json:"permissionDecision"`
		Reason     string          `json:"permissionDecisionReason"`
		Input      json.RawMessage `json:"updatedInput"`
		Context    string          `json:"additionalContext"`
		Output     json.RawMessage `json:"updatedToolOutput"`
		MCPOutput  json.RawMessage `json:"updatedMCPToolOutput"`
	} `json:"hookSpecificOutput"`
}

// Bounds of what a hook can say.
const (
	maxReason  = 4000
	maxContext = 16000
)

// add adds what one hook says to what the others do.
func (h *Hooks) add(ctx context.Context, at Scene, sum *toolrun.Ruling, hook Hook, r tool.ShellResult) {
	text := strings.TrimSpace(r.Stdout)
	switch {
	case r.ExitCode == 2 && !r.TimedOut:
		if !hook.Quiet {
			deny(sum, cmp.Or(clip.Text(strings.TrimSpace(r.Stderr), maxReason), "a hook refused it"))
		}
		return
	case r.ExitCode != 0:
		why := fmt.Sprintf("%s hook %s: %s", hook.Event, hook.name(), cmp.Or(r.Error, "it could not be run"))
		if line, _, _ := strings.Cut(strings.TrimSpace(r.Stderr), "\n"); line != "" {
			why += ": " + clip.Text(line, 200)
		}
		if r.Sandbox != "" {
			why += " (" + r.Sandbox + ")"
		}
		if hook.Blocks {
			deny(sum, why)
			return
		}
		h.tellOnce(ctx, at, why)
		return
	}
	var out output
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &out) != nil {
		if text != "" && (hook.Event == UserPromptSubmit || hook.Event == SessionStart) {
			sum.Notes = append(sum.Notes, clip.Text(text, maxContext))
		}
		return
	}
	if out.SystemMessage != "" {
		tell(ctx, at, event.Info, clip.Text(out.SystemMessage, maxReason))
	}
	if hook.Quiet {
		return
	}
	if out.Continue != nil && !*out.Continue && sum.Stop == "" {
		sum.Stop = clip.Text(cmp.Or(out.StopReason, "a hook said to stop"), maxReason)
	}
	reason := clip.Text(cmp.Or(out.Reason, out.Specific.Reason), maxReason)
	switch {
	case out.Decision == "block":
		deny(sum, cmp.Or(reason, "a hook refused it"))
	case out.Decision == "approve" && hook.Event == PreToolUse:
		sum.Allow = sum.Allow || hook.Own
	}
	if out.Specific.Event != "" && out.Specific.Event != string(hook.Event) {
		h.tellOnce(ctx, at, fmt.Sprintf("%s hook %s: it answered for %s, which was passed over", hook.Event, hook.name(), out.Specific.Event))
		return
	}
	switch s := out.Specific; s.Permission {
	case "deny":
		deny(sum, cmp.Or(clip.Text(s.Reason, maxReason), "a hook refused it"))
	case "ask":
		sum.Ask = cmp.Or(sum.Ask, reason, "a hook wants it asked about")
	case "allow":
		sum.Allow = sum.Allow || hook.Own
	}
	if len(out.Specific.Input) > 0 && string(out.Specific.Input) != "null" {
		sum.Input = out.Specific.Input
	}
	if out.Specific.Context != "" {
		sum.Notes = append(sum.Notes, clip.Text(out.Specific.Context, maxContext))
	}
	for _, o := range []json.RawMessage{out.Specific.Output, out.Specific.MCPOutput} {
		if len(o) > 0 && string(o) != "null" {
			sum.Output = o
		}
	}
}

// name is what people are told of a hook by.
func (h Hook) name() string { return clip.Text(cmp.Or(h.Command, h.Callback), 120) }

func deny(sum *toolrun.Ruling, why string) { sum.Deny = cmp.Or(sum.Deny, why) }

// tellOnce tells the person of a hook that does not work, once in a session.
func (h *Hooks) tellOnce(ctx context.Context, at Scene, text string) {
	h.mu.Lock()
	told := h.told[text]
	h.told[text] = true
	h.mu.Unlock()
	if !told {
		tell(ctx, at, event.Warn, text)
	}
}

func tell(ctx context.Context, at Scene, l event.Level, text string) {
	_ = at.Sink.Emit(context.WithoutCancel(ctx), event.Record{Task: at.Task, Actor: Actor, Event: event.Notice{Level: l, Text: text}})
}

// modes are the names of our modes in programs written for another agent.
var modes = map[string]string{"build": "default", "auto-edit": "acceptEdits", "yolo": "bypassPermissions"}

// OutwardMode is the name of a mode as hooks know it.
func OutwardMode(mode string) string { return cmp.Or(modes[mode], mode) }

// InwardMode is our name of a mode that programs written for another agent know
// by theirs.
func InwardMode(theirs string) string {
	for ours, name := range modes {
		if name == theirs {
			return ours
		}
	}
	return theirs
}

// Before runs the hooks that come before a call.
func (h *Hooks) Before(ctx context.Context, r toolrun.Round, c toolrun.HookedCall) (toolrun.Ruling, error) {
	names, fields := h.about(c)
	return h.Fire(ctx, Scene{r.Task, r.Sink}, PreToolUse, names, fields)
}

// After runs those that come after it.
func (h *Hooks) After(ctx context.Context, r toolrun.Round, c toolrun.HookedCall, output json.RawMessage, took time.Duration) (toolrun.Ruling, error) {
	names, fields := h.about(c)
	fields["tool_response"], fields["duration_ms"] = output, took.Milliseconds()
	return h.Fire(context.WithoutCancel(ctx), Scene{r.Task, r.Sink}, PostToolUse, names, fields)
}

// about is a call as hooks know it, under our name for it and theirs.
func (h *Hooks) about(c toolrun.HookedCall) (names []string, fields map[string]any) {
	name, args := dialect.Outward(c.Tool, c.Args, h.Facts().Root)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return []string{name, c.Tool}, map[string]any{"tool_name": name, "tool_input": args, "tool_use_id": c.ID}
}
