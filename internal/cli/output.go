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
	"coder/internal/core/message"
	"coder/internal/core/uip"
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
	invocation    *invocation
	textOutput    bool                 // write the answer to stdout unchanged
	json          *streamjson.Renderer // nil unless a JSON format was requested
	tally         streamjson.Tally     // the current turn
	deniedUnasked bool                 // a call was refused because nobody could be asked
	openQuestions map[string]bool      // unanswered questions of MCP servers

	silent           bool                   // the run says nothing of checks
	structured       func() json.RawMessage // the answer in the requested form; nil: none requested
	structuredAnswer json.RawMessage        // of the current turn

	unsavedReason func() error   // why something is not saved to disk; nil if everything is
	host          *serve.Host    // nil before the session is open
	lastLocal     display.Blocks // the last output of coder's own
}

func (inv *invocation) newOutput(a *app.Workspace) *output {
	fl := inv.flags
	o := &output{invocation: inv}
	if fl.Schema != nil {
		o.structured = a.StructuredAnswer
	}
	var face event.Sink
	switch {
	case fl.events != "":
		face = inv.eventStream()
	case fl.outputFormat == "text":
		o.textOutput = true
		face = event.Discard
	default:
		o.json = streamjson.New(inv.Stdout, streamjson.Options{Now: inv.Now,
			Servers: func() []streamjson.Server { return streamServers(o.servers(a)) }, ResultOnly: fl.outputFormat == "json"})
		face = o.json
	}
	o.Sink = event.Tee(event.SinkFunc(o.countRecord), face,
		plain.New(inv.Stderr, plain.Options{Verbose: fl.verbose, Translator: inv.printer}))
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

// newLineOutput returns the face of a run whose output is read as it comes, like a terminal's, but not by a
// terminal.
func (inv *invocation) newLineOutput(a *app.Workspace) (*output, *term.Renderer) {
	o := &output{invocation: inv, silent: true}
	face := term.New(term.Options{Out: inv.Stdout, Palette: inv.palette(false), Translator: inv.printer, Now: inv.Now,
		ASCII: inv.useASCII()})
	o.Sink = event.Tee(event.SinkFunc(o.countRecord), face)
	return o, face
}

// servers returns the states of the session's MCP servers, or of the workspace's before the session opens.
func (o *output) servers(a *app.Workspace) []mcp.Status {
	if o.host == nil {
		return a.MCPStatus()
	}
	return o.host.Inside().MCPStatus()
}

// lastCheck returns the session's last check.
func (o *output) lastCheck() verify.LastCheck {
	if o.silent || o.host == nil {
		return verify.LastCheck{}
	}
	return o.host.Inside().LastCheck()
}

// countRecord updates the turn's totals.
func (o *output) countRecord(_ context.Context, r event.Record) error {
	o.tally.Add(r)
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		if e.Display.Metadata[uip.Server] != "" {
			if o.openQuestions == nil {
				o.openQuestions = make(map[string]bool)
			}
			o.openQuestions[e.ID] = true
		}
	case event.InteractionResponded:
		if !e.IsUnanswered() {
			delete(o.openQuestions, e.ID)
		}
		o.deniedUnasked = o.deniedUnasked || e.IsUnanswered()
	case event.LocalAdded:
		o.lastLocal = e.DisplayBlocks()
	}
	return nil
}

// beginTurn resets the totals for a turn.
func (o *output) beginTurn() {
	o.tally, o.deniedUnasked, o.openQuestions, o.lastLocal, o.structuredAnswer = streamjson.Tally{}, false, nil, nil, nil
}

// endTurn writes the turn's result and returns the program's error: the turn's own, or that calls were
// refused.
func (o *output) endTurn(answer string, turnErr error) error {
	var err error
	switch {
	case o.json != nil:
		err = o.json.Finish(context.Background(), o.turnOutcome(answer, turnErr))
	case o.textOutput && o.structuredResult() != nil:
		err = o.invocation.print(o.invocation.sanitizeText(string(o.structuredResult())))
	case o.textOutput && answer != "":
		if o.lastLocal.PlainText() == answer {
			answer = o.lastLocal.Translate(o.invocation.printer.TranslateText, ink.Width)
		}
		answer = strings.TrimRight(answer, "\n")
		if turnErr != nil {
			answer += "\n" + o.invocation.printer.T("[interrupted]")
		}
		err = o.invocation.print(o.invocation.sanitizeText(answer))
	}
	if err != nil {
		return errors.Join(turnErr, message.Errorf("write the answer: %w", err))
	}
	if n := len(o.tally.Denials); turnErr == nil && n > 0 {
		return &exitError{code: ExitDenied, text: o.deniedMessage(n)}
	}
	if turnErr == nil && len(o.openQuestions) > 0 {
		return &exitError{code: ExitDenied, text: "finished, but an MCP server asked a question, and no user could answer"}
	}
	if turnErr == nil && o.invocation.flags.requireVerified && !o.lastCheck().IsVerified() {
		return &exitError{code: ExitUnverified, text: unverifiedMessage(o.lastCheck())}
	}
	return turnErr
}

// unverifiedMessage describes what was left unchecked.
func unverifiedMessage(c verify.LastCheck) string {
	switch {
	case c.Command == "":
		return "done, but nothing was checked after the changes"
	case c.InconclusiveReason != "":
		return fmt.Sprintf("done, but the last check was inconclusive: %s (%s)", c.Command, c.InconclusiveReason)
	case c.ExitCode != 0:
		return fmt.Sprintf("done, but the last check failed: %s (exit code %d)", c.Command, c.ExitCode)
	}
	return fmt.Sprintf("done, but files changed after the last check: %s", c.Command)
}

// structuredResult returns the answer in the requested form, nil if none was requested.
func (o *output) structuredResult() json.RawMessage {
	if o.structured == nil {
		return nil
	}
	if o.structuredAnswer == nil {
		o.structuredAnswer = o.structured()
	}
	return o.structuredAnswer
}

// turnOutcome returns how a turn ended, for programs.
func (o *output) turnOutcome(answer string, err error) streamjson.Outcome {
	out := streamjson.Outcome{Result: answer, Unsaved: o.unsavedReason != nil && o.unsavedReason() != nil,
		Structured: o.structuredResult()}
	c := o.lastCheck()
	out.Checks.Edits = c.EditsSince
	if passed := c.HasPassed(); c.Command != "" || c.AnyEdits {
		out.Checks.Verified = &passed
	}
	if c.Command != "" {
		out.Checks.Last, out.Checks.ExitCode = &c.Command, &c.ExitCode
	}
	if err != nil {
		out.Err = errors.New(errorMessage(err).String())
	}
	var provides *provider.Error
	switch {
	case errors.Is(err, orchestrator.ErrStepLimit):
		out.Subtype = streamjson.MaxTurns
	case errors.Is(err, meter.ErrBudget):
		out.Subtype = streamjson.MaxCost
	case errors.Is(err, structured.ErrNoAnswer):
		out.Subtype = streamjson.NoAnswer
	case errors.As(err, &provides):
		out.Provider = true
	}
	return out
}

// deniedMessage says how many calls were refused, and what would have helped.
func (o *output) deniedMessage(n int) string {
	text := "finished, but 1 call was refused"
	if n != 1 {
		text = fmt.Sprintf("finished, but %d calls were refused", n)
	}
	if !o.deniedUnasked || o.host == nil {
		return text
	}
	var calls []string
	for _, d := range o.tally.Denials {
		calls = append(calls, d.CallID)
	}
	switch option := o.host.Inside().ApprovalHint(context.Background(), calls); {
	case option == "--auto-approve":
		text += "; --auto-approve allows calls that only need approval"
	case option != "":
		text += fmt.Sprintf("; %s allows the refused calls", option)
	}
	return text
}
