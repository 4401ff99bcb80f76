package textcalls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// asText returns req as a model is asked that knows tools from its prompt
// alone: tools are described in the system text, earlier calls and their
// results are told as text.
func asText(req provider.Request) provider.Request {
	if len(req.Tools) > 0 {
		req.System = strings.TrimLeft(req.System+"\n\n"+describe(req.Tools), "\n")
	}
	req.Tools = nil
	req.Messages = tell(req.Messages)
	return req
}

const howTo = `# Tools

To use a tool, write a block of exactly this form, on lines of its own and never in a code fence:

<tool_use>
{"name": "NAME", "arguments": {"KEY": "VALUE"}}
</tool_use>

"arguments" is one JSON object that fits the tool's schema; escape quotes and line breaks in its strings as JSON asks.
For several calls write several blocks, one after the other. After the last block write nothing more: the results come
with the next message, one <tool_result> block per call, in the order of the calls. Never write a <tool_result> yourself.

These are the tools:
`

func describe(tools []provider.ToolSpec) string {
	var b strings.Builder
	b.WriteString(howTo)
	for _, t := range tools {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nSchema of its arguments: %s\n", t.Name, strings.TrimSpace(t.Doc), oneLine(t.Schema))
	}
	return b.String()
}

func oneLine(schema json.RawMessage) string {
	var b bytes.Buffer
	if len(schema) == 0 || json.Compact(&b, schema) != nil {
		return `{"type":"object"}`
	}
	return b.String()
}

// tell renders calls and results as text. Results, and what the person said
// right after them, become one message of the user: many models want user and
// assistant to take turns.
func tell(ms []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(ms))
	afterResults := false
	for _, m := range ms {
		switch {
		case m.Role == chat.Tool:
			m = resultsAsText(m)
		case m.Role == chat.Assistant:
			m = callsAsText(m)
		}
		isResult := m.Role == chat.Tool
		if isResult {
			m.Role = chat.User
		}
		if last := len(out) - 1; afterResults && m.Role == chat.User {
			out[last] = joined(out[last], m)
		} else {
			out = append(out, m)
		}
		afterResults = m.Role == chat.User && (afterResults || isResult)
	}
	return out
}

// joined makes one message of two.
func joined(a, b chat.Message) chat.Message {
	parts := append(append([]chat.Part(nil), a.Parts...), chat.Text("\n\n"))
	return chat.Message{Role: a.Role, Parts: append(parts, b.Parts...)}
}

func callsAsText(m chat.Message) chat.Message {
	if len(m.Calls()) == 0 {
		return m
	}
	var (
		parts []chat.Part
		gap   string
	)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.ToolCall:
			parts = append(parts, chat.Text(gap+callText(p)))
			gap = "\n"
		case chat.Text:
			parts = append(parts, p)
			gap = "\n\n"
		default:
			parts = append(parts, p)
		}
	}
	return chat.Message{Role: m.Role, Parts: parts}
}

func callText(c chat.ToolCall) string {
	args := string(c.Args)
	if c.Broken != "" {
		args = c.Broken
	}
	name, err := json.Marshal(c.Name)
	if err != nil {
		panic(err) // a string always marshals
	}
	return fmt.Sprintf("<tool_use>\n{\"name\": %s, \"arguments\": %s}\n</tool_use>", name, args)
}

func resultsAsText(m chat.Message) chat.Message {
	var parts []chat.Part
	for _, p := range m.Parts {
		if r, ok := p.(chat.ToolResult); ok {
			p = chat.Text(resultText(r))
		}
		parts = append(parts, p)
	}
	return chat.Message{Role: m.Role, Parts: parts}
}

// resultText wraps a result so that nothing in it can end the wrapping.
func resultText(r chat.ToolResult) string {
	status := ""
	if r.Failed {
		status = ` status="failed"`
	}
	text := strings.ReplaceAll(r.Text, "</tool_result", "< /tool_result")
	return fmt.Sprintf("<tool_result name=%q%s>\n%s\n</tool_result>", r.Name, status, text)
}
