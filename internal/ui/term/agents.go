package term

import (
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
)

// isFolded reports whether c stays out of the stream: it is a call of another agent, and the call that started this
// agent counts it. Changes of files are always shown.
func (r *Renderer) isFolded(c *callView) bool {
	return r.status.show != nil && c.task.startedBy != nil && !c.changesFile
}

// foldCall adds a call that ended to those of its agent.
func (r *Renderer) foldCall(c *callView, e event.ToolFinished) {
	_, line, more := r.outcomeText(c, e, true)
	if more != "" {
		line += "\n    " + strings.ReplaceAll(more, "\n", "\n    ")
	}
	by := c.task.startedBy
	by.agentCalls = append(by.agentCalls, strings.ReplaceAll(line, ink.NoBreakSpace, " "))
}

// foldAgent keeps what an agent did and said for [Renderer.Omitted], with the other agents of the turn. It returns
// what the last line of the call that started the agent says of that.
func (r *Renderer) foldAgent(c *callView, e event.ToolFinished) string {
	lines := append([]string{c.displayTitle()}, c.agentCalls...)
	if e.Content != nil {
		lines = append(lines, cleanText(strings.TrimSpace(display.Blocks{e.Content}.PlainText())))
	}
	if r.agents != "" {
		r.agents += "\n\n"
	}
	r.agents += strings.Join(lines, "\n")
	r.keepOmitted(r.agents)
	count := r.t(display.Plural(len(c.agentCalls), "%d tool call", "%d tool calls"), len(c.agentCalls))
	return signFor(r.options.ASCII, " · ", r.t(", ")) + count + " (Ctrl+O)"
}
