"""Made by make clients from coder events schema, version 1."""

from typing import Any, Literal, NotRequired, TypedDict, Union

Answer = TypedDict("Answer", {
    "comment": NotRequired[str],
    "interactionId": str,
    "option": str,
    "record": int,
})

AuditRow = TypedDict("AuditRow", {
    "completed": Union["ToolCallCompleted", None],
    "record": int,
    "requested": "ToolCallRequested",
    "time": str,
})

Block = TypedDict("Block", {
    "added": NotRequired[int],
    "checks": NotRequired[list[Any]],
    "deleted": NotRequired[int],
    "first": NotRequired[int],
    "head": NotRequired[list[Any]],
    "kind": str,
    "lang": NotRequired[str],
    "more": NotRequired[int],
    "rows": NotRequired[list[Any]],
    "shell": NotRequired[dict[str, Any]],
    "text": NotRequired[str],
})

Build = TypedDict("Build", {
    "commit": NotRequired[str],
    "date": NotRequired[str],
    "dirty": NotRequired[Union[bool, None]],
    "go": str,
    "session_format": int,
    "settings_format": int,
    "system": str,
    "version": str,
})

CacheBreak = TypedDict("CacheBreak", {
    "anew": int,
    "record": int,
    "why": str,
})

Check = TypedDict("Check", {
    "command": str,
    "exit": int,
    "record": int,
})

ContextReplaced = TypedDict("ContextReplaced", {
    "done": NotRequired[str],
    "keep": NotRequired[int],
    "messages": Union[list["Message"], None],
    "reason": str,
    "tokensAfter": NotRequired[int],
    "tokensBefore": NotRequired[int],
    "window": NotRequired[int],
})

ContextReplacedEvent = TypedDict("ContextReplacedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ContextReplaced",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ContextReplaced"],
    "v": Literal[1],
})

ContextRestored = TypedDict("ContextRestored", {
    "messages": int,
})

ContextRestoredEvent = TypedDict("ContextRestoredEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ContextRestored",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ContextRestored"],
    "v": Literal[1],
})

ContextRewound = TypedDict("ContextRewound", {
    "messages": int,
    "to": NotRequired[int],
    "turns": NotRequired[int],
    "undo": NotRequired[bool],
    "undone": NotRequired[int],
})

ContextRewoundEvent = TypedDict("ContextRewoundEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ContextRewound",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ContextRewound"],
    "v": Literal[1],
})

ContextUsed = TypedDict("ContextUsed", {
    "max": int,
    "prompt": int,
    "used": int,
})

ContextUsedEvent = TypedDict("ContextUsedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ContextUsed",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ContextUsed"],
    "v": Literal[1],
})

Difference = TypedDict("Difference", {
    "about": NotRequired[str],
    "agreed": int,
    "call": NotRequired[str],
    "cause": NotRequired[str],
    "is": str,
    "record": int,
    "step": int,
    "was": str,
    "what": str,
})

Display = TypedDict("Display", {
    "content": NotRequired[Any],
    "contentKind": NotRequired[str],
    "description": NotRequired[str],
    "metadata": NotRequired[dict[str, str]],
    "title": str,
})

DoctorReport = TypedDict("DoctorReport", {
    "findings": Union[list["Finding"], None],
    "ok": bool,
})

Drop = TypedDict("Drop", {
    "done": NotRequired[str],
    "messages": int,
    "record": int,
    "shortened": NotRequired[int],
    "tokens_after": int,
    "tokens_before": int,
})

EndpointJSON = TypedDict("EndpointJSON", {
    "base_url": str,
    "error": NotRequired[str],
    "in_use": bool,
    "key_variable": NotRequired[str],
    "kind": str,
    "local": bool,
    "models": Union[list["ModelJSON"], None],
    "name": str,
    "preset": NotRequired[str],
})

EndpointList = TypedDict("EndpointList", {
    "endpoints": Union[list["EndpointJSON"], None],
})

Entry = TypedDict("Entry", {
    "cached": int,
    "cost": float,
    "dropped": NotRequired[bool],
    "kind": str,
    "name": NotRequired[str],
    "now": int,
    "record": NotRequired[int],
    "requests": int,
    "sent": int,
})

Explanation = TypedDict("Explanation", {
    "agent": str,
    "answer": Union["Answer", None],
    "check": Union["Check", None],
    "decidedBy": str,
    "input": Any,
    "message": "ProvenanceMessage",
    "prompt": "ProvenanceMessage",
    "reasons": Union[list[str], None],
    "signed": bool,
    "verdict": str,
})

FileChange = TypedDict("FileChange", {
    "after": "FileState",
    "before": "FileState",
    "doubt": NotRequired[str],
})

FileState = TypedDict("FileState", {
    "hash": NotRequired[str],
    "link": NotRequired[str],
    "lost": NotRequired[bool],
    "mode": NotRequired[int],
    "path": str,
    "size": NotRequired[int],
})

Finding = TypedDict("Finding", {
    "do": NotRequired[str],
    "found": str,
    "state": str,
    "what": str,
})

ForeignRow = TypedDict("ForeignRow", {
    "agent": str,
    "created_at": str,
    "cwd": str,
    "session_id": str,
    "title": str,
})

GoldenResult = TypedDict("GoldenResult", {
    "error": NotRequired[str],
    "name": str,
    "result": NotRequired[Union["Report", None]],
})

Head = TypedDict("Head", {
    "archived": NotRequired[bool],
    "created_at": str,
    "meta": "Meta",
    "session_id": str,
    "tags": NotRequired[Union[list[str], None]],
    "updated_at": str,
})

InteractionRequested = TypedDict("InteractionRequested", {
    "authorActorId": str,
    "callDigest": NotRequired[str],
    "display": "Display",
    "interactionId": str,
    "kind": str,
    "options": NotRequired[Union[list["Option"], None]],
    "parts": NotRequired[Union[list["Request"], None]],
    "purpose": str,
    "taskId": str,
    "validation": NotRequired[Union["Validation", None]],
})

InteractionResponded = TypedDict("InteractionResponded", {
    "authorActorId": str,
    "comment": NotRequired[str],
    "dismissed": NotRequired[bool],
    "inputValue": NotRequired[str],
    "interactionId": str,
    "interrupt": NotRequired[bool],
    "parts": NotRequired[Union[list["Response"], None]],
    "selectedOptionId": NotRequired[str],
    "taskId": str,
    "updatedInput": NotRequired[Any],
    "via": NotRequired[str],
})

InterruptedEvent = TypedDict("InterruptedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TextPiece",
    "sessionId": str,
    "streamId": str,
    "type": Literal["Interrupted"],
    "v": Literal[1],
})

Ledger = TypedDict("Ledger", {
    "aside": "Usage",
    "breaks": NotRequired[Union[list["CacheBreak"], None]],
    "drops": NotRequired[Union[list["Drop"], None]],
    "entries": Union[list[Union["Entry", None]], None],
    "requests": Union[list["LedgerRequest"], None],
    "total": "Usage",
})

LedgerRequest = TypedDict("LedgerRequest", {
    "by_kind": Union[dict[str, int], None],
    "record": int,
    "usage": "Usage",
})

ListedGrant = TypedDict("ListedGrant", {
    "as": NotRequired[str],
    "kind": str,
    "number": int,
    "scope": str,
    "session": NotRequired[str],
    "what": str,
    "when": str,
    "why": str,
})

LocalAdded = TypedDict("LocalAdded", {
    "blocks": NotRequired[Union[list["Block"], None]],
    "failed": NotRequired[bool],
    "input": str,
    "output": str,
})

LocalAddedEvent = TypedDict("LocalAddedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "LocalAdded",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["LocalAdded"],
    "v": Literal[1],
})

McpRow = TypedDict("McpRow", {
    "name": str,
    "refused": NotRequired[Union[list[str], None]],
    "state": str,
    "tools": NotRequired[Union[list[str], None]],
    "type": str,
    "where": str,
    "why": NotRequired[str],
})

Message = TypedDict("Message", {
    "content": Union[str, list[Any], None],
    "failed": NotRequired[bool],
    "name": NotRequired[str],
    "reasoning": NotRequired[str],
    "reasoning_details": NotRequired[Any],
    "reasoning_field": NotRequired[str],
    "role": str,
    "tool_call_id": NotRequired[str],
    "tool_calls": NotRequired[list[TypedDict("Message", {
    "broken": NotRequired[str],
    "extra_content": NotRequired[Any],
    "function": TypedDict("Message", {
    "arguments": str,
    "name": str,
}),
    "id": str,
    "type": str,
})]],
})

MessageAdded = TypedDict("MessageAdded", {
    "blocks": NotRequired[Union[list["Block"], None]],
    "interrupted": NotRequired[bool],
    "message": "Message",
    "model": NotRequired[str],
    "reminded": NotRequired[Union[list[str], None]],
    "reminders": NotRequired[str],
    "sent": NotRequired[Union["SentRequest", None]],
    "stop": NotRequired[str],
    "tools": NotRequired[Union[dict[str, int], None]],
    "usage": NotRequired[Union["Usage", None]],
    "window": NotRequired[int],
})

MessageAddedEvent = TypedDict("MessageAddedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "MessageAdded",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["MessageAdded"],
    "v": Literal[1],
})

Meta = TypedDict("Meta", {
    "agent": str,
    "cwd": str,
    "model": str,
    "title": str,
    "turns": int,
})

ModeChanged = TypedDict("ModeChanged", {
    "mode": str,
    "preset": NotRequired[str],
})

ModeChangedEvent = TypedDict("ModeChangedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ModeChanged",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ModeChanged"],
    "v": Literal[1],
})

ModelJSON = TypedDict("ModelJSON", {
    "default": bool,
    "name": str,
    "price_cache_write": NotRequired[float],
    "price_cached": NotRequired[float],
    "price_in": NotRequired[Union[float, None]],
    "price_out": NotRequired[Union[float, None]],
    "window": NotRequired[int],
})

Notice = TypedDict("Notice", {
    "level": str,
    "text": str,
})

NoticeEvent = TypedDict("NoticeEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "Notice",
    "sessionId": str,
    "streamId": str,
    "type": Literal["Notice"],
    "v": Literal[1],
})

Option = TypedDict("Option", {
    "id": str,
    "isDefault": NotRequired[bool],
    "label": str,
    "style": NotRequired[str],
})

Origin = TypedDict("Origin", {
    "Line": int,
    "Project": bool,
    "Source": str,
})

OriginRow = TypedDict("OriginRow", {
    "by": str,
    "commit": NotRequired[str],
    "line": int,
    "perhaps": NotRequired[str],
    "place": NotRequired[str],
    "record": NotRequired[int],
    "session": NotRequired[str],
    "story": NotRequired[Union["Explanation", None]],
    "text": str,
    "unsure": NotRequired[bool],
})

Outputs = TypedDict("Outputs", {
    "audit": NotRequired["AuditRow"],
    "blame": NotRequired[Union[list["OriginRow"], None]],
    "config": NotRequired[Union[list["SettingRow"], None]],
    "config get": NotRequired["SettingRow"],
    "config set": NotRequired["SettingChange"],
    "context": NotRequired["Ledger"],
    "doctor": NotRequired["DoctorReport"],
    "golden list": NotRequired[Union[list[str], None]],
    "golden run": NotRequired[Union[list["GoldenResult"], None]],
    "mcp": NotRequired[Union[list["McpRow"], None]],
    "models": NotRequired["EndpointList"],
    "plugin": NotRequired[Union[list["PluginRow"], None]],
    "policy check": NotRequired["PolicyVerdict"],
    "policy list": NotRequired[Union[list["ListedGrant"], None]],
    "policy test": NotRequired["PolicyTestResult"],
    "prune": NotRequired["PruneReport"],
    "replay": NotRequired["Report"],
    "search": NotRequired[Union[list["Result"], None]],
    "sessions": NotRequired[Union[list["Head"], None]],
    "sessions from": NotRequired[Union[list["ForeignRow"], None]],
    "tasks": NotRequired[Union[list["TaskRow"], None]],
    "trust": NotRequired["TrustReport"],
    "usage": NotRequired["UsageReport"],
    "version": NotRequired["Build"],
    "why": NotRequired[Union[list["OriginRow"], None]],
    "worktree list": NotRequired[Union[list["WorktreeEntry"], None]],
})

PluginRow = TypedDict("PluginRow", {
    "agents": NotRequired[Union[list[str], None]],
    "commands": NotRequired[Union[list[str], None]],
    "description": NotRequired[str],
    "hooks": NotRequired[Union[list["PluginRun"], None]],
    "mcpServers": NotRequired[Union[list["PluginRun"], None]],
    "name": str,
    "outputStyles": NotRequired[Union[list[str], None]],
    "path": str,
    "skills": NotRequired[Union[list[str], None]],
    "state": str,
    "version": NotRequired[str],
    "why": NotRequired[str],
})

PluginRun = TypedDict("PluginRun", {
    "matcher": NotRequired[str],
    "name": NotRequired[str],
    "on": NotRequired[str],
    "runs": str,
})

PolicyTestResult = TypedDict("PolicyTestResult", {
    "asked_now": int,
    "asked_then": int,
    "calls": int,
    "changed": Union[list["RejudgedCall"], None],
    "sessions": int,
})

PolicyVerdict = TypedDict("PolicyVerdict", {
    "always": Union[str, None],
    "always_not": NotRequired[str],
    "command": str,
    "decision": str,
    "mode": str,
    "read_only": bool,
    "reasons": Union[list[str], None],
    "risk": str,
    "rules": Union[list[str], None],
    "sandbox": str,
    "withheld": NotRequired[Union[list[str], None]],
})

ProvenanceMessage = TypedDict("ProvenanceMessage", {
    "model": NotRequired[str],
    "record": int,
    "text": str,
    "time": str,
})

PruneItem = TypedDict("PruneItem", {
    "bytes": int,
    "files": int,
    "kind": str,
    "lastUsed": str,
    "name": str,
})

PruneReport = TypedDict("PruneReport", {
    "deleted": bool,
    "items": Union[list["PruneItem"], None],
    "kept": Union[list["SparedSession"], None],
})

ReasoningDeltaEvent = TypedDict("ReasoningDeltaEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TextPiece",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ReasoningDelta"],
    "v": Literal[1],
})

RejudgedCall = TypedDict("RejudgedCall", {
    "mode": str,
    "now": str,
    "session": str,
    "then": str,
    "toolCallId": str,
    "toolName": str,
    "what": str,
    "why": NotRequired[str],
})

Report = TypedDict("Report", {
    "difference": NotRequired[Union["Difference", None]],
    "missing": NotRequired[str],
    "records": int,
    "session": str,
    "steps": int,
    "unsure": NotRequired[Union[list[str], None]],
})

Request = TypedDict("Request", {
    "authorActorId": str,
    "callDigest": NotRequired[str],
    "display": "Display",
    "interactionId": str,
    "kind": str,
    "options": NotRequired[Union[list["Option"], None]],
    "parts": NotRequired[Union[list["Request"], None]],
    "purpose": str,
    "taskId": str,
    "validation": NotRequired[Union["Validation", None]],
})

Response = TypedDict("Response", {
    "authorActorId": str,
    "comment": NotRequired[str],
    "dismissed": NotRequired[bool],
    "inputValue": NotRequired[str],
    "interactionId": str,
    "interrupt": NotRequired[bool],
    "parts": NotRequired[Union[list["Response"], None]],
    "selectedOptionId": NotRequired[str],
    "taskId": str,
    "updatedInput": NotRequired[Any],
    "via": NotRequired[str],
})

Result = TypedDict("Result", {
    "damage": NotRequired[str],
    "kind": str,
    "line": str,
    "project": str,
    "record": int,
    "session_id": str,
    "stamp": str,
    "title": str,
    "updated": str,
})

Retrying = TypedDict("Retrying", {
    "attempt": int,
    "of": int,
    "waitMs": int,
    "why": str,
})

RetryingEvent = TypedDict("RetryingEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "Retrying",
    "sessionId": str,
    "streamId": str,
    "type": Literal["Retrying"],
    "v": Literal[1],
})

Row = TypedDict("Row", {
    "Key": str,
    "Lock": "Origin",
    "Origin": "Origin",
    "Value": str,
})

RunOptions = TypedDict("RunOptions", {
    "allowedTools": NotRequired[str],
    "appendSystemPrompt": NotRequired[str],
    "config": NotRequired[str],
    "disallowedTools": NotRequired[str],
    "systemPrompt": NotRequired[str],
    "window": NotRequired[int],
})

SentRequest = TypedDict("SentRequest", {
    "asText": NotRequired[bool],
    "effort": NotRequired[str],
    "head": NotRequired[str],
    "model": str,
    "size": int,
    "sum": int,
    "tail": str,
    "wire": str,
})

SessionOpened = TypedDict("SessionOpened", {
    "dir": str,
    "maxTokens": int,
    "mode": str,
    "model": str,
    "resumed": bool,
    "tools": Union[list[str], None],
})

SessionOpenedEvent = TypedDict("SessionOpenedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "SessionOpened",
    "sessionId": str,
    "streamId": str,
    "type": Literal["SessionOpened"],
    "v": Literal[1],
})

SettingChange = TypedDict("SettingChange", {
    "changed": bool,
    "file": str,
    "settings": Union[list["SettingRow"], None],
})

SettingRow = TypedDict("SettingRow", {
    "about": NotRequired[str],
    "key": str,
    "locked": NotRequired[str],
    "origin": str,
    "value": Any,
})

SparedSession = TypedDict("SparedSession", {
    "session_id": str,
    "why": str,
})

Spent = TypedDict("Spent", {
    "for": str,
    "model": str,
    "usage": "Usage",
})

SpentEvent = TypedDict("SpentEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "Spent",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["Spent"],
    "v": Literal[1],
})

StateChanged = TypedDict("StateChanged", {
    "busy": bool,
})

StateChangedEvent = TypedDict("StateChangedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "StateChanged",
    "sessionId": str,
    "streamId": str,
    "type": Literal["StateChanged"],
    "v": Literal[1],
})

Sum = TypedDict("Sum", {
    "cached": int,
    "cost_usd": float,
    "in": int,
    "of": str,
    "out": int,
    "requests": int,
    "sessions": int,
    "unpriced": bool,
})

TaskCanceled = TypedDict("TaskCanceled", {
    "authorActorId": str,
    "reason": NotRequired[str],
    "taskId": str,
})

TaskCanceledEvent = TypedDict("TaskCanceledEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TaskCanceled",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TaskCanceled"],
    "v": Literal[1],
})

TaskCompleted = TypedDict("TaskCompleted", {
    "authorActorId": str,
    "summary": NotRequired[str],
    "taskId": str,
})

TaskCompletedEvent = TypedDict("TaskCompletedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TaskCompleted",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TaskCompleted"],
    "v": Literal[1],
})

TaskCreated = TypedDict("TaskCreated", {
    "agentId": str,
    "authorActorId": str,
    "intent": str,
    "parentTaskId": NotRequired[str],
    "priority": str,
    "run": NotRequired[Union["RunOptions", None]],
    "taskId": str,
    "title": str,
    "toolCallId": NotRequired[str],
})

TaskCreatedEvent = TypedDict("TaskCreatedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TaskCreated",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TaskCreated"],
    "v": Literal[1],
})

TaskFailed = TypedDict("TaskFailed", {
    "authorActorId": str,
    "code": NotRequired[str],
    "reason": str,
    "says": NotRequired[str],
    "steps": NotRequired[int],
    "taskId": str,
})

TaskFailedEvent = TypedDict("TaskFailedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TaskFailed",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TaskFailed"],
    "v": Literal[1],
})

TaskRow = TypedDict("TaskRow", {
    "createdAt": str,
    "interactions": Union[list["Request"], None],
    "running": bool,
    "session_id": str,
    "status": str,
    "taskId": str,
    "title": str,
})

TaskStarted = TypedDict("TaskStarted", {
    "agentId": str,
    "authorActorId": str,
    "run": NotRequired[Union["RunOptions", None]],
    "taskId": str,
})

TaskStartedEvent = TypedDict("TaskStartedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TaskStarted",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TaskStarted"],
    "v": Literal[1],
})

TextDeltaEvent = TypedDict("TextDeltaEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TextPiece",
    "sessionId": str,
    "streamId": str,
    "type": Literal["TextDelta"],
    "v": Literal[1],
})

TextPiece = TypedDict("TextPiece", {
    "text": str,
})

Todo = TypedDict("Todo", {
    "content": str,
    "id": str,
    "priority": NotRequired[str],
    "status": str,
})

TodosChanged = TypedDict("TodosChanged", {
    "todos": Union[list["Todo"], None],
})

TodosChangedEvent = TypedDict("TodosChangedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "TodosChanged",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["TodosChanged"],
    "v": Literal[1],
})

ToolCallCompleted = TypedDict("ToolCallCompleted", {
    "authorActorId": str,
    "changes": NotRequired[Union[list["FileChange"], None]],
    "durationMs": int,
    "isError": bool,
    "output": Any,
    "saw": NotRequired[Union[list["FileState"], None]],
    "summary": NotRequired[str],
    "taskId": str,
    "timestamp": int,
    "toolCallId": str,
    "toolName": str,
    "unknown": NotRequired[bool],
})

ToolCallCompletedEvent = TypedDict("ToolCallCompletedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolCallCompleted",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolCallCompleted"],
    "v": Literal[1],
})

ToolCallRequested = TypedDict("ToolCallRequested", {
    "authorActorId": str,
    "before": NotRequired[Union[list["FileState"], None]],
    "decidedBy": NotRequired[str],
    "effects": NotRequired[Union[list[str], None]],
    "input": Any,
    "keyless": NotRequired[bool],
    "readOnly": NotRequired[bool],
    "reasons": NotRequired[Union[list[str], None]],
    "repository": NotRequired[str],
    "sandbox": NotRequired[str],
    "taskId": str,
    "timestamp": int,
    "title": NotRequired[str],
    "toolCallId": str,
    "toolName": str,
    "tree": NotRequired[str],
    "unasked": NotRequired[str],
    "verdict": NotRequired[str],
})

ToolCallRequestedEvent = TypedDict("ToolCallRequestedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolCallRequested",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolCallRequested"],
    "v": Literal[1],
})

ToolFinished = TypedDict("ToolFinished", {
    "denied": bool,
    "durationMs": int,
    "failed": bool,
    "result": str,
    "show": NotRequired[Any],
    "summary": str,
    "title": str,
    "toolCallId": str,
    "toolName": str,
})

ToolFinishedEvent = TypedDict("ToolFinishedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolFinished",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolFinished"],
    "v": Literal[1],
})

ToolOutput = TypedDict("ToolOutput", {
    "text": str,
    "toolCallId": str,
})

ToolOutputEvent = TypedDict("ToolOutputEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolOutput",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolOutput"],
    "v": Literal[1],
})

ToolProgress = TypedDict("ToolProgress", {
    "line": str,
    "lines": NotRequired[int],
    "toolCallId": str,
})

ToolProgressEvent = TypedDict("ToolProgressEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolProgress",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolProgress"],
    "v": Literal[1],
})

ToolStarted = TypedDict("ToolStarted", {
    "title": str,
    "toolCallId": str,
    "toolName": str,
})

ToolStartedEvent = TypedDict("ToolStartedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "ToolStarted",
    "sessionId": str,
    "streamId": str,
    "type": Literal["ToolStarted"],
    "v": Literal[1],
})

TrustReport = TypedDict("TrustReport", {
    "files": Union[list[str], None],
    "hooks": Union[list["PluginRun"], None],
    "mcpServers": Union[list["PluginRun"], None],
    "root": str,
    "settings": Union[list["Row"], None],
    "trusted": bool,
})

Usage = TypedDict("Usage", {
    "cached": NotRequired[int],
    "cost": NotRequired[float],
    "in": int,
    "out": int,
    "reasoning": NotRequired[int],
    "unpriced": NotRequired[bool],
    "written": NotRequired[int],
})

UsageReport = TypedDict("UsageReport", {
    "by": str,
    "since": str,
    "sums": Union[list["Sum"], None],
    "total": "Sum",
})

UserInteractionRequestedEvent = TypedDict("UserInteractionRequestedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "InteractionRequested",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["UserInteractionRequested"],
    "v": Literal[1],
})

UserInteractionRespondedEvent = TypedDict("UserInteractionRespondedEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "InteractionResponded",
    "seal": NotRequired[str],
    "seq": int,
    "sessionId": str,
    "streamId": str,
    "type": Literal["UserInteractionResponded"],
    "v": Literal[1],
})

Validation = TypedDict("Validation", {
    "regex": NotRequired[str],
    "required": NotRequired[bool],
    "says": NotRequired[str],
})

Waiting = TypedDict("Waiting", {
    "of": NotRequired[int],
    "read": NotRequired[int],
    "until": NotRequired[str],
    "waitedMs": int,
    "why": str,
})

WaitingEvent = TypedDict("WaitingEvent", {
    "actor": NotRequired[str],
    "createdAt": str,
    "payload": "Waiting",
    "sessionId": str,
    "streamId": str,
    "type": Literal["Waiting"],
    "v": Literal[1],
})

WorktreeEntry = TypedDict("WorktreeEntry", {
    "at": int,
    "branch": NotRequired[str],
    "commit": NotRequired[str],
    "dir": str,
    "from": str,
    "made": str,
    "name": str,
    "print": NotRequired[str],
    "repo": NotRequired[str],
    "session": str,
    "source": str,
    "work": str,
})

Event = Union[TaskCreatedEvent, TaskStartedEvent, TaskCompletedEvent, TaskFailedEvent, TaskCanceledEvent, UserInteractionRequestedEvent, UserInteractionRespondedEvent, ToolCallRequestedEvent, ToolCallCompletedEvent, MessageAddedEvent, LocalAddedEvent, SpentEvent, TodosChangedEvent, ModeChangedEvent, ContextReplacedEvent, ContextRestoredEvent, ContextRewoundEvent, ContextUsedEvent, InterruptedEvent, NoticeEvent, ReasoningDeltaEvent, RetryingEvent, SessionOpenedEvent, StateChangedEvent, TextDeltaEvent, ToolFinishedEvent, ToolOutputEvent, ToolProgressEvent, ToolStartedEvent, WaitingEvent]
