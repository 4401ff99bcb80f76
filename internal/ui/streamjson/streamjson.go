// Package streamjson is the face for wrappers that already know how to drive a coding agent: JSON lines
// that begin with a system/init object, carry one object per message, and end each turn with a result
// object. The result alone is the json format.
//
// Nothing here is random: a line's uuid is derived from the session and the record, so the same records
// produce the same bytes.
package streamjson

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// Options supplies what the records do not have. All fields are optional: session, directory, model and
// mode are otherwise read from the records.
type Options struct {
	Session        string
	Dir            string
	Model          string
	PermissionMode string
	KeySource      string // source of the provider's key; sent as apiKeySource
	Now            func() time.Time
	Servers        func() []Server // the current MCP servers
	Partial        bool            // also send replies as they arrive, as stream_event lines
	ResultOnly     bool            // send only the result: the json format
	// Driver, if set, is for a program that drives the session: every turn begins with the session's facts,
	// in the words that such programs know.
	Driver *DriverOptions
}

// DriverOptions is the output that differs for a program that drives a session.
type DriverOptions struct {
	// ConvertCall returns the name and the arguments of a call as the program knows them, and Mode the name of a
	// mode.
	ConvertCall func(name string, args json.RawMessage) (string, json.RawMessage)
	ConvertMode func(name string) string
	// SessionInfo returns the facts sent with every turn.
	SessionInfo func() SessionInfo
	// Echo sends the user's messages too.
	Echo bool
}

// SessionInfo describe a session at the beginning of a turn.
type SessionInfo struct {
	Model, Mode             string
	Tools, Commands, Agents []string
	Skills                  []string
	Servers                 []Server
	Style, Version          string
}

// Renderer is an [event.Sink] that writes lines. Use [New].
type Renderer struct {
	options      Options
	fixedSession bool // the session's name came from Options, not from the records

	mu         sync.Mutex // guards the fields below and the order of lines
	out        io.Writer
	large      jsonx.Holes // large texts of the line being written
	tally      Tally
	origins    origins
	partials   map[string]*partialReply // arriving replies by task
	knownTasks map[string]bool          // running subtasks that the program knows of
	lastSeq    uint64                   // the newest seq seen
	lineCounts map[string]int           // number of lines without their own seq, by kind
}

// New returns a Renderer that writes to w. If w has a Flush method it is
// called after every line.
func New(w io.Writer, o Options) *Renderer {
	return &Renderer{options: o, fixedSession: o.Session != "", out: w, partials: make(map[string]*partialReply),
		knownTasks: make(map[string]bool), lineCounts: make(map[string]int)}
}

// Emit writes the line for r, if any.
func (r *Renderer) Emit(_ context.Context, rec event.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Session == "" {
		r.options.Session = rec.Session
	}
	if e, ok := rec.Event.(event.SessionOpened); ok {
		if !r.fixedSession && rec.Session != "" && rec.Session != r.options.Session { // a command opened another session
			r.options.Session, r.lastSeq = rec.Session, 0
		}
		r.options.Dir, r.options.Model, r.options.PermissionMode = cmp.Or(e.Dir, r.options.Dir),
			cmp.Or(e.Model, r.options.Model), cmp.Or(e.Mode, r.options.PermissionMode)
	}
	r.lastSeq = max(r.lastSeq, rec.Seq)
	r.tally.Add(rec)
	r.origins.add(rec)
	if r.options.ResultOnly {
		return nil
	}
	switch e := rec.Event.(type) {
	case event.SessionOpened:
		if r.options.Driver != nil {
			return nil // sent at the beginning of a turn
		}
		return r.init(rec, e)
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			if err := r.sendCalls(rec, e.Message); err != nil {
				return err
			}
			id := "" // the id while it arrived, otherwise one made from its record
			if p := r.partials[rec.Task]; p != nil {
				id = p.id
			} else {
				id = messageID(r.recordUUID(rec))
			}
			if err := r.endPartial(rec, stopReason(e), toUsage(e.Usage)); err != nil {
				return err
			}
			return r.writeFitted(r.envelope(rec, "assistant", assistantMessage{
				ID: id, Type: "message", Role: chat.Assistant, Model: cmp.Or(e.Model, r.options.Model),
				Content: r.contentBlocks(e.Message),
				Stop:    stopReason(e), Usage: toUsage(e.Usage),
			}))
		case chat.User, chat.Tool:
			if e.Message.Role == chat.User && r.options.Driver != nil && !r.options.Driver.Echo {
				return nil // the program sent it
			}
			line := r.envelope(rec, "user", userMessage{"user", r.contentBlocks(e.Message)})
			line.Result = r.result(e.Message)
			return r.writeFitted(line)
		}
		return nil // the system message is not part of the stream
	case event.TextDelta:
		return r.sendDelta(rec, "text", textBlock{"text", ""}, textBlock{"text_delta", e.Text})
	case event.ReasoningDelta:
		return r.sendDelta(rec, "thinking", thinkingBlock{Type: "thinking"},
			thinkingBlock{Type: "thinking_delta", Thinking: e.Text})
	case event.Retrying:
		return r.endPartial(rec, nil, usage{})
	case event.TaskCreated:
		return r.sendTaskStart(rec, e)
	case event.TaskCompleted:
		return r.sendTaskEnd(rec, "completed", e.Summary)
	case event.TaskFailed:
		return r.sendTaskEnd(rec, "failed", e.Reason)
	case event.TaskCanceled:
		return r.sendTaskEnd(rec, "stopped", e.Reason)
	}
	return nil
}

// Server is an MCP server and its status: connected, pending, failed, needs-auth or disabled.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type initLine struct {
	Type       string   `json:"type"`
	Subtype    string   `json:"subtype"`
	Session    string   `json:"session_id"`
	Dir        string   `json:"cwd"`
	Model      string   `json:"model"`
	Tools      []string `json:"tools"`
	MCPServers []Server `json:"mcp_servers"`
	Mode       string   `json:"permissionMode"`
	KeySource  string   `json:"apiKeySource,omitempty"`
	UUID       string   `json:"uuid"`
}

func (r *Renderer) init(rec event.Record, e event.SessionOpened) error {
	servers := []Server{}
	if r.options.Servers != nil {
		servers = append(servers, r.options.Servers()...)
	}
	return r.writeFitted(initLine{
		Type: "system", Subtype: "init", Session: r.options.Session, Dir: r.options.Dir, Model: r.options.Model,
		Tools: append([]string{}, e.Tools...), MCPServers: servers, Mode: r.options.PermissionMode,
		KeySource: r.options.KeySource, UUID: r.lineUUID("init/" + rec.Time.UTC().Format(time.RFC3339Nano)),
	})
}

type driverInit struct {
	initLine
	MCPServers    []Server `json:"mcp_servers"`
	Commands      []string `json:"slash_commands"`
	Agents        []string `json:"agents"`
	Skills        []string `json:"skills"`
	Plugins       []string `json:"plugins"`
	OutputStyle   string   `json:"output_style"`
	CompatVersion string   `json:"claude_code_version"`
	Version       string   `json:"coder_version"`
}

// compatVersion is the version of the program whose lines these resemble: drivers use it to know what to expect.
const compatVersion = "2.1.0"

// Begin sends a driving program the session's facts, at the beginning of a turn.
func (r *Renderer) Begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally = Tally{} // records since the last turn do not belong to this one
	f := r.options.Driver.SessionInfo()
	line := driverInit{
		initLine: initLine{
			Type: "system", Subtype: "init", Session: r.options.Session, Dir: r.options.Dir, Model: f.Model,
			Mode:      r.options.Driver.ConvertMode(f.Mode),
			KeySource: cmp.Or(r.options.KeySource, "none"), UUID: r.lineUUID("init"), Tools: []string{},
		},
		MCPServers: append([]Server{}, f.Servers...), Commands: append([]string{}, f.Commands...),
		Agents: append([]string{}, f.Agents...),
		Skills: append([]string{}, f.Skills...), Plugins: []string{}, OutputStyle: f.Style, CompatVersion: compatVersion,
		Version: f.Version,
	}
	for _, name := range f.Tools {
		theirs, _ := r.options.Driver.ConvertCall(name, json.RawMessage("{}"))
		line.Tools = append(line.Tools, theirs)
	}
	return r.writeFitted(line)
}

type statusLine struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	Status  *string `json:"status"`
	Mode    string  `json:"permissionMode"`
	Session string  `json:"session_id"`
	UUID    string  `json:"uuid"`
}

// ReportMode reports a change of the mode.
func (r *Renderer) ReportMode(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeFitted(statusLine{Type: "system", Subtype: "status", Mode: r.options.Driver.ConvertMode(name),
		Session: r.options.Session, UUID: r.lineUUID("status")})
}

// WriteLine writes a line of another kind between the others. A line that is too long is not written but
// reported as an error.
func (r *Renderer) WriteLine(v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.write(v, false)
}

// ErrTooLong reports a line longer than programs accept.
var ErrTooLong = message.Errorf("a line of more than %d bytes is not written", maxLine)

// maxLine is the longest line sent to a program: some accept no more than 1 MiB, counted in characters
// or bytes.
const maxLine = 1<<20 - 1<<10

// Outcome is how a turn ended. The zero Outcome is a success without an answer.
type Outcome struct {
	Err    error
	Result string // the answer
	// Subtype is one of the constants below; if empty it is derived from Err.
	Subtype string
	// Unsaved is set if part of the session could not be saved to disk.
	Unsaved bool
	Checks  Checks
	// Structured is the answer in the requested form, if any.
	Structured json.RawMessage
	// Provider is set if the provider failed: a driving program treats that as an answer.
	Provider bool
}

// Checks is what the records say about checks of the work at the end of the turn.
type Checks struct {
	Last     *string `json:"last_check"` // the command; null if none ran
	ExitCode *int    `json:"exit_code"`
	Edits    int     `json:"edits_after"` // changes since then
	// Verified is true if a check passed and nothing was changed since, and null if nothing was changed or
	// checked.
	Verified *bool `json:"verified"`
}

// How a turn can end.
const (
	Success  = "success"
	MaxTurns = "error_max_turns"
	MaxCost  = "error_max_budget_usd"
	Failed   = "error_during_execution"
	NoAnswer = "error_max_structured_output_retries"
)

type resultLine struct {
	Type        string                `json:"type"`
	Subtype     string                `json:"subtype"`
	IsError     bool                  `json:"is_error"`
	Turns       int                   `json:"num_turns"`
	Duration    int64                 `json:"duration_ms"`
	APIDuration int64                 `json:"duration_api_ms"`
	Result      string                `json:"result"`
	Stop        *string               `json:"stop_reason"`
	Errors      []string              `json:"errors,omitempty"`
	Session     string                `json:"session_id"`
	Cost        float64               `json:"total_cost_usd"`
	CostKnown   bool                  `json:"total_cost_known"` // the cost is complete and not estimated
	Usage       usage                 `json:"usage"`
	Denials     []denialLine          `json:"permission_denials"`
	Output      json.RawMessage       `json:"structured_output,omitempty"`
	Models      map[string]modelUsage `json:"modelUsage,omitempty"`
	Persisted   bool                  `json:"persisted"`
	Checks      Checks                `json:"checks"`
	UUID        string                `json:"uuid"`
}

// modelUsage is one model's usage, in the words of driving programs.
type modelUsage struct {
	In      int     `json:"inputTokens"`
	Out     int     `json:"outputTokens"`
	Cached  int     `json:"cacheReadInputTokens"`
	Written int     `json:"cacheCreationInputTokens"`
	Cost    float64 `json:"costUSD"`
}

type denialLine struct {
	Tool   string          `json:"tool_name"`
	CallID string          `json:"tool_use_id"`
	Input  json.RawMessage `json:"tool_input"`
}

// Finish writes the result of the turn made of the records since the last Finish. Without an answer,
// result contains the error message.
func (r *Renderer) Finish(_ context.Context, o Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tally
	r.tally = Tally{}
	clear(r.partials)
	if o.Subtype == "" && o.Err != nil {
		o.Subtype = Failed
	}
	var took time.Duration // until now, or until the last record
	switch {
	case t.Started.IsZero():
	case r.options.Now == nil:
		took = t.Ended.Sub(t.Started)
	default:
		took = max(0, r.options.Now().Sub(t.Started))
	}
	line := resultLine{
		Type: "result", Subtype: cmp.Or(o.Subtype, Success), Turns: t.Replies, Duration: took.Milliseconds(),
		APIDuration: t.APITime.Milliseconds(),
		Result:      r.large.Add(o.Result), Stop: t.Stop, Session: r.options.Session, Cost: t.Usage.Cost,
		CostKnown: !t.Usage.Unpriced, Usage: toUsage(&t.Usage),
		Denials: []denialLine{}, Output: o.Structured, Persisted: !o.Unsaved, Checks: o.Checks, UUID: r.lineUUID("result"),
	}
	line.IsError = line.Subtype != Success
	if r.options.Driver != nil {
		all := make(map[string]modelUsage)
		for name, u := range t.byModel {
			n := toUsage(&u)
			all[name] = modelUsage{n.In, n.Out, n.Cached, n.Written, u.Cost}
		}
		line.Models = all
		if o.Provider {
			line.Subtype = Success
		}
	}
	if o.Err != nil {
		line.Errors = []string{o.Err.Error()}
		line.Result = cmp.Or(line.Result, o.Err.Error())
	}
	for _, d := range t.Denials {
		if r.options.Driver != nil {
			d.Tool, d.Input = r.options.Driver.ConvertCall(d.Tool, d.Input)
		}
		line.Denials = append(line.Denials, denialLine(d))
	}
	return r.writeFitted(line)
}

// writeFitted writes v as one line, cutting its texts if programs would not accept the line.
func (r *Renderer) writeFitted(v any) error { return r.write(v, true) }

func (r *Renderer) write(v any, mayCut bool) error {
	defer func() { r.large = jsonx.Holes{} }()
	line, err := jsonx.Marshal(v)
	if err != nil {
		return message.Errorf("encode line: %w", err)
	}
	for most := maxLine / 4; r.options.Driver != nil && r.large.Size(line) > maxLine; most /= 4 {
		if !mayCut || most < minText {
			return ErrTooLong
		}
		if r.large.Replace(func(text string) string { return cutText(text, most) }); r.large.Size(line) <= maxLine {
			break
		}
		var whole any
		if err := json.Unmarshal(line, &whole); err != nil {
			return message.Errorf("truncate line: %w", err)
		}
		if line, err = jsonx.Marshal(cutTexts(whole, most)); err != nil {
			return message.Errorf("encode line: %w", err)
		}
	}
	if err := r.large.Fill(r.out, append(line, '\n')); err != nil {
		return message.Errorf("write line: %w", err)
	}
	if f, ok := r.out.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return message.Errorf("write line: %w", err)
		}
	}
	return nil
}

// minText is the shortest a text is cut to. A mark of a large text is shorter.
const minText = 48

func cutText(text string, most int) string {
	if len(text) > most {
		return clip.Truncate(text, most) + fmt.Sprintf(" [cut: %d bytes in all]", len(text))
	}
	return text
}

// cutTexts returns a line with its texts cut to most. A longer picture is removed.
func cutTexts(v any, most int) any {
	switch v := v.(type) {
	case string:
		return cutText(v, most)
	case []any:
		for i := range v {
			v[i] = cutTexts(v[i], most)
		}
	case map[string]any:
		if data, ok := v["data"].(string); ok && v["type"] == "base64" && len(data) > most {
			return map[string]any{"type": "base64", "media_type": v["media_type"], "data": ""}
		}
		for key := range v {
			v[key] = cutTexts(v[key], most)
		}
	}
	return v
}
