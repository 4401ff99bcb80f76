package textcalls

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/model/provider"
)

// textRequest rewrites req for a model that calls tools as text: the system
// text describes the tools, and earlier calls and results become text.
func textRequest(req provider.Request) provider.Request {
	if len(req.Tools) > 0 {
		b := bytes.NewBufferString(callInstructions)
		for _, t := range req.Tools {
			fmt.Fprintf(b, "\n## %s\n\n%s\n\nSchema of its arguments: ", t.Name, strings.TrimSpace(t.Doc))
			if len(t.Schema) == 0 || json.Compact(b, t.Schema) != nil {
				b.WriteString(`{"type":"object"}`)
			}
			b.WriteString("\n")
		}
		req.System = strings.TrimLeft(req.System+"\n\n"+b.String(), "\n")
	}
	req.Tools = nil
	req.Messages = renderMessages(req.Messages)
	return req
}

const callInstructions = `# Tools

To use a tool, write a block of exactly this form, on lines of its own and never in a code fence:

<tool_use>
{"name": "NAME", "arguments": {"KEY": "VALUE"}}
</tool_use>

"arguments" is one JSON object that fits the tool's schema; escape quotes and line breaks in its strings as JSON asks.
For several calls write several blocks, one after the other. After the last block write nothing more: the results come
with the next message, one <tool_result> block per call, in the order of the calls. Never write a <tool_result> yourself.

These are the tools:
`

// renderMessages renders calls and results as text. Results, and a user message right after them, become one user
// message: many models require user and assistant to alternate.
func renderMessages(ms []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(ms))
	afterResults := false
	for _, m := range ms {
		isResult := m.Role == chat.Tool
		if isResult || m.Role == chat.Assistant && len(m.Calls()) > 0 {
			m = chat.Message{Role: m.Role, Parts: renderParts(m.Parts)}
		}
		if isResult {
			m.Role = chat.User
		}
		if last := len(out) - 1; afterResults && m.Role == chat.User {
			parts := slices.Concat(out[last].Parts, []chat.Part{chat.Text("\n\n")}, m.Parts)
			out[last] = chat.Message{Role: out[last].Role, Parts: parts}
		} else {
			out = append(out, m)
		}
		afterResults = m.Role == chat.User && (afterResults || isResult)
	}
	return out
}

// renderParts renders calls and results as text. It wraps a
// result so that nothing in it can end the wrapping.
func renderParts(parts []chat.Part) (texts []chat.Part) {
	gap := ""
	for _, p := range parts {
		switch part := p.(type) {
		case chat.ToolCall:
			p = chat.Text(fmt.Sprintf("%s<tool_use>\n{\"name\": %s, \"arguments\": %s}\n</tool_use>",
				gap, jsonx.MustMarshal(part.Name), cmp.Or(part.Broken, string(part.Args))))
			gap = "\n"
		case chat.ToolResult:
			status := ""
			if part.Failed {
				status = ` status="failed"`
			}
			p = chat.Text(fmt.Sprintf("<tool_result name=%q%s>\n%s\n</tool_result>",
				part.Name, status, strings.ReplaceAll(part.Text, "</tool_result", "< /tool_result")))
		case chat.Text:
			gap = "\n\n"
		}
		texts = append(texts, p)
	}
	return texts
}
