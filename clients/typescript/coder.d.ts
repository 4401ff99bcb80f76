// Made by make clients from coder events schema, version 1.

export interface Answer {
  "comment"?: string;
  "interactionId": string;
  "option": string;
  "record": number;
}

export interface AuditRow {
  "completed": ToolCallCompleted | null;
  "record": number;
  "requested": ToolCallRequested;
  "time": string;
}

export interface Block {
  "added"?: number;
  "checks"?: unknown[];
  "deleted"?: number;
  "first"?: number;
  "head"?: unknown[];
  "kind": string;
  "lang"?: string;
  "more"?: number;
  "rows"?: unknown[];
  "shell"?: Record<string, unknown>;
  "text"?: string;
}

export interface Build {
  "commit"?: string;
  "date"?: string;
  "dirty"?: boolean | null;
  "go": string;
  "session_format": number;
  "settings_format": number;
  "system": string;
  "version": string;
}

export interface CacheBreak {
  "anew": number;
  "record": number;
  "why": string;
}

export interface Check {
  "command": string;
  "exit": number;
  "record": number;
}

export interface ContextReplaced {
  "done"?: string;
  "keep"?: number;
  "messages": Array<Message> | null;
  "reason": string;
  "tokensAfter"?: number;
  "tokensBefore"?: number;
  "window"?: number;
}

export interface ContextReplacedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ContextReplaced;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ContextReplaced";
  "v": 1;
}

export interface ContextRestored {
  "messages": number;
}

export interface ContextRestoredEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ContextRestored;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ContextRestored";
  "v": 1;
}

export interface ContextRewound {
  "messages": number;
  "to"?: number;
  "turns"?: number;
  "undo"?: boolean;
  "undone"?: number;
}

export interface ContextRewoundEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ContextRewound;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ContextRewound";
  "v": 1;
}

export interface ContextUsed {
  "max": number;
  "prompt": number;
  "used": number;
}

export interface ContextUsedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ContextUsed;
  "sessionId": string;
  "streamId": string;
  "type": "ContextUsed";
  "v": 1;
}

export interface Difference {
  "about"?: string;
  "agreed": number;
  "call"?: string;
  "cause"?: string;
  "is": string;
  "record": number;
  "step": number;
  "was": string;
  "what": string;
}

export interface Display {
  "content"?: unknown;
  "contentKind"?: string;
  "description"?: string;
  "metadata"?: Record<string, string>;
  "title": string;
}

export interface DoctorReport {
  "findings": Array<Finding> | null;
  "ok": boolean;
}

export interface Drop {
  "done"?: string;
  "messages": number;
  "record": number;
  "shortened"?: number;
  "tokens_after": number;
  "tokens_before": number;
}

export interface EndpointJSON {
  "base_url": string;
  "error"?: string;
  "in_use": boolean;
  "key_variable"?: string;
  "kind": string;
  "local": boolean;
  "models": Array<ModelJSON> | null;
  "name": string;
  "preset"?: string;
}

export interface EndpointList {
  "endpoints": Array<EndpointJSON> | null;
}

export interface Entry {
  "cached": number;
  "cost": number;
  "dropped"?: boolean;
  "kind": string;
  "name"?: string;
  "now": number;
  "record"?: number;
  "requests": number;
  "sent": number;
}

export type Event = TaskCreatedEvent | TaskStartedEvent | TaskCompletedEvent | TaskFailedEvent | TaskCanceledEvent | UserInteractionRequestedEvent | UserInteractionRespondedEvent | ToolCallRequestedEvent | ToolCallCompletedEvent | MessageAddedEvent | LocalAddedEvent | SpentEvent | TodosChangedEvent | ModeChangedEvent | ContextReplacedEvent | ContextRestoredEvent | ContextRewoundEvent | ContextUsedEvent | InterruptedEvent | NoticeEvent | ReasoningDeltaEvent | RetryingEvent | SessionOpenedEvent | StateChangedEvent | TextDeltaEvent | ToolFinishedEvent | ToolOutputEvent | ToolProgressEvent | ToolStartedEvent | WaitingEvent;

export interface Explanation {
  "agent": string;
  "answer": Answer | null;
  "check": Check | null;
  "decidedBy": string;
  "input": unknown;
  "message": ProvenanceMessage;
  "prompt": ProvenanceMessage;
  "reasons": Array<string> | null;
  "signed": boolean;
  "verdict": string;
}

export interface FileChange {
  "after": FileState;
  "before": FileState;
  "doubt"?: string;
}

export interface FileState {
  "hash"?: string;
  "link"?: string;
  "lost"?: boolean;
  "mode"?: number;
  "path": string;
  "size"?: number;
}

export interface Finding {
  "do"?: string;
  "found": string;
  "state": string;
  "what": string;
}

export interface ForeignRow {
  "agent": string;
  "created_at": string;
  "cwd": string;
  "session_id": string;
  "title": string;
}

export interface GoldenResult {
  "error"?: string;
  "name": string;
  "result"?: Report | null;
}

export interface Head {
  "archived"?: boolean;
  "created_at": string;
  "meta": Meta;
  "session_id": string;
  "tags"?: Array<string> | null;
  "updated_at": string;
}

export interface InteractionRequested {
  "authorActorId": string;
  "callDigest"?: string;
  "display": Display;
  "interactionId": string;
  "kind": string;
  "options"?: Array<Option> | null;
  "parts"?: Array<Request> | null;
  "purpose": string;
  "taskId": string;
  "validation"?: Validation | null;
}

export interface InteractionResponded {
  "authorActorId": string;
  "comment"?: string;
  "dismissed"?: boolean;
  "inputValue"?: string;
  "interactionId": string;
  "interrupt"?: boolean;
  "parts"?: Array<Response> | null;
  "selectedOptionId"?: string;
  "taskId": string;
  "updatedInput"?: unknown;
  "via"?: string;
}

export interface InterruptedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TextPiece;
  "sessionId": string;
  "streamId": string;
  "type": "Interrupted";
  "v": 1;
}

export interface Ledger {
  "aside": Usage;
  "breaks"?: Array<CacheBreak> | null;
  "drops"?: Array<Drop> | null;
  "entries": Array<Entry | null> | null;
  "requests": Array<LedgerRequest> | null;
  "total": Usage;
}

export interface LedgerRequest {
  "by_kind": Record<string, number> | null;
  "record": number;
  "usage": Usage;
}

export interface ListedGrant {
  "as"?: string;
  "kind": string;
  "number": number;
  "scope": string;
  "session"?: string;
  "what": string;
  "when": string;
  "why": string;
}

export interface LocalAdded {
  "blocks"?: Array<Block> | null;
  "failed"?: boolean;
  "input": string;
  "output": string;
}

export interface LocalAddedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": LocalAdded;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "LocalAdded";
  "v": 1;
}

export interface McpRow {
  "name": string;
  "refused"?: Array<string> | null;
  "state": string;
  "tools"?: Array<string> | null;
  "type": string;
  "where": string;
  "why"?: string;
}

export interface Message {
  "content": string | unknown[] | null;
  "failed"?: boolean;
  "name"?: string;
  "reasoning"?: string;
  "reasoning_details"?: unknown;
  "reasoning_field"?: string;
  "role": string;
  "tool_call_id"?: string;
  "tool_calls"?: Array<{
    "broken"?: string;
    "extra_content"?: unknown;
    "function": {
      "arguments": string;
      "name": string;
    };
    "id": string;
    "type": string;
  }>;
}

export interface MessageAdded {
  "blocks"?: Array<Block> | null;
  "interrupted"?: boolean;
  "message": Message;
  "model"?: string;
  "reminded"?: Array<string> | null;
  "reminders"?: string;
  "sent"?: SentRequest | null;
  "stop"?: string;
  "tools"?: Record<string, number> | null;
  "usage"?: Usage | null;
  "window"?: number;
}

export interface MessageAddedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": MessageAdded;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "MessageAdded";
  "v": 1;
}

export interface Meta {
  "agent": string;
  "cwd": string;
  "model": string;
  "title": string;
  "turns": number;
}

export interface ModeChanged {
  "mode": string;
  "preset"?: string;
}

export interface ModeChangedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ModeChanged;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ModeChanged";
  "v": 1;
}

export interface ModelJSON {
  "default": boolean;
  "name": string;
  "price_cache_write"?: number;
  "price_cached"?: number;
  "price_in"?: number | null;
  "price_out"?: number | null;
  "window"?: number;
}

export interface Notice {
  "level": string;
  "text": string;
}

export interface NoticeEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": Notice;
  "sessionId": string;
  "streamId": string;
  "type": "Notice";
  "v": 1;
}

export interface Option {
  "id": string;
  "isDefault"?: boolean;
  "label": string;
  "style"?: string;
}

export interface Origin {
  "Line": number;
  "Project": boolean;
  "Source": string;
}

export interface OriginRow {
  "by": string;
  "commit"?: string;
  "line": number;
  "perhaps"?: string;
  "place"?: string;
  "record"?: number;
  "session"?: string;
  "story"?: Explanation | null;
  "text": string;
  "unsure"?: boolean;
}

export interface Outputs {
  "audit"?: AuditRow;
  "blame"?: Array<OriginRow> | null;
  "config"?: Array<SettingRow> | null;
  "config get"?: SettingRow;
  "config set"?: SettingChange;
  "context"?: Ledger;
  "doctor"?: DoctorReport;
  "golden list"?: Array<string> | null;
  "golden run"?: Array<GoldenResult> | null;
  "mcp"?: Array<McpRow> | null;
  "models"?: EndpointList;
  "plugin"?: Array<PluginRow> | null;
  "policy check"?: PolicyVerdict;
  "policy list"?: Array<ListedGrant> | null;
  "policy test"?: PolicyTestResult;
  "prune"?: PruneReport;
  "replay"?: Report;
  "search"?: Array<Result> | null;
  "sessions"?: Array<Head> | null;
  "sessions from"?: Array<ForeignRow> | null;
  "tasks"?: Array<TaskRow> | null;
  "trust"?: TrustReport;
  "usage"?: UsageReport;
  "version"?: Build;
  "why"?: Array<OriginRow> | null;
  "worktree list"?: Array<WorktreeEntry> | null;
}

export interface PluginRow {
  "agents"?: Array<string> | null;
  "commands"?: Array<string> | null;
  "description"?: string;
  "hooks"?: Array<PluginRun> | null;
  "mcpServers"?: Array<PluginRun> | null;
  "name": string;
  "outputStyles"?: Array<string> | null;
  "path": string;
  "skills"?: Array<string> | null;
  "state": string;
  "version"?: string;
  "why"?: string;
}

export interface PluginRun {
  "matcher"?: string;
  "name"?: string;
  "on"?: string;
  "runs": string;
}

export interface PolicyTestResult {
  "asked_now": number;
  "asked_then": number;
  "calls": number;
  "changed": Array<RejudgedCall> | null;
  "sessions": number;
}

export interface PolicyVerdict {
  "always": string | null;
  "always_not"?: string;
  "command": string;
  "decision": string;
  "mode": string;
  "read_only": boolean;
  "reasons": Array<string> | null;
  "risk": string;
  "rules": Array<string> | null;
  "sandbox": string;
  "withheld"?: Array<string> | null;
}

export interface ProvenanceMessage {
  "model"?: string;
  "record": number;
  "text": string;
  "time": string;
}

export interface PruneItem {
  "bytes": number;
  "files": number;
  "kind": string;
  "lastUsed": string;
  "name": string;
}

export interface PruneReport {
  "deleted": boolean;
  "items": Array<PruneItem> | null;
  "kept": Array<SparedSession> | null;
}

export interface ReasoningDeltaEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TextPiece;
  "sessionId": string;
  "streamId": string;
  "type": "ReasoningDelta";
  "v": 1;
}

export interface RejudgedCall {
  "mode": string;
  "now": string;
  "session": string;
  "then": string;
  "toolCallId": string;
  "toolName": string;
  "what": string;
  "why"?: string;
}

export interface Report {
  "difference"?: Difference | null;
  "missing"?: string;
  "records": number;
  "session": string;
  "steps": number;
  "unsure"?: Array<string> | null;
}

export interface Request {
  "authorActorId": string;
  "callDigest"?: string;
  "display": Display;
  "interactionId": string;
  "kind": string;
  "options"?: Array<Option> | null;
  "parts"?: Array<Request> | null;
  "purpose": string;
  "taskId": string;
  "validation"?: Validation | null;
}

export interface Response {
  "authorActorId": string;
  "comment"?: string;
  "dismissed"?: boolean;
  "inputValue"?: string;
  "interactionId": string;
  "interrupt"?: boolean;
  "parts"?: Array<Response> | null;
  "selectedOptionId"?: string;
  "taskId": string;
  "updatedInput"?: unknown;
  "via"?: string;
}

export interface Result {
  "damage"?: string;
  "kind": string;
  "line": string;
  "project": string;
  "record": number;
  "session_id": string;
  "stamp": string;
  "title": string;
  "updated": string;
}

export interface Retrying {
  "attempt": number;
  "of": number;
  "waitMs": number;
  "why": string;
}

export interface RetryingEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": Retrying;
  "sessionId": string;
  "streamId": string;
  "type": "Retrying";
  "v": 1;
}

export interface Row {
  "Key": string;
  "Lock": Origin;
  "Origin": Origin;
  "Value": string;
}

export interface RunOptions {
  "allowedTools"?: string;
  "appendSystemPrompt"?: string;
  "config"?: string;
  "disallowedTools"?: string;
  "systemPrompt"?: string;
  "window"?: number;
}

export interface SentRequest {
  "asText"?: boolean;
  "effort"?: string;
  "head"?: string;
  "model": string;
  "size": number;
  "sum": number;
  "tail": string;
  "wire": string;
}

export interface SessionOpened {
  "dir": string;
  "maxTokens": number;
  "mode": string;
  "model": string;
  "resumed": boolean;
  "tools": Array<string> | null;
}

export interface SessionOpenedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": SessionOpened;
  "sessionId": string;
  "streamId": string;
  "type": "SessionOpened";
  "v": 1;
}

export interface SettingChange {
  "changed": boolean;
  "file": string;
  "settings": Array<SettingRow> | null;
}

export interface SettingRow {
  "about"?: string;
  "key": string;
  "locked"?: string;
  "origin": string;
  "value": unknown;
}

export interface SparedSession {
  "session_id": string;
  "why": string;
}

export interface Spent {
  "for": string;
  "model": string;
  "usage": Usage;
}

export interface SpentEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": Spent;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "Spent";
  "v": 1;
}

export interface StateChanged {
  "busy": boolean;
}

export interface StateChangedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": StateChanged;
  "sessionId": string;
  "streamId": string;
  "type": "StateChanged";
  "v": 1;
}

export interface Sum {
  "cached": number;
  "cost_usd": number;
  "in": number;
  "of": string;
  "out": number;
  "requests": number;
  "sessions": number;
  "unpriced": boolean;
}

export interface TaskCanceled {
  "authorActorId": string;
  "reason"?: string;
  "taskId": string;
}

export interface TaskCanceledEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TaskCanceled;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TaskCanceled";
  "v": 1;
}

export interface TaskCompleted {
  "authorActorId": string;
  "summary"?: string;
  "taskId": string;
}

export interface TaskCompletedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TaskCompleted;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TaskCompleted";
  "v": 1;
}

export interface TaskCreated {
  "agentId": string;
  "authorActorId": string;
  "intent": string;
  "parentTaskId"?: string;
  "priority": string;
  "run"?: RunOptions | null;
  "taskId": string;
  "title": string;
  "toolCallId"?: string;
}

export interface TaskCreatedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TaskCreated;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TaskCreated";
  "v": 1;
}

export interface TaskFailed {
  "authorActorId": string;
  "code"?: string;
  "reason": string;
  "says"?: string;
  "steps"?: number;
  "taskId": string;
}

export interface TaskFailedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TaskFailed;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TaskFailed";
  "v": 1;
}

export interface TaskRow {
  "createdAt": string;
  "interactions": Array<Request> | null;
  "running": boolean;
  "session_id": string;
  "status": string;
  "taskId": string;
  "title": string;
}

export interface TaskStarted {
  "agentId": string;
  "authorActorId": string;
  "run"?: RunOptions | null;
  "taskId": string;
}

export interface TaskStartedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TaskStarted;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TaskStarted";
  "v": 1;
}

export interface TextDeltaEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TextPiece;
  "sessionId": string;
  "streamId": string;
  "type": "TextDelta";
  "v": 1;
}

export interface TextPiece {
  "text": string;
}

export interface Todo {
  "content": string;
  "id": string;
  "priority"?: string;
  "status": string;
}

export interface TodosChanged {
  "todos": Array<Todo> | null;
}

export interface TodosChangedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": TodosChanged;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "TodosChanged";
  "v": 1;
}

export interface ToolCallCompleted {
  "authorActorId": string;
  "changes"?: Array<FileChange> | null;
  "durationMs": number;
  "isError": boolean;
  "output": unknown;
  "saw"?: Array<FileState> | null;
  "summary"?: string;
  "taskId": string;
  "timestamp": number;
  "toolCallId": string;
  "toolName": string;
  "unknown"?: boolean;
}

export interface ToolCallCompletedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolCallCompleted;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ToolCallCompleted";
  "v": 1;
}

export interface ToolCallRequested {
  "authorActorId": string;
  "before"?: Array<FileState> | null;
  "decidedBy"?: string;
  "effects"?: Array<string> | null;
  "input": unknown;
  "keyless"?: boolean;
  "readOnly"?: boolean;
  "reasons"?: Array<string> | null;
  "repository"?: string;
  "sandbox"?: string;
  "taskId": string;
  "timestamp": number;
  "title"?: string;
  "toolCallId": string;
  "toolName": string;
  "tree"?: string;
  "unasked"?: string;
  "verdict"?: string;
}

export interface ToolCallRequestedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolCallRequested;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "ToolCallRequested";
  "v": 1;
}

export interface ToolFinished {
  "denied": boolean;
  "durationMs": number;
  "failed": boolean;
  "result": string;
  "show"?: unknown;
  "summary": string;
  "title": string;
  "toolCallId": string;
  "toolName": string;
}

export interface ToolFinishedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolFinished;
  "sessionId": string;
  "streamId": string;
  "type": "ToolFinished";
  "v": 1;
}

export interface ToolOutput {
  "text": string;
  "toolCallId": string;
}

export interface ToolOutputEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolOutput;
  "sessionId": string;
  "streamId": string;
  "type": "ToolOutput";
  "v": 1;
}

export interface ToolProgress {
  "line": string;
  "lines"?: number;
  "toolCallId": string;
}

export interface ToolProgressEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolProgress;
  "sessionId": string;
  "streamId": string;
  "type": "ToolProgress";
  "v": 1;
}

export interface ToolStarted {
  "title": string;
  "toolCallId": string;
  "toolName": string;
}

export interface ToolStartedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": ToolStarted;
  "sessionId": string;
  "streamId": string;
  "type": "ToolStarted";
  "v": 1;
}

export interface TrustReport {
  "files": Array<string> | null;
  "hooks": Array<PluginRun> | null;
  "mcpServers": Array<PluginRun> | null;
  "root": string;
  "settings": Array<Row> | null;
  "trusted": boolean;
}

export interface Usage {
  "cached"?: number;
  "cost"?: number;
  "in": number;
  "out": number;
  "reasoning"?: number;
  "unpriced"?: boolean;
  "written"?: number;
}

export interface UsageReport {
  "by": string;
  "since": string;
  "sums": Array<Sum> | null;
  "total": Sum;
}

export interface UserInteractionRequestedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": InteractionRequested;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "UserInteractionRequested";
  "v": 1;
}

export interface UserInteractionRespondedEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": InteractionResponded;
  "seal"?: string;
  "seq": number;
  "sessionId": string;
  "streamId": string;
  "type": "UserInteractionResponded";
  "v": 1;
}

export interface Validation {
  "regex"?: string;
  "required"?: boolean;
  "says"?: string;
}

export interface Waiting {
  "of"?: number;
  "read"?: number;
  "until"?: string;
  "waitedMs": number;
  "why": string;
}

export interface WaitingEvent {
  "actor"?: string;
  "createdAt": string;
  "payload": Waiting;
  "sessionId": string;
  "streamId": string;
  "type": "Waiting";
  "v": 1;
}

export interface WorktreeEntry {
  "at": number;
  "branch"?: string;
  "commit"?: string;
  "dir": string;
  "from": string;
  "made": string;
  "name": string;
  "print"?: string;
  "repo"?: string;
  "session": string;
  "source": string;
  "work": string;
}
