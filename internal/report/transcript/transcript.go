// Package transcript reads the sessions that other agents keep as lines of JSON: what was
// asked and what was answered, with calls and results as text. Reading is bounded, and a
// damaged line is counted and skipped.
package transcript

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"coder/internal/core/clip"
)

// Limits of what is read and kept.
const (
	maxLine   = 8 << 20
	maxTurns  = 2000
	maxAnswer = 64 << 10 // of one turn
	maxCall   = 500      // of the arguments of a call
	maxResult = 4 << 10
	maxTitle  = 200
)

// Turn is what was asked, and what came of it.
type Turn struct {
	Time           time.Time
	Prompt, Answer string
}

// Session is a session of another agent.
type Session struct {
	Dir        string // working folder of the session
	Started    time.Time
	Updated    time.Time
	Turns      []Turn
	Unreadable int  // lines that cannot be read
	Truncated  bool // there is more than is kept
}

// Title is what was asked first.
func (s Session) Title() string {
	if len(s.Turns) == 0 {
		return ""
	}
	return clip.Truncate(strings.Join(strings.Fields(s.Turns[0].Prompt), " "), maxTitle)
}

// line is a line of either agent.
type line struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Dir       string          `json:"cwd"`
	Meta      bool            `json:"isMeta"`
	Sidechain bool            `json:"isSidechain"`
	Message   *claudeMessage  `json:"message"` // Claude Code
	Payload   json.RawMessage `json:"payload"` // Codex
	item
}

// item is a part of a conversation as Codex writes it.
type item struct {
	Role      string          `json:"role"`
	Content   content         `json:"content"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
}

type claudeMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a text, or a list of parts.
type content []part

type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content content         `json:"content"`
}

// UnmarshalJSON reads a text as a part, and leaves out parts of other forms.
func (c *content) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*c = content{{Type: "text", Text: s}}
		return nil
	}
	var list []json.RawMessage
	_ = json.Unmarshal(text, &list) // other JSON has no parts
	for _, raw := range list {
		var p part
		if json.Unmarshal(raw, &p) == nil {
			*c = append(*c, p)
		}
	}
	return nil
}

// joinText is the words of a content.
func (c content) joinText() string {
	var words []string
	for _, p := range c {
		if (p.Type == "text" || p.Type == "input_text" || p.Type == "output_text") && strings.TrimSpace(p.Text) != "" {
			words = append(words, p.Text)
		}
	}
	return strings.Join(words, "\n")
}

// Read reads a session. Most is how many turns are enough; zero reads all.
func Read(r io.Reader, most int) (s Session, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		text, long, err := readLine(in)
		var l line
		switch {
		case len(strings.TrimSpace(string(text))) == 0 && !long:
		case long || json.Unmarshal(text, &l) != nil:
			s.Unreadable++
		default:
			s.addLine(l)
		}
		if errors.Is(err, io.EOF) || most > 0 && len(s.Turns) > most {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}

// readLine reads a line; of one that is too long nothing is kept.
func readLine(in *bufio.Reader) (text []byte, long bool, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if long = long || len(text)+len(piece) > maxLine; !long {
			text = append(text, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, long, err
		}
		if long {
			text = nil
		}
	}
}

func (s *Session) addLine(l line) {
	if s.Started.IsZero() {
		s.Started = l.Timestamp
	}
	if l.Timestamp.After(s.Updated) {
		s.Updated = l.Timestamp
	}
	if s.Dir == "" {
		s.Dir = l.Dir
	}
	switch {
	case l.Sidechain || l.Meta:
	case l.Message != nil:
		s.addClaude(l)
	case l.Type == "session_meta":
		var meta struct {
			Dir string `json:"cwd"`
		}
		if json.Unmarshal(l.Payload, &meta) == nil {
			s.Dir = meta.Dir
		}
	case l.Type == "response_item":
		var inner struct {
			Type string `json:"type"`
			item
		}
		if json.Unmarshal(l.Payload, &inner) == nil {
			s.addCodex(inner.Type, inner.item, l.Timestamp)
		}
	default:
		s.addCodex(l.Type, l.item, l.Timestamp)
	}
}

// addClaude takes a message of Claude Code.
func (s *Session) addClaude(l line) {
	if l.Message.Role == "user" {
		s.addPrompt(l.Message.Content.joinText(), l.Timestamp)
	}
	for _, p := range l.Message.Content {
		switch {
		case p.Type == "tool_use":
			s.addCall(p.Name, string(p.Input))
		case p.Type == "tool_result":
			s.addResult(p.Content.joinText())
		case p.Type == "text" && l.Message.Role == "assistant":
			s.addAnswer(p.Text)
		}
	}
}

// addCodex takes an item of Codex.
func (s *Session) addCodex(kind string, it item, at time.Time) {
	switch kind {
	case "message":
		switch text := it.Content.joinText(); it.Role {
		case "user":
			s.addPrompt(text, at)
		case "assistant":
			s.addAnswer(text)
		}
	case "function_call", "custom_tool_call":
		s.addCall(it.Name, it.Arguments+string(it.Input))
	case "function_call_output", "custom_tool_call_output":
		var text string
		var object struct {
			Content string `json:"content"`
			Output  string `json:"output"`
		}
		if json.Unmarshal(it.Output, &text) == nil && json.Unmarshal([]byte(text), &object) == nil ||
			json.Unmarshal(it.Output, &object) == nil {
			if object.Content+object.Output != "" {
				text = object.Content + object.Output
			}
		}
		s.addResult(text)
	}
}

// injectedPrefixes begins texts that the agent put before what the person said.
var injectedPrefixes = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md instructions",
	"<command-name>", "<local-command", "<system-reminder>", "Caveat: "}

func (s *Session) addPrompt(text string, at time.Time) {
	for _, head := range injectedPrefixes {
		if strings.HasPrefix(strings.TrimSpace(text), head) {
			return
		}
	}
	switch {
	case strings.TrimSpace(text) == "":
	case len(s.Turns) == maxTurns:
		s.Truncated = true
	default:
		s.Turns = append(s.Turns, Turn{Time: at, Prompt: clip.Truncate(text, maxAnswer)})
	}
}

func (s *Session) addAnswer(text string) {
	if len(s.Turns) == 0 || strings.TrimSpace(text) == "" {
		return
	}
	t := &s.Turns[len(s.Turns)-1]
	if len(t.Answer)+len(text) > maxAnswer {
		s.Truncated = true
		return
	}
	if t.Answer != "" {
		t.Answer += "\n\n"
	}
	t.Answer += text
}

func (s *Session) addCall(name, args string) {
	s.addAnswer(fmt.Sprintf("[called %s %s]", name, clip.Truncate(args, maxCall)))
}

func (s *Session) addResult(text string) {
	if strings.TrimSpace(text) != "" {
		s.addAnswer("[result]\n" + clip.Truncate(text, maxResult))
	}
}
