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

// maxShown is the most bytes of one text that the editor is sent.
const maxShown = 64 << 10

// Face reports a session's events to an editor. It is an [event.Sink].
type Face struct {
	Conn    *Conn
	Session string
	Root    string // the workspace, to make paths absolute
	// Replay is set while an earlier conversation is shown, so that the user's messages are sent too.
	Replay bool

	mu       sync.Mutex // guards the fields below
	children map[string]bool
	streamed map[string]bool // tasks whose reply was sent in pieces
	known    map[string]bool // calls already sent
	finished map[string]bool // calls of an earlier conversation whose result was sent
	output   map[string]*output
}

// output is the recent output of a running call.
type output struct {
	text    string
	pending int // bytes not sent yet
	told    int // updates sent
}

// maxOutput is the most output of a running call that is shown, in bytes.
const maxOutput = 4 << 10

// atOnce is the number of updates sent without delay.
const atOnce = 64

// printed sends the newest output of a running call: at first immediately, later in larger and larger
// pieces.
func (f *Face) printed(call, text string) error {
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
	if o.pending += len(text); f.Replay || o.pending < min(16*max(0, o.told-atOnce), maxOutput) {
		return nil
	}
	o.pending = 0
	o.told++
	return f.tell(update{Kind: "tool_call_update", CallID: call, Content: []content{shown(o.text)}})
}

func (f *Face) tell(u update) error {
	return f.Conn.Notify("session/update", struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}{f.Session, u})
}

func (f *Face) say(kind, words string) error {
	if words == "" {
		return nil
	}
	return f.tell(update{Kind: kind, Content: text(words)})
}

// Advertise sends the editor the available slash commands.
func (f *Face) Advertise(commands []Command) error {
	return f.tell(update{Kind: "available_commands_update", Commands: commands})
}

// Offer sends the editor the session's options and their current values.
func (f *Face) Offer(options []Option) error {
	return f.tell(update{Kind: "config_option_update", Options: options})
}

// Warn shows the user a message that is not part of the agent's reply.
func (f *Face) Warn(text string, failed bool) error {
	severity := "warning"
	if failed {
		severity = "error"
	}
	return f.Conn.Notify("session/update", map[string]any{"sessionId": f.Session, "update": map[string]any{"sessionUpdate": "notice", "severity": severity, "title": text}})
}

// Aside sends a warning to an editor without notices, as a thought, so that it is not part of the reply.
func (f *Face) Aside(text string) error { return f.say("agent_thought_chunk", text+"\n\n") }

// Emit reports r to the editor.
func (f *Face) Emit(_ context.Context, r event.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	main := !f.children[r.Task]
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			put(&f.children, r.Task)
		}
	case event.TextDelta:
		put(&f.streamed, r.Task)
		if main {
			return f.say("agent_message_chunk", e.Text)
		}
	case event.ReasoningDelta:
		put(&f.streamed, r.Task)
		if main {
			return f.say("agent_thought_chunk", e.Text)
		}
	case event.MessageAdded:
		return f.message(r, e.Message, main)
	case event.LocalAdded:
		if f.Replay {
			if err := f.say("user_message_chunk", e.Input); err != nil {
				return err
			}
		}
		return f.say("agent_message_chunk", e.Shown().Plain())
	case event.TodosChanged:
		if !main {
			return nil
		}
		entries := []entry{}
		for _, t := range e.Todos {
			entries = append(entries, entry{t.Content, cmp.Or(t.Priority, "medium"), string(t.Status)})
		}
		return f.Conn.Notify("session/update", map[string]any{"sessionId": f.Session, "update": map[string]any{"sessionUpdate": "plan", "entries": entries}})
	case event.ModeChanged:
		return f.tell(update{Kind: "current_mode_update", Mode: e.Mode})
	case event.ToolCallRequested:
		if f.known[e.CallID] {
			return f.tell(update{Kind: "tool_call_update", CallID: e.CallID, Locations: f.locations(e.Effects)})
		}
	case event.ToolStarted:
		return f.call(update{CallID: e.CallID, Title: title(e.Tool, e.Title), Sort: sorts[tool.ClassOf(e.Tool)], Status: "in_progress"})
	case event.ToolOutput:
		if f.known[e.CallID] {
			return f.printed(e.CallID, e.Text)
		}
	case event.ToolFinished:
		printed := f.output[e.CallID]
		delete(f.output, e.CallID)
		if f.Replay {
			put(&f.finished, e.CallID)
		}
		u := update{CallID: e.CallID, Title: title(e.Tool, e.Title), Sort: sorts[tool.ClassOf(e.Tool)], Status: ended(e.Failed || e.Denied), RawOutput: raw([]byte(e.Result.Text))}
		all := f.contents(e.Show)
		if len(all) == 0 && printed != nil {
			all = append(all, shown(printed.text))
		}
		if e.Failed || e.Denied || len(all) == 0 {
			var r struct{ Error, Summary, Text, Content string }
			_ = json.Unmarshal([]byte(e.Result.Text), &r) // a result that is not an object has no fields
			all = append(all, shown(clip.Text(cmp.Or(r.Error, e.Summary, r.Summary, r.Text, r.Content, e.Result.Text), maxShown)))
		}
		u.Content = all
		return f.call(u)
	}
	return nil
}

// message sends a whole message, unless its pieces were sent.
func (f *Face) message(r event.Record, m chat.Message, main bool) error {
	streamed := f.streamed[r.Task]
	delete(f.streamed, r.Task)
	for _, p := range m.Parts {
		var err error
		switch p := p.(type) {
		case chat.Text:
			switch {
			case m.Role == chat.Assistant && main && !streamed:
				err = f.say("agent_message_chunk", string(p))
			case event.ByPerson(r) && main && f.Replay:
				err = f.say("user_message_chunk", string(p))
			}
		case chat.Image:
			if event.ByPerson(r) && main && f.Replay {
				err = f.tell(update{Kind: "user_message_chunk", Content: Block{Type: "image", Media: p.MediaType, Data: base64.StdEncoding.EncodeToString(p.Data)}})
			}
		case chat.Reasoning:
			if main && !streamed {
				err = f.say("agent_thought_chunk", p.Text)
			}
		case chat.ToolCall:
			err = f.call(update{CallID: p.ID, Title: title(p.Name, ""), Sort: sorts[tool.ClassOf(p.Name)], Status: "pending", RawInput: raw(p.Args)})
		case chat.ToolResult:
			if f.Replay && !f.finished[p.CallID] {
				err = f.tell(update{Kind: "tool_call_update", CallID: p.CallID, Status: ended(p.Failed), Content: []content{shown(clip.Text(p.Text, maxShown))}})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call sends a call, new or updated.
func (f *Face) call(u update) error {
	u.Kind = "tool_call_update"
	if !f.known[u.CallID] {
		put(&f.known, u.CallID)
		u.Kind = "tool_call"
	}
	u.Sort = cmp.Or(u.Sort, "other")
	return f.tell(u)
}

func ended(failed bool) string {
	if failed {
		return "failed"
	}
	return "completed"
}

// sorts maps tool classes to the protocol's kinds, which editors show as icons.
var sorts = map[tool.Class]string{
	tool.ReadsFile: "read", tool.ListsFolder: "read", tool.ReadsGit: "read", tool.EditsFile: "edit", tool.PatchesFiles: "edit", tool.EditsNotebook: "edit",
	tool.FindsFiles: "search", tool.SearchesText: "search", tool.SearchesCode: "search", tool.NavigatesCode: "search",
	tool.RunsShell: "execute", tool.ChangesGit: "execute", tool.Fetches: "fetch", tool.EndsPlan: "switch_mode",
	tool.Delegates: "think", tool.WritesTodos: "think", tool.ReadsTodos: "think", tool.AsksPerson: "think",
}

func title(tool, what string) string { return strings.TrimSpace(tool + " " + what) }

// at returns path as an absolute path.
func (f *Face) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Root, path)
}

func (f *Face) locations(effects []event.Effect) (all []location) {
	for _, e := range effects {
		if e.Kind == event.EffectRead || e.Kind == event.EffectWrite {
			all = append(all, location{Path: f.at(e.Target)})
		}
	}
	return all
}

// contents converts a block for the editor: a diff becomes one entry per hunk.
func (f *Face) contents(b display.Block) (all []content) {
	switch b := b.(type) {
	case nil:
	case display.Diff:
		for _, h := range hunks(b.Unified) {
			c := content{Type: "diff", Path: f.at(h.path), New: &h.after, Old: &h.before}
			if h.created {
				c.Old = nil
			}
			all = append(all, c)
		}
	default:
		if words := strings.TrimSpace(display.Blocks{b}.Plain()); words != "" {
			all = append(all, shown(clip.Text(words, maxShown)))
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

// hunks parses a unified diff into its hunks.
func hunks(unified string) (all []hunk) {
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
				before, after = count(words[1]), count(words[2])
			}
		}
	}
	return all
}

// count returns the number of lines in a range such as -1,3.
func count(span string) int {
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

// put sets m[k], making the map if it is nil.
func put(m *map[string]bool, k string) {
	if *m == nil {
		*m = make(map[string]bool)
	}
	(*m)[k] = true
}
