package event

// A Log is where coder saves a kind of event. Transient events have none.
type Log uint8

// The three logs, and the zero Log for none.
const (
	LogNone         Log = iota
	LogDomain           // user and agent: tasks and interactions
	LogAudit            // agent and world: tool calls
	LogConversation     // agent and model: messages
)

// AllLogs lists the three logs.
var AllLogs = []Log{LogDomain, LogAudit, LogConversation}

// String returns the log's name, also used on disk.
func (l Log) String() string {
	return [...]string{"transient", "events", "audit", "conversation"}[l]
}

// LogOf returns the log that e belongs to.
func LogOf(e Event) Log {
	switch e := e.(type) {
	case TaskCreated, TaskStarted, TaskCompleted, TaskFailed, TaskCanceled,
		InteractionRequested, InteractionResponded:
		return LogDomain
	case ToolCallRequested, ToolCallCompleted:
		return LogAudit
	case MessageAdded, Spent, LocalAdded, TodosChanged, ModeChanged, ContextReplaced, ContextRestored, ContextRewound:
		return LogConversation
	case Unknown:
		return e.Log
	case SessionOpened, StateChanged, TextDelta, ReasoningDelta, Retrying, Waiting, ToolStarted,
		ToolOutput, ToolProgress, ToolFinished, ContextUsed, Interrupted, Notice:
		return LogNone
	}
	return LogNone
}

// IsIrreversible reports whether e announces something that cannot be undone: a decision, the end of a task, a
// call that may change the world. It and all earlier records must be synced to disk before anyone acts
// on it.
func IsIrreversible(e Event) bool {
	switch e := e.(type) {
	case InteractionRequested, InteractionResponded, TaskCompleted, TaskFailed, TaskCanceled:
		return true
	case ToolCallRequested:
		return !e.ReadOnly && (e.Verdict == "" || e.Verdict == VerdictAllowed)
	}
	return false
}

// ChangesWorld reports whether e announces a call that changes the world, so not one that only reads or only
// writes coder's own notes. A deed must not run before its record is synced to disk: a later process
// would not know about it.
func ChangesWorld(e Event) bool {
	call, ok := e.(ToolCallRequested)
	return ok && IsIrreversible(e) && !AreHarmless(call.Effects)
}
