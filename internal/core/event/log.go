package event

// A Log is where coder saves a kind of event. Transient events have none.
type Log uint8

// The three logs, and the zero Log for none.
const (
	Transient    Log = iota
	Domain           // user and agent: tasks and interactions
	Audit            // agent and world: tool calls
	Conversation     // agent and model: messages
)

// Logs lists the three logs.
var Logs = []Log{Domain, Audit, Conversation}

// String returns the log's name, also used on disk.
func (l Log) String() string {
	return [...]string{"transient", "events", "audit", "conversation"}[l]
}

// LogOf returns the log that e belongs to.
func LogOf(e Event) Log {
	switch e := e.(type) {
	case TaskCreated, TaskStarted, TaskCompleted, TaskFailed, TaskCanceled,
		InteractionRequested, InteractionResponded:
		return Domain
	case ToolCallRequested, ToolCallCompleted:
		return Audit
	case MessageAdded, Spent, LocalAdded, TodosChanged, ModeChanged, ContextReplaced, ContextRestored, ContextRewound:
		return Conversation
	case Unknown:
		return e.Log
	case SessionOpened, StateChanged, TextDelta, ReasoningDelta, Retrying, Waiting, ToolStarted,
		ToolOutput, ToolProgress, ToolFinished, ContextUsed, Interrupted, Notice:
		return Transient
	}
	return Transient
}

// Decisive reports whether e announces something that cannot be undone: a decision, the end of a task, a
// call that may change the world. It and all earlier records must be synced to disk before anyone acts
// on it.
func Decisive(e Event) bool {
	switch e := e.(type) {
	case InteractionRequested, InteractionResponded, TaskCompleted, TaskFailed, TaskCanceled:
		return true
	case ToolCallRequested:
		return !e.ReadOnly && (e.Verdict == "" || e.Verdict == Allowed)
	}
	return false
}

// Deed reports whether e announces a call that changes the world, so not one that only reads or only
// writes coder's own notes. A deed must not run before its record is synced to disk: a later process
// would not know about it.
func Deed(e Event) bool {
	call, ok := e.(ToolCallRequested)
	return ok && Decisive(e) && !Harmless(call.Effects)
}
