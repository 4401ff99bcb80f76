package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/dialect"
)

// ActorHooks is the actor in the records of hooks.
const ActorHooks = "hook"

// Options are the settings for running hooks. All fields are required.
type Options struct {
	Hooks       []Hook
	Runner      *toolrun.Runner // runs each event's hooks as a call
	Tool        tool.Tool       // [bash.Hook]
	NewID       func(prefix string) string
	SessionInfo func() SessionInfo
	// IsTrusted reports whether a plugin's folder is still the content
	// that the user agreed to. Otherwise its hooks do not run.
	IsTrusted func(root string) bool
	Warn      func(string) // shows problems after the session has ended
}

// SessionInfo are the session's details that every hook gets.
type SessionInfo struct {
	Session    string // the session's id
	Transcript string // a file with the conversation
	Root       string // the workspace's root
	Mode       string
}

// Hooks runs one session's hooks. The nil Hooks has none.
type Hooks struct {
	Options
	tools tool.Set

	mu          sync.Mutex // guards the fields below
	onceRun     map[string]bool
	warnedTexts map[string]bool
}

// New returns Hooks, or nil if there are none.
func New(o Options) (*Hooks, error) {
	if len(o.Hooks) == 0 {
		return nil, nil
	}
	set, err := tool.NewSet(o.Tool)
	if err != nil {
		return nil, err
	}
	return &Hooks{Options: o, tools: set, onceRun: make(map[string]bool), warnedTexts: make(map[string]bool)}, nil
}

// Has reports whether there are hooks for an event.
func (h *Hooks) Has(e Event) bool {
	return h != nil && slices.ContainsFunc(h.Hooks, func(one Hook) bool { return one.Event == e })
}

// Origin is where in a session an event happens: its place in the record and its sink.
type Origin struct {
	Task string
	Sink event.Sink
}

// Fire runs an event's hooks in parallel and returns their combined ruling.
// names identify the event's subject for matchers; fields extend the input that
// every hook gets. The error is the record's or the context's, never a hook's.
func (h *Hooks) Fire(ctx context.Context, at Origin, e Event, names []string, fields map[string]any) (toolrun.Ruling,
	error) {
	chosen := slices.DeleteFunc(h.selectHooks(e, names), func(c Hook) bool {
		gone := c.PluginRoot != "" && !h.IsTrusted(c.PluginRoot)
		if gone {
			h.warnOnce(ctx, at, fmt.Sprintf("the plugin in %s changed: its hooks are off", c.PluginRoot))
		}
		return gone
	})
	if len(chosen) == 0 {
		return toolrun.Ruling{}, nil
	}
	facts := h.SessionInfo()
	input := map[string]any{
		"session_id": facts.Session, "transcript_path": facts.Transcript, "cwd": facts.Root, "hook_event_name": e,
		"permission_mode": ExternalMode(facts.Mode),
	}
	maps.Copy(input, fields)
	run := bash.HookRun{Event: string(e), Input: jsonx.MustMarshal(input)}
	for _, c := range chosen {
		env := []string{"CLAUDE_PROJECT_DIR=" + facts.Root, "CODER_PROJECT_DIR=" + facts.Root}
		if c.PluginRoot != "" {
			for name, value := range PluginEnv(c.PluginRoot) {
				env = append(env, name+"="+value)
			}
			slices.Sort(env)
			c = c.expandPluginRoot()
		}
		if c.Callback != "" {
			env = nil
		}
		run.Commands = append(run.Commands, bash.HookCommand{
			Command: c.Command, Args: c.Args, Callback: c.Callback, TimeoutSeconds: c.Timeout.Seconds(), Env: env,
			Foreign: !c.FromUser, Hide: c.HiddenPaths,
		})
	}
	results, err := h.run(ctx, at, run)
	if err != nil {
		return toolrun.Ruling{}, err
	}
	var sum toolrun.Ruling
	for i, r := range results.Hooks {
		if i < len(chosen) {
			h.addResult(ctx, at, &sum, chosen[i], r)
		}
	}
	return sum, nil
}

// PluginEnv returns the environment variables that a plugin's programs get in
// addition. The plugin's folder must not change, so compilers must not write to it.
func PluginEnv(root string) map[string]string {
	return map[string]string{pluginRootVar: root, "PYTHONDONTWRITEBYTECODE": "1"}
}

const pluginRootVar = "CLAUDE_PLUGIN_ROOT"

// expandPluginRoot returns the hook with its plugin's folder inserted. The
// shell inserts a path that contains characters special to it.
func (h Hook) expandPluginRoot() Hook {
	const name = "${" + pluginRootVar + "}"
	if plain := strings.IndexFunc(h.PluginRoot, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@", r)
	}) < 0; plain || len(h.Args) > 0 {
		h.Command = strings.ReplaceAll(h.Command, name, h.PluginRoot)
	}
	h.Args = slices.Clone(h.Args)
	for i, arg := range h.Args {
		h.Args[i] = strings.ReplaceAll(arg, name, h.PluginRoot)
	}
	return h
}

// selectHooks returns the hooks to run, each command once.
func (h *Hooks) selectHooks(e Event, names []string) (chosen []Hook) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool)
	for _, one := range h.Hooks {
		key := strings.Join(append([]string{one.PluginRoot, one.Command, one.Callback}, one.Args...), "\x00")
		if !one.matches(e, names...) || seen[key] || one.Once && h.onceRun[string(e)+key] {
			continue
		}
		seen[key], h.onceRun[string(e)+key] = true, true
		chosen = append(chosen, one)
	}
	return chosen
}

// run runs one event's hooks as a single call. They are the user's
// own commands, so they need no approval, and the call is not shown.
func (h *Hooks) run(ctx context.Context, at Origin, run bash.HookRun) (results bash.HookResults, err error) {
	quiet := event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch r.Event.(type) {
		case event.ToolStarted, event.ToolOutput, event.ToolFinished:
			return nil
		}
		return at.Sink.Emit(ctx, r)
	})
	err = h.Runner.Run(ctx, toolrun.Round{
		Task: at.Task, Actor: ActorHooks, Unjudged: true, Tools: h.tools, User: uip.NoInteractor, Sink: quiet,
		Calls: []chat.ToolCall{{ID: h.NewID("hook"), Name: bash.HookTool, Args: jsonx.MustMarshal(run)}},
		Deliver: func(_ context.Context, out toolrun.Outcome) error {
			if json.Unmarshal([]byte(out.Result.Text), &results) != nil || len(results.Hooks) == 0 { // the hooks did not run
				for range run.Commands {
					results.Hooks = append(results.Hooks, tool.ShellResult{ExitCode: -1, Error: clip.Truncate(out.Result.Text, 500)})
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

// output is what a hook may write to standard output. A denial counts even in the wrong field.
type output struct {
	Continue      *bool  `json:"continue"`
	StopReason    string `json:"stopReason"`
	SystemMessage string `json:"systemMessage"`
	Decision      string `json:"decision"`
	Permission    string `json:"permissionDecision"`
	Reason        string `json:"reason"`
	Specific      struct {
		Event      string          `json:"hookEventName"`
		Decision   string          `json:"decision"`
		Permission string          `json:"permissionDecision"`
		Reason     string          `json:"permissionDecisionReason"`
		Input      json.RawMessage `json:"updatedInput"`
		Context    string          `json:"additionalContext"`
		Output     json.RawMessage `json:"updatedToolOutput"`
		MCPOutput  json.RawMessage `json:"updatedMCPToolOutput"`
	} `json:"hookSpecificOutput"`
}

// Limits on a hook's texts.
const (
	maxReason  = 4000
	maxContext = 16000
)

// The words of decisions. A word that can only mean no counts as a denial.
var (
	denyWords = []string{"block", "blocked", "deny", "denied", "reject", "rejected", "refuse", "refused", "forbid",
		"forbidden"}
	approveWords = []string{"allow", "approve"}
)

// parseOutput parses a hook's output into objects and the text around
// them. An error means that the output contains an unreadable verdict.
func parseOutput(stdout string) (outs []output, text string, err error) {
	var other strings.Builder
	rest := strings.TrimSpace(strings.TrimPrefix(stdout, "\ufeff"))
	for rest != "" {
		if rest[0] == '{' {
			var out output
			dec := json.NewDecoder(strings.NewReader(rest))
			err := dec.Decode(&out)
			if err == nil {
				outs = append(outs, out)
				rest = strings.TrimSpace(rest[dec.InputOffset():])
				continue
			}
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) { // the rest of the object was parsed
				outs = append(outs, out)
			}
			if wrong != nil || other.Len() == 0 {
				return outs, "", message.Errorf("the output cannot be read: %w", err)
			}
		}
		line, after, _ := strings.Cut(rest, "\n")
		other.WriteString(line + "\n")
		rest = strings.TrimSpace(after)
	}
	return outs, strings.TrimSpace(other.String()), nil
}

// addResult adds one hook's result to the ruling.
func (h *Hooks) addResult(ctx context.Context, at Origin, sum *toolrun.Ruling, hook Hook, r tool.ShellResult) {
	if r.ExitCode == 2 && !r.TimedOut {
		if !hook.IgnoreDecision {
			hook.deny(sum, clip.Truncate(strings.TrimSpace(r.Stderr), maxReason))
		}
		return
	}
	outs, text, err := parseOutput(r.Stdout)
	if r.ExitCode != 0 {
		if !hook.IgnoreDecision {
			for _, out := range outs { // it failed after it denied
				hook.applyDenial(sum, out)
			}
		}
		why := cmp.Or(r.Error, "could not be run")
		if line, _, _ := strings.Cut(strings.TrimSpace(r.Stderr), "\n"); line != "" {
			why += ": " + strconv.Quote(clip.Truncate(line, 200))
		}
		if r.Sandbox != "" {
			why += " (" + r.Sandbox + ")"
		}
		h.handleFailure(ctx, at, sum, hook, why)
		return
	}
	for _, out := range outs {
		h.applyOutput(ctx, at, sum, hook, out)
	}
	if err == nil && r.Truncated {
		err = errors.New("the output was too long")
	}
	if err != nil {
		h.handleUnreadable(ctx, at, sum, hook, err.Error())
	}
	if text != "" && (hook.Event == UserPromptSubmit || hook.Event == SessionStart) {
		sum.Notes = append(sum.Notes, hook.modelNote(text))
	}
}

// applyOutput adds one object from a hook's output to the ruling.
func (h *Hooks) applyOutput(ctx context.Context, at Origin, sum *toolrun.Ruling, hook Hook, out output) {
	if out.SystemMessage != "" {
		notify(ctx, at, event.LevelInfo, clip.Truncate(out.SystemMessage, maxReason))
	}
	if hook.IgnoreDecision {
		return
	}
	if out.Continue != nil && !*out.Continue && sum.StopReason == "" {
		sum.StopReason = clip.Truncate(cmp.Or(out.StopReason, "a hook asked to stop"), maxReason)
	}
	hook.applyDenial(sum, out)
	s := out.Specific
	elsewhere := s.Event != "" && !strings.EqualFold(s.Event, string(hook.Event))
	if elsewhere {
		h.handleUnreadable(ctx, at, sum, hook, fmt.Sprintf("the answer for %s was ignored", clip.Truncate(s.Event, 60)))
	}
	for _, word := range out.decisions() {
		switch {
		case word == "" || slices.Contains(denyWords, word):
		case word == "ask":
			sum.AskReason = cmp.Or(sum.AskReason, clip.Truncate(cmp.Or(out.Reason, s.Reason), maxReason),
				"a hook requires approval")
		case slices.Contains(approveWords, word):
			sum.Allow = sum.Allow || hook.FromUser && hook.Event == PreToolUse && !elsewhere
		default:
			hook := hook
			// these events ask no question
			hook.DenyOnFailure = hook.DenyOnFailure || hook.Event == UserPromptSubmit || hook.Event == PreCompact
			h.handleUnreadable(ctx, at, sum, hook, fmt.Sprintf("%q is not a known decision", clip.Truncate(word, 60)))
		}
	}
	if elsewhere {
		return
	}
	if len(s.Input) > 0 && string(s.Input) != "null" {
		sum.Input, sum.InputBy = s.Input, hook.Owner()
	}
	if s.Context != "" {
		sum.Notes = append(sum.Notes, hook.modelNote(s.Context))
	}
	for _, o := range []json.RawMessage{s.Output, s.MCPOutput} {
		if len(o) > 0 && string(o) != "null" {
			sum.Output = o
		}
	}
}

// decisions returns the decisions in an object.
func (o output) decisions() (words []string) {
	for _, word := range []string{o.Decision, o.Permission, o.Specific.Decision, o.Specific.Permission} {
		words = append(words, strings.ToLower(strings.TrimSpace(word)))
	}
	return words
}

// applyDenial adds a denial if the object contains one.
func (h Hook) applyDenial(sum *toolrun.Ruling, out output) {
	if slices.ContainsFunc(out.decisions(), func(word string) bool { return slices.Contains(denyWords, word) }) {
		h.deny(sum, clip.Truncate(cmp.Or(out.Reason, out.Specific.Reason), maxReason))
	}
}

// handleFailure reports a failed hook. A hook written to block denies instead.
func (h *Hooks) handleFailure(ctx context.Context, at Origin, sum *toolrun.Ruling, hook Hook, why string) {
	why = hook.message(why)
	if hook.DenyOnFailure {
		hook.deny(sum, why)
		return
	}
	h.warnOnce(ctx, at, why)
}

// handleUnreadable handles a hook with an unreadable verdict: before a call, the user is asked.
func (h *Hooks) handleUnreadable(ctx context.Context, at Origin, sum *toolrun.Ruling, hook Hook, why string) {
	if hook.Event == PreToolUse && !hook.IgnoreDecision {
		sum.AskReason = cmp.Or(sum.AskReason, hook.message(why))
	}
	hook.DenyOnFailure = hook.DenyOnFailure && !hook.IgnoreDecision
	h.handleFailure(ctx, at, sum, hook, why)
}

// message returns a sentence about a hook. Its command may be any text, so says quotes it.
func (h Hook) message(why string) string {
	return fmt.Sprintf("%s %#q: %s", h.Event, h.displayName(), why)
}

// Owner returns whose hook h is.
func (h Hook) Owner() string {
	switch {
	case h.FromUser:
		return "the user's"
	case h.Plugin != "":
		return fmt.Sprintf("the plugin %s's", h.Plugin)
	}
	return "the project's"
}

// modelNote returns a hook's text for the model.
func (h Hook) modelNote(text string) toolrun.Note {
	return toolrun.Note{Owner: h.Owner(), Text: clip.Truncate(text, maxContext)}
}

// deny adds a denial. It names the owner if the hook is not the user's.
func (h Hook) deny(sum *toolrun.Ruling, why string) {
	why = cmp.Or(why, "a hook refused it")
	if !h.FromUser {
		why = fmt.Sprintf("a hook of %s: %s", h.Owner(), why)
	}
	if sum.DenyReason == "" {
		sum.DenyReason, sum.DeniedBy = why, h.displayName()
	}
}

// displayName returns the hook's name in messages.
func (h Hook) displayName() string { return clip.Truncate(cmp.Or(h.Command, h.Callback), 120) }

// warnOnce shows a warning about a hook once per session.
func (h *Hooks) warnOnce(ctx context.Context, at Origin, text string) {
	h.mu.Lock()
	told := h.warnedTexts[text]
	h.warnedTexts[text] = true
	h.mu.Unlock()
	if !told {
		notify(ctx, at, event.LevelWarn, text)
	}
}

func notify(ctx context.Context, at Origin, l event.Level, text string) {
	_ = at.Sink.Emit(context.WithoutCancel(ctx), event.Record{Task: at.Task, Actor: ActorHooks,
		Event: event.Notice{Level: l, Text: text}})
}

// modeNames maps coder's modes to their names in programs written for another agent.
var modeNames = map[string]string{"build": "default", "auto-edit": "acceptEdits", "yolo": "bypassPermissions"}

// ExternalMode returns a mode's name as hooks know it.
func ExternalMode(mode string) string { return cmp.Or(modeNames[mode], mode) }

// InternalMode returns coder's name for a mode of programs written for another agent.
func InternalMode(theirs string) string {
	for ours, name := range modeNames {
		if name == theirs {
			return ours
		}
	}
	return theirs
}

// Before runs the hooks that run before a call.
func (h *Hooks) Before(ctx context.Context, r toolrun.Round, c toolrun.HookedCall) (toolrun.Ruling, error) {
	names, fields := h.describeCall(c)
	return h.Fire(ctx, Origin{r.Task, r.Sink}, PreToolUse, names, fields)
}

// After runs the hooks that run after a call.
func (h *Hooks) After(ctx context.Context, r toolrun.Round, c toolrun.HookedCall, output json.RawMessage,
	took time.Duration) (toolrun.Ruling, error) {
	names, fields := h.describeCall(c)
	fields["tool_response"], fields["duration_ms"] = output, took.Milliseconds()
	ruling, err := h.Fire(context.WithoutCancel(ctx), Origin{r.Task, r.Sink}, PostToolUse, names, fields)
	var failed struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if err != nil || json.Unmarshal(output, &failed) != nil || failed.OK == nil || *failed.OK {
		return ruling, err
	}
	fields["error"], fields["is_interrupt"] = failed.Error, ctx.Err() != nil
	more, err := h.Fire(context.WithoutCancel(ctx), Origin{r.Task, r.Sink}, PostToolFailure, names, fields)
	ruling.StopReason, ruling.DenyReason = cmp.Or(ruling.StopReason, more.StopReason),
		cmp.Or(ruling.DenyReason, more.DenyReason)
	ruling.Notes = append(ruling.Notes, more.Notes...)
	return ruling, err
}

// describeCall describes a call to hooks, under coder's name for the tool and the other agent's.
func (h *Hooks) describeCall(c toolrun.HookedCall) (names []string, fields map[string]any) {
	name, args := dialect.ToExternal(c.Tool, c.Args, h.SessionInfo().Root)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return []string{name, c.Tool}, map[string]any{"tool_name": name, "tool_input": args, "tool_use_id": c.ID}
}
