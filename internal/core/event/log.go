package event

// A Log is where a kind of event is kept. Transient events are kept nowhere.
type Log uint8

// The three logs, and none.
const (
	Transient    Log = iota
	Domain           // person and agent: tasks and interactions
	Audit            // agent and world: tool calls
	Conversation     // agent and model: messages
)

// Logs lists the three logs.
var Logs = []Log{Domain, Audit, Conversation}

// String is the log's name, also on disk.
func (l Log) String() string {
	return [...]string{"transient", "events", "audit", "conversation"}[l]
}

// LogOf is the routing table: the log that e belongs to.
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

// Decisive reports whether e announces something that cannot be taken back: a
// decision, the end of a task, a call that may change the world. It and all
// before it must be on the disk, not only in the file, before anyone acts on it.
func Decisive(e Event) bool {
	switch e := e.(type) {
	case InteractionRequested, InteractionResponded, TaskCompleted, TaskFailed, TaskCanceled:
		return true
	case ToolCallRequested:
		return !e.ReadOnly && (e.Verdict == "" || e.Verdict == Allowed)
	}
	return false
}

// Deed reports whether e announces a call that changes the world: neither one
// that only reads nor one that writes only the program's own notes. A deed whose
// announcement is not on the disk must not be done: a later process would not
// know that it was.
func Deed(e Event) bool {
	call, ok := e.(ToolCallRequested)
	return ok && Decisive(e) && !Harmless(call.Effects)
}
