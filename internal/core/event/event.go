// Package event defines everything that can happen in a session, and the two consumers of events: a
// [Sink] shows them, a [Store] saves them.
//
// Events come in two sorts. Durable events are facts and belong to one of three logs; replaying them
// rebuilds a session exactly. Transient events (deltas, command output, notices) are only shown and
// never stored. The sort is a property of the event's type: see [LogOf].
package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/uip"
)

// An Event is one of the types in this package.
type Event interface{ isEvent() }

// Domain events: decisions of the user and the agent. They contain no file contents, except what an
// approval showed.
type (
	TaskCreated struct {
		TaskID   string      `json:"taskId"`
		Title    string      `json:"title"`
		Intent   string      `json:"intent"`
		Priority Priority    `json:"priority"`
		AgentID  string      `json:"agentId"`
		ParentID string      `json:"parentTaskId,omitempty"`
		CallID   string      `json:"toolCallId,omitempty"` // the parent's call that started it
		Author   string      `json:"authorActorId"`
		Run      *RunOptions `json:"run,omitempty"` // nil if empty
	}
	// RunOptions holds what a turn ran with that is in no settings file. It grants nothing.
	RunOptions struct {
		Window             int    `json:"window,omitempty"` // tokens, as reported by the server
		ConfigFile         string `json:"config,omitempty"` // the settings file given explicitly
		AllowedTools       string `json:"allowedTools,omitempty"`
		DisallowedTools    string `json:"disallowedTools,omitempty"`
		SystemPrompt       string `json:"systemPrompt,omitempty"` // replaces the default system prompt
		AppendSystemPrompt string `json:"appendSystemPrompt,omitempty"`
	}
	TaskStarted struct {
		TaskID  string      `json:"taskId"`
		AgentID string      `json:"agentId"`
		Author  string      `json:"authorActorId"`
		Run     *RunOptions `json:"run,omitempty"` // of the process that continued the task, if different
	}
	TaskCompleted struct {
		TaskID  string `json:"taskId"`
		Summary string `json:"summary,omitempty"`
		Author  string `json:"authorActorId"`
	}
	TaskFailed struct {
		TaskID    string `json:"taskId"`
		Reason    string `json:"reason"`
		Code      string `json:"code,omitempty"`  // kind of provider failure, if the provider failed
		ErrorText string `json:"says,omitempty"`  // the error of the failed model request
		Steps     int    `json:"steps,omitempty"` // the step limit, if the turn reached it
		Author    string `json:"authorActorId"`
	}
	TaskCanceled struct {
		TaskID string `json:"taskId"`
		Reason string `json:"reason,omitempty"`
		Author string `json:"authorActorId"`
	}
	InteractionRequested struct{ uip.Request }
	InteractionResponded struct{ uip.Response }
)

// Priority is the urgency of a task.
type Priority string

// The priorities of a task.
const (
	PriorityForeground Priority = "foreground"
	PriorityNormal     Priority = "normal"
	PriorityBackground Priority = "background"
)

// Audit events: the agent's calls and their results. Every requested call is completed exactly once,
// including refused calls.
type (
	ToolCallRequested struct {
		CallID    string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Author    string          `json:"authorActorId"`
		TaskID    string          `json:"taskId"`
		Input     json.RawMessage `json:"input"` // a JSON object
		Timestamp int64           `json:"timestamp"`
		Effects   []Effect        `json:"effects,omitempty"`
		ReadOnly  bool            `json:"readOnly,omitempty"`
		Verdict   Verdict         `json:"verdict,omitempty"`
		Reasons   []string        `json:"reasons,omitempty"`
		DecidedBy string          `json:"decidedBy,omitempty"` // an actor
		Title     string          `json:"title,omitempty"`     // text for the user
		// Sandbox describes how the operating system confines the call.
		Sandbox string `json:"sandbox,omitempty"`
		// KeysMissing reports that the call was refused because its keys are not on record.
		KeysMissing bool `json:"keyless,omitempty"`
		// AutoAllowed records what the flags of the run allowed without approval.
		AutoAllowed AutoAllowance `json:"unasked,omitempty"`
		// Before holds the files that the call would overwrite, saved so that it can be undone. Tree names the
		// saved state of all files, for a call with unknown targets.
		Before []FileState `json:"before,omitempty"`
		Tree   string      `json:"tree,omitempty"`
		// Repository names the saved state of the git repository that the session started in. Only the first
		// call of a session has it.
		Repository string `json:"repository,omitempty"`
	}
	ToolCallCompleted struct {
		CallID         string          `json:"toolCallId"`
		Tool           string          `json:"toolName"`
		Author         string          `json:"authorActorId"`
		TaskID         string          `json:"taskId"`
		Output         json.RawMessage `json:"output"` // a JSON object
		IsError        bool            `json:"isError"`
		OutcomeUnknown bool            `json:"unknown,omitempty"` // its outcome is unknown
		DurationMs     int64           `json:"durationMs"`
		Timestamp      int64           `json:"timestamp"`
		Summary        string          `json:"summary,omitempty"` // text for the user
		// Changes are the call's changes to files.
		Changes []FileChange `json:"changes,omitempty"`
		// SeenFiles is what the model knows about files from this call. The hash is the content's SHA-256, whether or
		// not the content is saved.
		SeenFiles []FileState `json:"saw,omitempty"`
	}
)

// AutoAllowance is what a run allows without approval.
type AutoAllowance string

// The values of Unasked: waivable approvals, or risks as well.
const (
	AllowanceWaivable AutoAllowance = "waivable"
	AllowanceRisks    AutoAllowance = "risks"
)

// Verdict is the decision on a call.
type Verdict string

// The verdicts on a call.
const (
	VerdictAllowed   Verdict = "allow"
	VerdictDenied    Verdict = "deny"
	VerdictCancelled Verdict = "cancelled" // the turn ended before the call could run
	VerdictInvalid   Verdict = "invalid"   // the call could not be prepared
	VerdictUnsure    Verdict = "unknown"   // unknown, because records are missing
)

// VerdictText returns the verdict on the call and who decided, such as "allow (user)". It names nobody for a
// call that the turn's end canceled or that could not be prepared.
func (e ToolCallRequested) VerdictText() string {
	nobody := e.DecidedBy == "" || e.DecidedBy == ActorPolicy &&
		(e.Verdict == VerdictCancelled || e.Verdict == VerdictInvalid)
	if nobody {
		return string(e.Verdict)
	}
	return fmt.Sprintf("%s (%s)", e.Verdict, e.DecidedBy)
}

// FileState is a file at one moment. Hash names its content in the content store; an empty Hash means
// that the file did not exist. Content too large to save has Size and Mode, and Lost set.
type FileState struct {
	Path        string `json:"path"`
	Hash        string `json:"hash,omitempty"`
	Mode        uint32 `json:"mode,omitempty"` // permission bits
	Link        string `json:"link,omitempty"` // target of a symbolic link
	Size        int64  `json:"size,omitempty"`
	ContentLost bool   `json:"lost,omitempty"`
}

// FileChange is the change of one file.
type FileChange struct {
	Before FileState `json:"before"`
	After  FileState `json:"after"`
	Doubt  Doubt     `json:"doubt,omitempty"`
}

// Doubt says why a change may not come from the call that recorded it.
type Doubt string

// The doubts about a change.
const (
	DoubtOther  Doubt = "other"  // another program made it: the call's command did not touch the file
	DoubtBoth   Doubt = "both"   // another program also changed the file while the call ran
	DoubtUnseen Doubt = "unseen" // the program that made it was not observed
)

// IsFolder reports whether the change created or removed a folder, not a file.
func (c FileChange) IsFolder() bool {
	kind := c.Before.Hash + c.After.Hash
	return kind == "dir" || kind == "dirdir"
}

// Conversation events: messages to and from the model.
type (
	MessageAdded struct {
		Message chat.Message `json:"message"`
		// Reminders are sent to the model after the message's own text, but the user did not write them.
		Reminders string `json:"reminders,omitempty"`
		// ReminderNames names the reminders that are not repeated. A name that begins with [ModeReminderPrefix] is repeated
		// when its mode is entered again.
		ReminderNames []string    `json:"reminded,omitempty"`
		Interrupted   bool        `json:"interrupted,omitempty"` // the message is incomplete
		Model         string      `json:"model,omitempty"`
		Usage         *chat.Usage `json:"usage,omitempty"`
		StopReason    string      `json:"stop,omitempty"`   // why the model stopped
		Window        int         `json:"window,omitempty"` // the server's window in tokens, if reported with this reply
		// Tools counts, for a system message, the tokens that describe each advertised tool, by coder's own
		// count.
		Tools map[string]int `json:"tools,omitempty"`
		// Blocks are shown to the user in place of the message.
		Blocks display.Blocks `json:"blocks,omitempty"`
		// Request is the request of a reply.
		Request *chat.SentRequest `json:"sent,omitempty"`
	}
	// TodosChanged is the model's whole new todo list.
	TodosChanged struct {
		Todos []Todo `json:"todos"`
	}
	// ModeChanged is the new mode and its permissions preset.
	ModeChanged struct {
		Mode   string `json:"mode"`
		Preset string `json:"preset,omitempty"`
	}
	// ContextReplaced is a marker: from here on, Messages replace all earlier messages except the newest
	// Keep. Nothing is deleted.
	ContextReplaced struct {
		Reason       ReplaceReason  `json:"reason"`
		Messages     []chat.Message `json:"messages"`
		Keep         int            `json:"keep,omitempty"`
		TokensBefore int            `json:"tokensBefore,omitempty"`
		TokensAfter  int            `json:"tokensAfter,omitempty"`
		Description  string         `json:"done,omitempty"`   // what coder did, for the user
		Window       int            `json:"window,omitempty"` // the server's window in tokens, if its refusal reported one
	}
	// ContextRestored undoes the last ContextReplaced.
	ContextRestored struct {
		Messages int `json:"messages"` // how many messages are visible again
	}
	// ContextRewound rewinds the conversation to before the message with Seq To. Nothing is deleted; Undo
	// reverts the last rewind.
	ContextRewound struct {
		ToSeq         uint64 `json:"to,omitempty"`
		Messages      int    `json:"messages"`         // how many messages are hidden, or visible again
		Turns         int    `json:"turns,omitempty"`  // how many turns it undid
		RedoableTurns int    `json:"undone,omitempty"` // how many turns could then be redone, including these
		IsUndo        bool   `json:"undo,omitempty"`
	}
	// Spent is usage beside the saved replies: of a summary, an incomplete reply, or one without reported
	// usage.
	Spent struct {
		Model  string      `json:"model"`
		Usage  chat.Usage  `json:"usage"`
		Reason UsageReason `json:"for"`
	}
	// LocalAdded is one of coder's own commands and its output: saved with the conversation, never sent to
	// the model.
	LocalAdded struct {
		Input  string         `json:"input"`
		Output string         `json:"output"`
		Failed bool           `json:"failed,omitempty"`
		Blocks display.Blocks `json:"blocks,omitempty"` // blocks of Output, unless it is prose
	}
)

// DisplayBlocks returns the blocks to show for a command's output.
func (e LocalAdded) DisplayBlocks() display.Blocks {
	if e.Blocks == nil {
		return display.Blocks{display.Text(e.Output)}
	}
	return e.Blocks
}

// ModeReminderPrefix is the prefix of reminder names that explain a mode.
const ModeReminderPrefix = "mode:"

// RulesReminderPrefix is the prefix of reminder names for rule files; the path follows.
const RulesReminderPrefix = "rules:"

// JobReminderPrefix is the prefix of reminder names for the results of background commands; the
// command's name follows.
const JobReminderPrefix = "job:"

// ReplaceReason is why a context was replaced.
type ReplaceReason string

// The reasons to replace a context.
const (
	ReplaceCompacted    ReplaceReason = "compacted"
	ReplaceModeSwitched ReplaceReason = "mode_changed"
)

// UsageOf returns the usage that e reports, if any. Totals of a session, a turn or a task add up these and
// nothing else.
func UsageOf(e Event) (model string, u chat.Usage, ok bool) {
	switch e := e.(type) {
	case MessageAdded:
		if e.Usage != nil {
			return e.Model, *e.Usage, true
		}
	case Spent:
		e.Usage.Estimated = e.Reason == UsageForPartialReply || e.Reason == UsageForUnreported
		return e.Model, e.Usage, true
	}
	return "", chat.Usage{}, false
}

// InterruptionPrefix begins the message, in the user's role, that reports an interruption to the model.
const InterruptionPrefix = "[Request interrupted by user"

// IsUserMessage reports whether the user wrote the message r, as opposed to coder in the user's role or an
// interruption.
func IsUserMessage(r Record) bool {
	e, ok := r.Event.(MessageAdded)
	return ok && r.Actor == ActorUser && e.Message.Role == chat.User &&
		!strings.HasPrefix(e.Message.Text(), InterruptionPrefix)
}

// TypedCommand returns what the user typed if the intent is its expansion, as with /init, or "" if the user
// typed the intent.
func (e TaskCreated) TypedCommand() string {
	if !strings.HasPrefix(e.Title, "/") || strings.HasPrefix(strings.TrimSpace(e.Intent), "/") ||
		strings.HasSuffix(e.Title, "…") {
		return ""
	}
	return e.Title
}

// UsageReason is the reason for a Spent event.
type UsageReason string

// The reasons for usage beside saved replies. The last two are estimates.
const (
	UsageForSummary      UsageReason = "summary"
	UsageForMCPServer    UsageReason = "mcp_server" // an MCP server requested a reply from the model
	UsageForPartialReply UsageReason = "cut_off"
	UsageForUnreported   UsageReason = "unreported"
)

// Todo is one item of the model's todo list.
type Todo struct {
	ID       string     `json:"id"`
	Content  string     `json:"content"`
	Status   TodoStatus `json:"status"`
	Priority string     `json:"priority,omitempty"`
}

// TodoStatus is the progress of a todo.
type TodoStatus string

// The statuses of a todo.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
)

// Unknown is a record from another version of coder. It is kept and passed on, never dropped.
type Unknown struct {
	Log     Log
	Type    string
	Version int
	Payload json.RawMessage
}

// Transient events.
type (
	SessionOpened struct {
		Dir, Model, Mode string
		Tools            []string
		Resumed          bool
		MaxTokens        int
	}
	StateChanged   struct{ Busy bool }
	TextDelta      struct{ Text string }
	ReasoningDelta struct{ Text string }
	// Retrying reports that the reply so far is void and coder will request it again.
	Retrying struct {
		Attempt, MaxAttempts int
		Wait                 time.Duration
		Reason               string
	}
	// Waiting reports that no part of a reply has arrived yet, and why.
	Waiting struct {
		Reason                  WaitReason
		Waited                  time.Duration
		ReadTokens, TotalTokens int       // prefill progress in tokens; zero if unknown
		Until                   time.Time // zero if unknown
	}
	ToolStarted struct {
		CallID, Tool, Title string
	}
	ToolOutput struct{ CallID, Text string }
	// ToolProgress is a line that a call redraws, such as a progress bar. It replaces the previous one until
	// the call's output continues. If the call prints more than is forwarded, Line is the last line, and
	// Lines counts the lines omitted since forwarding stopped.
	ToolProgress struct {
		CallID, Line string
		Lines        int
	}
	ToolFinished struct {
		CallID, Tool, Title, Summary string
		Content                      display.Block
		Result                       chat.ToolResult
		Failed, Denied               bool
		Duration                     time.Duration
	}
	ContextUsed struct{ Used, Max, Prompt int }
	Interrupted struct{ Text string }
	Notice      struct {
		Level Level
		Text  string
	}
)

// WaitReason is why coder waits for a reply.
type WaitReason string

// The reasons to wait.
const (
	WaitReply   WaitReason = "reply"   // the model has not started
	WaitLoading WaitReason = "loading" // the server loads the model
	WaitLimit   WaitReason = "limit"   // a provider limit that ends by itself
	WaitSummary WaitReason = "summary" // the model summarises the conversation to shorten it
)

// Level is the importance of a notice.
type Level string

// The levels of a notice.
const (
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

func (TaskCreated) isEvent()          {}
func (TaskStarted) isEvent()          {}
func (TaskCompleted) isEvent()        {}
func (TaskFailed) isEvent()           {}
func (TaskCanceled) isEvent()         {}
func (InteractionRequested) isEvent() {}
func (InteractionResponded) isEvent() {}
func (ToolCallRequested) isEvent()    {}
func (ToolCallCompleted) isEvent()    {}
func (MessageAdded) isEvent()         {}
func (LocalAdded) isEvent()           {}
func (Spent) isEvent()                {}
func (TodosChanged) isEvent()         {}
func (ModeChanged) isEvent()          {}
func (ContextReplaced) isEvent()      {}
func (ContextRestored) isEvent()      {}
func (ContextRewound) isEvent()       {}
func (Unknown) isEvent()              {}
func (SessionOpened) isEvent()        {}
func (StateChanged) isEvent()         {}
func (TextDelta) isEvent()            {}
func (ReasoningDelta) isEvent()       {}
func (Retrying) isEvent()             {}
func (Waiting) isEvent()              {}
func (ToolStarted) isEvent()          {}
func (ToolOutput) isEvent()           {}
func (ToolProgress) isEvent()         {}
func (ToolFinished) isEvent()         {}
func (ContextUsed) isEvent()          {}
func (Interrupted) isEvent()          {}
func (Notice) isEvent()               {}
