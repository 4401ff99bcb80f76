package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/verify"
	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/serve"
	"coder/internal/tool/mcp"
	"coder/internal/tool/structured"
	"coder/internal/ui/events"
	"coder/internal/ui/plain"
	"coder/internal/ui/streamjson"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// output is the face of a headless run: it writes what the flags requested, where they requested it.
type output struct {
	event.Sink
	inv   *invocation
	text  bool                 // write the answer to stdout unchanged
	json  *streamjson.Renderer // nil unless a JSON format was requested
	tally streamjson.Tally     // the current turn
	alone bool                 // a call was refused because nobody could be asked
	asked map[string]bool      // unanswered questions of MCP servers

	silent     bool                   // the run says nothing of checks
	structured func() json.RawMessage // the answer in the requested form; nil: none requested
	form       json.RawMessage        // of the current turn

	unkept func() error   // why something is not saved to disk; nil if everything is
	host   *serve.Host    // nil before the session is open
	local  display.Blocks // the last output of coder's own
}

func (inv *invocation) newOutput(a *app.Workspace) *output {
	fl := inv.flags
	o := &output{inv: inv}
	if fl.Schema != nil {
		o.structured = a.Structured
	}
	var face event.Sink
	switch {
	case fl.events != "":
		face = inv.eventStream()
	case fl.outputFormat == "text":
		o.text = true
		face = event.Discard
	default:
		o.json = streamjson.New(inv.Stdout, streamjson.Options{Now: inv.Now, Servers: func() []streamjson.Server { return initServers(o.servers(a)) }, ResultOnly: fl.outputFormat == "json"})
		face = o.json
	}
	o.Sink = event.Tee(event.SinkFunc(o.count), face, plain.New(inv.Stderr, plain.Options{Verbose: fl.verbose, Words: inv.words}))
	return o
}

// eventStream returns the event output for programs, in the flag's vocabulary.
func (inv *invocation) eventStream() event.Sink {
	view, err := events.ParseView(inv.flags.events)
	if err != nil {
		panic(err) // the flag allows no other value
	}
	return events.New(inv.Stdout, view)
}

// newLines returns the face of a run whose output is read as it comes, like a terminal's, but not by a
// terminal.
func (inv *invocation) newLines(a *app.Workspace) (*output, *term.Renderer) {
	o := &output{inv: inv, silent: true}
	face := term.New(term.Options{Out: inv.Stdout, Palette: inv.palette(false), Words: inv.words, Now: inv.Now, ASCII: inv.ascii()})
	o.Sink = event.Tee(event.SinkFunc(o.count), face)
	return o, face
}

// servers returns the states of the session's MCP servers, or before it is open those of the workspace.
func (o *output) servers(a *app.Workspace) []mcp.Status {
	if o.host == nil {
		return a.MCPStatus()
	}
	return o.host.Inside().MCPStatus()
}

// checked returns the session's last check.
func (o *output) checked() verify.Check {
	if o.silent || o.host == nil {
		return verify.Check{}
	}
	return o.host.Inside().Checked()
}

// count updates the turn's totals.
func (o *output) count(_ context.Context, r event.Record) error {
	o.tally.Add(r)
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		if e.Display.Metadata[mcp.Asks] != "" {
			if o.asked == nil {
				o.asked = make(map[string]bool)
			}
			o.asked[e.ID] = true
		}
	case event.InteractionResponded:
		if !e.Unanswered() {
			delete(o.asked, e.ID)
		}
		o.alone = o.alone || e.Unanswered()
	case event.LocalAdded:
		o.local = e.Shown()
	}
	return nil
}

// begin resets the totals for a turn.
func (o *output) begin() {
	o.tally, o.alone, o.asked, o.local, o.form = streamjson.Tally{}, false, nil, nil, nil
}

// end writes the turn's result and returns the program's error: the turn's own, or that calls were
// refused.
func (o *output) end(answer string, turnErr error) error {
	var err error
	switch {
	case o.json != nil:
		err = o.json.Finish(context.Background(), o.outcome(answer, turnErr))
	case o.text && o.formed() != nil:
		err = o.inv.print(o.inv.foreign(string(o.formed())))
	case o.text && answer != "":
		if o.local.Plain() == answer {
			answer = o.local.Translated(o.inv.words.Said, ink.Width)
		}
		answer = strings.TrimRight(answer, "\n")
		if turnErr != nil {
			answer += "\n" + o.inv.words.T("[interrupted]")
		}
		err = o.inv.print(o.inv.foreign(answer))
	}
	if err != nil {
		return errors.Join(turnErr, fmt.Errorf("write the answer: %w", err))
	}
	if n := len(o.tally.Denials); turnErr == nil && n > 0 {
		return &exitError{code: ExitRefused, text: o.refused(n)}
	}
	if turnErr == nil && len(o.asked) > 0 {
		return &exitError{code: ExitRefused, text: "finished, but an MCP server asked a question, and no user could answer"}
	}
	if turnErr == nil && o.inv.flags.requireVerified && !o.checked().Verified() {
		return &exitError{code: ExitUnverified, text: unverified(o.checked())}
	}
	return turnErr
}

// unverified describes what was left unchecked.
func unverified(c verify.Check) string {
	switch {
	case c.Command == "":
		return "done, but nothing was checked after the changes"
	case c.Untold != "":
		return fmt.Sprintf("done, but the last check was inconclusive: %s (%s)", c.Command, c.Untold)
	case c.ExitCode != 0:
		return fmt.Sprintf("done, but the last check failed: %s (exit code %d)", c.Command, c.ExitCode)
	}
	return fmt.Sprintf("done, but files changed after the last check: %s", c.Command)
}

// formed returns the answer in the requested form, nil if none was requested.
func (o *output) formed() json.RawMessage {
	if o.structured == nil {
		return nil
	}
	if o.form == nil {
		o.form = o.structured()
	}
	return o.form
}

// outcome returns how a turn ended, for programs.
func (o *output) outcome(answer string, err error) streamjson.Outcome {
	out := streamjson.Outcome{Result: answer, Unkept: o.unkept != nil && o.unkept() != nil, Structured: o.formed()}
	c := o.checked()
	out.Checks.Edits = c.Edits
	if passed := c.Passed(); c.Command != "" || c.Edited {
		out.Checks.Verified = &passed
	}
	if c.Command != "" {
		out.Checks.Last, out.Checks.ExitCode = &c.Command, &c.ExitCode
	}
	if err != nil {
		out.Err = errors.New(message(err))
	}
	var provides *provider.Error
	switch {
	case errors.Is(err, orchestrator.ErrStepLimit):
		out.Subtype = streamjson.MaxTurns
	case errors.Is(err, meter.ErrBudget):
		out.Subtype = streamjson.MaxSpent
	case errors.Is(err, structured.ErrNone):
		out.Subtype = streamjson.NoAnswer
	case errors.As(err, &provides):
		out.Provider = true
	}
	return out
}

// refused says how many calls were refused, and what would have helped.
func (o *output) refused(n int) string {
	text := "finished, but 1 call was refused"
	if n != 1 {
		text = fmt.Sprintf("finished, but %d calls were refused", n)
	}
	if !o.alone || o.host == nil {
		return text
	}
	var calls []string
	for _, d := range o.tally.Denials {
		calls = append(calls, d.CallID)
	}
	switch option := o.host.Inside().Hint(context.Background(), calls); {
	case option == "--auto-approve":
		text += "; --auto-approve allows calls that only need approval"
	case option != "":
		text += fmt.Sprintf("; %s allows the refused calls", option)
	}
	return text
}
