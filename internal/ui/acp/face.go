package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// maxTextBytes is the most bytes of one text that the editor is sent.
const maxTextBytes = 64 << 10

// Sink reports a session's events to an editor. It is an [event.Sink].
type Sink struct {
	Conn    *Conn
	Session string
	Root    string // the workspace, to make paths absolute
	// Replay is set while an earlier conversation is shown, so that the user's messages are sent too.
	Replay bool

	mu            sync.Mutex // guards the fields below
	children      map[string]bool
	streamedTasks map[string]bool // tasks whose reply was sent in pieces
	sentCalls     map[string]bool // calls already sent
	finishedCalls map[string]bool // calls of an earlier conversation whose result was sent
	output        map[string]*output
}

// output is the recent output of a running call.
type output struct {
	text    string
	pending int // bytes not sent yet
	updates int // updates sent
}

// maxOutput is the most output of a running call that is shown, in bytes.
const maxOutput = 4 << 10

// immediateUpdates is the number of updates sent without delay.
const immediateUpdates = 64

// sendOutput sends the newest output of a running call: at first immediately, later in larger and larger
// pieces.
func (f *Sink) sendOutput(call, text string) error {
	o := f.output[call]
	if o == nil {
		o = &output{}
		if f.output == nil {
			f.output = make(map[string]*output)
		}
		f.output[call] = o
	}
	o.text += text
	if over := len(o.text) - maxOutput; over > 0 {
		o.text = strings.ToValidUTF8(o.text[over:], "")
	}
	if o.pending += len(text); f.Replay || o.pending < min(16*max(0, o.updates-immediateUpdates), maxOutput) {
		return nil
	}
	o.pending = 0
	o.updates++
	return f.sendUpdate(update{Kind: "tool_call_update", CallID: call, Content: []callContent{textContent(o.text)}})
}

func (f *Sink) sendUpdate(u update) error {
	return f.Conn.Notify("session/update", struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}{f.Session, u})
}

func (f *Sink) sendText(kind, words string) error {
	if words == "" {
		return nil
	}
	return f.sendUpdate(update{Kind: kind, Content: textBlock(words)})
}

// SendCommands sends the editor the available slash commands.
func (f *Sink) SendCommands(commands []Command) error {
	return f.sendUpdate(update{Kind: "available_commands_update", Commands: commands})
}

// SendOptions sends the editor the session's options and their current values.
func (f *Sink) SendOptions(options []Option) error {
	return f.sendUpdate(update{Kind: "config_option_update", Options: options})
}

// Warn shows the user a message that is not part of the agent's reply.
func (f *Sink) Warn(text string, failed bool) error {
	severity := "warning"
	if failed {
		severity = "error"
	}
	return f.Conn.Notify("session/update", map[string]any{"sessionId": f.Session,
		"update": map[string]any{"sessionUpdate": "notice", "severity": severity, "title": text}})
}

// WarnAsThought sends a warning to an editor without notices, as a thought, so that it is not part of the reply.
func (f *Sink) WarnAsThought(text string) error {
	return f.sendText("agent_thought_chunk", text+"\n\n")
}

// Emit reports r to the editor.
func (f *Sink) Emit(_ context.Context, r event.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	main := !f.children[r.Task]
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			addKey(&f.children, r.Task)
		}
	case event.TextDelta:
		addKey(&f.streamedTasks, r.Task)
		if main {
			return f.sendText("agent_message_chunk", e.Text)
		}
	case event.ReasoningDelta:
		addKey(&f.streamedTasks, r.Task)
		if main {
			return f.sendText("agent_thought_chunk", e.Text)
		}
	case event.MessageAdded:
		return f.sendMessage(r, e.Message, main)
	case event.LocalAdded:
		if f.Replay {
			if err := f.sendText("user_message_chunk", e.Input); err != nil {
				return err
			}
		}
		return f.sendText("agent_message_chunk", e.DisplayBlocks().PlainText())
	case event.TodosChanged:
		if !main {
			return nil
		}
		entries := []planEntry{}
		for _, t := range e.Todos {
			entries = append(entries, planEntry{t.Content, cmp.Or(t.Priority, "medium"), string(t.Status)})
		}
		return f.Conn.Notify("session/update", map[string]any{"sessionId": f.Session,
			"update": map[string]any{"sessionUpdate": "plan", "entries": entries}})
	case event.ModeChanged:
		return f.sendUpdate(update{Kind: "current_mode_update", Mode: e.Mode})
	case event.ToolCallRequested:
		if f.sentCalls[e.CallID] {
			return f.sendUpdate(update{Kind: "tool_call_update", CallID: e.CallID, Locations: f.locations(e.Effects)})
		}
	case event.ToolStarted:
		return f.sendCall(update{CallID: e.CallID, Title: callTitle(e.Tool, e.Title),
			ToolKind: toolKinds[tool.ClassOf(e.Tool)], Status: "in_progress"})
	case event.ToolOutput:
		if f.sentCalls[e.CallID] {
			return f.sendOutput(e.CallID, e.Text)
		}
	case event.ToolFinished:
		printed := f.output[e.CallID]
		delete(f.output, e.CallID)
		if f.Replay {
			addKey(&f.finishedCalls, e.CallID)
		}
		u := update{CallID: e.CallID, Title: callTitle(e.Tool, e.Title), ToolKind: toolKinds[tool.ClassOf(e.Tool)],
			Status: callStatus(e.Failed || e.Denied), RawOutput: rawJSON([]byte(e.Result.Text))}
		all := f.blockContents(e.Content)
		if len(all) == 0 && printed != nil {
			all = append(all, textContent(printed.text))
		}
		if e.Failed || e.Denied || len(all) == 0 {
			var r struct{ Error, Summary, Text, Content string }
			_ = json.Unmarshal([]byte(e.Result.Text), &r) // a result that is not an object has no fields
			all = append(all, textContent(clip.Truncate(cmp.Or(r.Error, e.Summary, r.Summary, r.Text, r.Content, e.Result.Text),
				maxTextBytes)))
		}
		u.Content = all
		return f.sendCall(u)
	}
	return nil
}

// sendMessage sends a whole message, unless its pieces were sent.
func (f *Sink) sendMessage(r event.Record, m chat.Message, main bool) error {
	streamed := f.streamedTasks[r.Task]
	delete(f.streamedTasks, r.Task)
	for _, p := range m.Parts {
		var err error
		switch p := p.(type) {
		case chat.Text:
			switch {
			case m.Role == chat.Assistant && main && !streamed:
				err = f.sendText("agent_message_chunk", string(p))
			case event.IsUserMessage(r) && main && f.Replay:
				err = f.sendText("user_message_chunk", string(p))
			}
		case chat.Image:
			if event.IsUserMessage(r) && main && f.Replay {
				err = f.sendUpdate(update{Kind: "user_message_chunk",
					Content: Block{Type: "image", MIMEType: p.MediaType, Data: base64.StdEncoding.EncodeToString(p.Data)}})
			}
		case chat.Reasoning:
			if main && !streamed {
				err = f.sendText("agent_thought_chunk", p.Text)
			}
		case chat.ToolCall:
			err = f.sendCall(update{CallID: p.ID, Title: callTitle(p.Name, ""), ToolKind: toolKinds[tool.ClassOf(p.Name)],
				Status: "pending", RawInput: rawJSON(p.Args)})
		case chat.ToolResult:
			if f.Replay && !f.finishedCalls[p.CallID] {
				err = f.sendUpdate(update{Kind: "tool_call_update", CallID: p.CallID, Status: callStatus(p.Failed),
					Content: []callContent{textContent(clip.Truncate(p.Text, maxTextBytes))}})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendCall sends a call, new or updated.
func (f *Sink) sendCall(u update) error {
	u.Kind = "tool_call_update"
	if !f.sentCalls[u.CallID] {
		addKey(&f.sentCalls, u.CallID)
		u.Kind = "tool_call"
	}
	u.ToolKind = cmp.Or(u.ToolKind, "other")
	return f.sendUpdate(u)
}

func callStatus(failed bool) string {
	if failed {
		return "failed"
	}
	return "completed"
}

// toolKinds maps tool classes to the protocol's kinds, which editors show as icons.
var toolKinds = map[tool.Class]string{
	tool.ClassReadFile: "read", tool.ClassListFolder: "read", tool.ClassReadGit: "read", tool.ClassEditFile: "edit",
	tool.ClassPatchFiles: "edit", tool.EditsNotebook: "edit",
	tool.ClassFindFiles: "search", tool.ClassSearchText: "search", tool.ClassSearchCode: "search",
	tool.ClassNavigateCode: "search",
	tool.ClassShell:        "execute", tool.ClassChangeGit: "execute", tool.ClassFetch: "fetch",
	tool.ClassEndPlan:  "switch_mode",
	tool.ClassDelegate: "think", tool.ClassWriteTodos: "think", tool.ClassReadTodos: "think", tool.ClassAskUser: "think",
}

func callTitle(tool, what string) string { return strings.TrimSpace(tool + " " + what) }

// absPath returns path as an absolute path.
func (f *Sink) absPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Root, path)
}

func (f *Sink) locations(effects []event.Effect) (all []location) {
	for _, e := range effects {
		if e.Kind == event.EffectRead || e.Kind == event.EffectWrite {
			all = append(all, location{Path: f.absPath(e.Target)})
		}
	}
	return all
}

// blockContents converts a block for the editor: a diff becomes one entry per hunk.
func (f *Sink) blockContents(b display.Block) (all []callContent) {
	switch b := b.(type) {
	case nil:
	case display.Diff:
		for _, h := range parseHunks(b.Unified) {
			c := callContent{Type: "diff", Path: f.absPath(h.path), New: &h.after, Old: &h.before}
			if h.created {
				c.Old = nil
			}
			all = append(all, c)
		}
	default:
		if words := strings.TrimSpace(display.Blocks{b}.PlainText()); words != "" {
			all = append(all, textContent(clip.Truncate(words, maxTextBytes)))
		}
	}
	return all
}

// hunk is a change at one place in a file.
type hunk struct {
	path          string
	before, after string
	created       bool
}

// parseHunks parses a unified diff into its hunks.
func parseHunks(unified string) (all []hunk) {
	path, created := "", false
	before, after := 0, 0 // lines left in the hunk
	var last byte         // first byte of the line before
	for line := range strings.Lines(unified) {
		switch first := line[0]; {
		case first == '\\' && len(all) > 0: // the line before has no newline
			h := &all[len(all)-1]
			if last != '+' {
				h.before = strings.TrimSuffix(h.before, "\n")
			}
			if last != '-' {
				h.after = strings.TrimSuffix(h.after, "\n")
			}
		case before > 0 || after > 0:
			h := &all[len(all)-1]
			if last = first; first != '+' {
				h.before += line[1:]
				before--
			}
			if first != '-' {
				h.after += line[1:]
				after--
			}
		case strings.HasPrefix(line, "--- "):
			created = strings.HasPrefix(line, "--- /dev/null")
			path = strings.TrimPrefix(strings.TrimSpace(line[4:]), "a/")
		case strings.HasPrefix(line, "+++ "):
			if to := strings.TrimPrefix(strings.TrimSpace(line[4:]), "b/"); to != "/dev/null" {
				path = to
			}
		case strings.HasPrefix(line, "@@ "):
			all = append(all, hunk{path: path, created: created})
			words := strings.Fields(line)
			if len(words) > 2 {
				before, after = countLines(words[1]), countLines(words[2])
			}
		}
	}
	return all
}

// countLines returns the number of lines in a range such as -1,3.
func countLines(span string) int {
	_, n, given := strings.Cut(span, ",")
	if !given {
		return 1
	}
	lines, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return lines
}

// addKey sets m[k], making the map if it is nil.
func addKey(m *map[string]bool, k string) {
	if *m == nil {
		*m = make(map[string]bool)
	}
	(*m)[k] = true
}
