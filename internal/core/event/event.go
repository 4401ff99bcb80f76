// Package event names everything that can happen in a session, and the two
// things one can do with it: show it ([Sink]) and keep it ([Store]).
//
// Events come in two sorts. Durable events are facts and belong to one of
// three logs; replaying them rebuilds a session exactly. Transient events
// (deltas, command output, notices) exist only to be watched and are never
// stored. Which sort an event is, is a property of its type: see [LogOf].
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

// Domain events: what person and agent decided. They never carry file
// contents, save what an approval showed.
type (
	TaskCreated struct {
		TaskID   string   `json:"taskId"`
		Title    string   `json:"title"`
		Intent   string   `json:"intent"`
		Priority Priority `json:"priority"`
		AgentID  string   `json:"agentId"`
		ParentID string   `json:"parentTaskId,omitempty"`
		CallID   string   `json:"toolCallId,omitempty"` // the parent's call that it does the work of
		Author   string   `json:"authorActorId"`
		Run      *Run     `json:"run,omitempty"` // nil if there was nothing of it
	}
	// Run is what a turn was run with that no settings tell. It grants nothing.
	Run struct {
		Window     int    `json:"window,omitempty"` // tokens, by the word of the server
		Config     string `json:"config,omitempty"` // the settings file that was named
		Allowed    string `json:"allowedTools,omitempty"`
		Disallowed string `json:"disallowedTools,omitempty"`
		System     string `json:"systemPrompt,omitempty"` // in place of our own
		Appended   string `json:"appendSystemPrompt,omitempty"`
	}
	TaskStarted struct {
		TaskID  string `json:"taskId"`
		AgentID string `json:"agentId"`
		Author  string `json:"authorActorId"`
		Run     *Run   `json:"run,omitempty"` // of the process that took it up, where that was given something else
	}
	TaskCompleted struct {
		TaskID  string `json:"taskId"`
		Summary string `json:"summary,omitempty"`
		Author  string `json:"authorActorId"`
	}
	TaskFailed struct {
		TaskID string `json:"taskId"`
		Reason string `json:"reason"`
		Code   string `json:"code,omitempty"`  // which failure of the provider it was, if it was one
		Says   string `json:"says,omitempty"`  // the failure of the request to the model, if that failed
		Steps  int    `json:"steps,omitempty"` // the limit of steps, if it was reached
		Author string `json:"authorActorId"`
	}
	TaskCanceled struct {
		TaskID string `json:"taskId"`
		Reason string `json:"reason,omitempty"`
		Author string `json:"authorActorId"`
	}
	InteractionRequested struct{ uip.Request }
	InteractionResponded struct{ uip.Response }
)

// Priority says how urgent a task is.
type Priority string

// The priorities of a task.
const (
	Foreground Priority = "foreground"
	Normal     Priority = "normal"
	Background Priority = "background"
)

// Audit events: what the agent asked the world to do, and what came of it.
// Every requested call is completed exactly once, refused ones included.
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
		Title     string          `json:"title,omitempty"`     // what the person is shown of it
		// Confined is how the system keeps the call within bounds.
		Confined string `json:"sandbox,omitempty"`
		// Keyless says that it was refused because its keys are not on record.
		Keyless bool `json:"keyless,omitempty"`
		// Unasked is what the flags of the run let pass of it unasked.
		Unasked Unasked `json:"unasked,omitempty"`
		// Before is what the call would overwrite, kept so that it can be
		// brought back. Tree names the kept state of all files, for a call
		// whose targets nobody can tell.
		Before []FileState `json:"before,omitempty"`
		Tree   string      `json:"tree,omitempty"`
		// Repository names the kept state of the git repository that the session
		// began in. Only the first call of a session has it.
		Repository string `json:"repository,omitempty"`
	}
	ToolCallCompleted struct {
		CallID     string          `json:"toolCallId"`
		Tool       string          `json:"toolName"`
		Author     string          `json:"authorActorId"`
		TaskID     string          `json:"taskId"`
		Output     json.RawMessage `json:"output"` // a JSON object
		IsError    bool            `json:"isError"`
		Unknown    bool            `json:"unknown,omitempty"` // nobody saw how it ended
		DurationMs int64           `json:"durationMs"`
		Timestamp  int64           `json:"timestamp"`
		Summary    string          `json:"summary,omitempty"` // what the person is shown of it
		// Changes is what the call did to files.
		Changes []FileChange `json:"changes,omitempty"`
		// Saw is what the model knows of files by the call. The hash is the
		// content's SHA-256, whether or not it is kept.
		Saw []FileState `json:"saw,omitempty"`
	}
)

// Unasked is what is let pass without a question.
type Unasked string

// What is let pass: what may be waived for good, and risks as well.
const (
	WaivableUnasked Unasked = "waivable"
	RisksUnasked    Unasked = "risks"
)

// Verdict is how it was ruled on a call.
type Verdict string

// The verdicts on a call.
const (
	Allowed   Verdict = "allow"
	Denied    Verdict = "deny"
	Cancelled Verdict = "cancelled" // the turn ended before it could run
	Invalid   Verdict = "invalid"   // it could not be prepared
	Unsure    Verdict = "unknown"   // records are missing that would tell
)

// Ruling is the verdict on the call and who gave it: allow (user). Nobody gives one on a
// call that the turn ended before, or that could not be prepared.
func (e ToolCallRequested) Ruling() string {
	nobody := e.DecidedBy == "" || e.DecidedBy == ActorPolicy && (e.Verdict == Cancelled || e.Verdict == Invalid)
	if nobody {
		return string(e.Verdict)
	}
	return fmt.Sprintf("%s (%s)", e.Verdict, e.DecidedBy)
}

// FileState is a file at one moment. Hash names its content in the store of
// kept contents; an empty Hash says that there was no file. Content too large
// to keep has Size and Mode, and Lost set.
type FileState struct {
	Path string `json:"path"`
	Hash string `json:"hash,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits
	Link string `json:"link,omitempty"` // where a symbolic link leads
	Size int64  `json:"size,omitempty"`
	Lost bool   `json:"lost,omitempty"`
}

// FileChange is what became of one file.
type FileChange struct {
	Before FileState `json:"before"`
	After  FileState `json:"after"`
	Doubt  Doubt     `json:"doubt,omitempty"`
}

// Doubt says why a change may not be the work of the call that it is recorded with.
type Doubt string

// The doubts about a change.
const (
	DoubtOther  Doubt = "other"  // another program made it: the call's command did not touch the file
	DoubtBoth   Doubt = "both"   // another program changed the file as well while the call ran
	DoubtUnseen Doubt = "unseen" // which program made it was not seen
)

// Folder reports whether it is a folder that came or went, and no file.
func (c FileChange) Folder() bool {
	kind := c.Before.Hash + c.After.Hash
	return kind == "dir" || kind == "dirdir"
}

// Conversation events: what the model was told and what it said.
type (
	MessageAdded struct {
		Message chat.Message `json:"message"`
		// Reminders are sent to the model after the message's own text but are
		// not part of what the person wrote.
		Reminders string `json:"reminders,omitempty"`
		// Reminded names those reminders that are not given again; one whose
		// name begins with [ModeReminder] is, when its mode is entered anew.
		Reminded    []string    `json:"reminded,omitempty"`
		Interrupted bool        `json:"interrupted,omitempty"` // only a part arrived
		Model       string      `json:"model,omitempty"`
		Usage       *chat.Usage `json:"usage,omitempty"`
		Stop        string      `json:"stop,omitempty"`   // why the model stopped
		Window      int         `json:"window,omitempty"` // tokens the server takes, if it said so with this reply
		// Tools are, with a system text, the tokens that describe each of the tools
		// that the model is told of, by our own count.
		Tools map[string]int `json:"tools,omitempty"`
		// Blocks are what a person is shown in place of the message.
		Blocks display.Blocks `json:"blocks,omitempty"`
		// Sent is, with a reply, what the request was.
		Sent *chat.Sent `json:"sent,omitempty"`
	}
	// TodosChanged is the whole list of what the model means to do, as it is
	// from now on.
	TodosChanged struct {
		Todos []Todo `json:"todos"`
	}
	// ModeChanged is the mode of work from now on, and the permissions that
	// hold in it.
	ModeChanged struct {
		Mode   string `json:"mode"`
		Preset string `json:"preset,omitempty"`
	}
	// ContextReplaced is a marker: from here on Messages stand for everything
	// before, save for the newest Keep messages. Nothing is deleted.
	ContextReplaced struct {
		Reason       ReplaceReason  `json:"reason"`
		Messages     []chat.Message `json:"messages"`
		Keep         int            `json:"keep,omitempty"`
		TokensBefore int            `json:"tokensBefore,omitempty"`
		TokensAfter  int            `json:"tokensAfter,omitempty"`
		Done         string         `json:"done,omitempty"`   // what was done, for people
		Window       int            `json:"window,omitempty"` // tokens the server takes, if it said so in refusing more
	}
	// ContextRestored takes the last ContextReplaced back.
	ContextRestored struct {
		Messages int `json:"messages"` // how many are seen again
	}
	// ContextRewound takes the conversation back to before the message that is on
	// record as To. Nothing is deleted: Undo takes the last one back.
	ContextRewound struct {
		To       uint64 `json:"to,omitempty"`
		Messages int    `json:"messages"`         // how many are out of force, or in it again
		Turns    int    `json:"turns,omitempty"`  // how many turns were undone with it
		Undone   int    `json:"undone,omitempty"` // how many could be redone then, these among them
		Undo     bool   `json:"undo,omitempty"`
	}
	// Spent is what was used beside the replies that are kept: by a summary, a
	// reply that did not arrive whole, or one whose use was not reported.
	Spent struct {
		Model string     `json:"model"`
		Usage chat.Usage `json:"usage"`
		For   SpentFor   `json:"for"`
	}
	// LocalAdded is a command of the program's own and its output: kept with
	// the conversation, never sent to the model.
	LocalAdded struct {
		Input  string         `json:"input"`
		Output string         `json:"output"`
		Failed bool           `json:"failed,omitempty"`
		Blocks display.Blocks `json:"blocks,omitempty"` // what Output is made of, unless that is prose
	}
)

// Shown is what a person is shown of a command's output.
func (e LocalAdded) Shown() display.Blocks {
	if e.Blocks == nil {
		return display.Blocks{display.Text(e.Output)}
	}
	return e.Blocks
}

// ModeReminder begins the names of reminders of what a mode means.
const ModeReminder = "mode:"

// RulesReminder begins the names of reminders of rule files; the path follows.
const RulesReminder = "rules:"

// JobReminder begins the names of reminders of how commands in the background ended; the
// command's name follows.
const JobReminder = "job:"

// ReplaceReason is why a context was replaced.
type ReplaceReason string

// The reasons to replace a context.
const (
	Compacted    ReplaceReason = "compacted"
	ModeSwitched ReplaceReason = "mode_changed"
)

// Used is what e says that a model used, if it says so. Whoever tells what a
// session, a turn or a task used adds up these and nothing else.
func Used(e Event) (model string, u chat.Usage, ok bool) {
	switch e := e.(type) {
	case MessageAdded:
		if e.Usage != nil {
			return e.Model, *e.Usage, true
		}
	case Spent:
		e.Usage.Estimated = e.For == ForCutOff || e.For == ForUnreported
		return e.Model, e.Usage, true
	}
	return "", chat.Usage{}, false
}

// Interruption begins what the model is told, as if the person had said it, where
// they interrupted it.
const Interruption = "[Request interrupted by user"

// ByPerson reports whether r is a message that the person wrote: neither what the
// program tells the model in their role nor that they interrupted it.
func ByPerson(r Record) bool {
	e, ok := r.Event.(MessageAdded)
	return ok && r.Actor == ActorUser && e.Message.Role == chat.User && !strings.HasPrefix(e.Message.Text(), Interruption)
}

// Command is what the person typed where the intent is what that stands for, as with /init;
// "" if it is what they typed.
func (e TaskCreated) Command() string {
	if !strings.HasPrefix(e.Title, "/") || strings.HasPrefix(strings.TrimSpace(e.Intent), "/") || strings.HasSuffix(e.Title, "…") {
		return ""
	}
	return e.Title
}

// SpentFor is what something was spent for.
type SpentFor string

// What is spent beside replies that are kept. The last two are estimates.
const (
	ForSummary    SpentFor = "summary"
	ForServer     SpentFor = "mcp_server" // which had the model answer something
	ForCutOff     SpentFor = "cut_off"
	ForUnreported SpentFor = "unreported"
)

// Todo is one thing the model means to do.
type Todo struct {
	ID       string     `json:"id"`
	Content  string     `json:"content"`
	Status   TodoStatus `json:"status"`
	Priority string     `json:"priority,omitempty"`
}

// TodoStatus is how far a todo is.
type TodoStatus string

// The statuses of a todo.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
)

// Unknown is a record written by another version of the program. It is kept
// and passed on, never dropped.
type Unknown struct {
	Log     Log
	Type    string
	Version int
	Payload json.RawMessage
}

// Transient sights.
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
	// Retrying says that the reply so far is void and will be asked for again.
	Retrying struct {
		Attempt, Of int
		Wait        time.Duration
		Why         string
	}
	// Waiting says that nothing of a reply is there yet, and why.
	Waiting struct {
		Why      WaitReason
		Waited   time.Duration
		Read, Of int       // how much of the request the model has read, in tokens; zero if nobody says
		Until    time.Time // zero if nobody knows
	}
	ToolStarted struct {
		CallID, Tool, Title string
	}
	ToolOutput struct{ CallID, Text string }
	// ToolProgress is the line that a call is drawing over and over, as progress bars
	// are. It stands in place of the one before, until the call's output goes on. Where
	// more is printed than is passed on, it is the last line, and Lines is how many lines
	// were left out since the output stopped.
	ToolProgress struct {
		CallID, Line string
		Lines        int
	}
	ToolFinished struct {
		CallID, Tool, Title, Summary string
		Show                         display.Block
		Result                       chat.ToolResult
		Failed, Denied               bool
		Took                         time.Duration
	}
	ContextUsed struct{ Used, Max, Prompt int }
	Interrupted struct{ Text string }
	Notice      struct {
		Level Level
		Text  string
	}
)

// WaitReason is why a reply is waited for.
type WaitReason string

// The reasons to wait.
const (
	WaitReply   WaitReason = "reply"   // the model has not begun
	WaitLoading WaitReason = "loading" // the server loads the model
	WaitLimit   WaitReason = "limit"   // of the provider, which ends by itself
	WaitSummary WaitReason = "summary" // the model sums the conversation up, which makes it shorter
)

// Level is how much a notice matters.
type Level string

// The levels of a notice.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
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
