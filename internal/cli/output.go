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
	"coder/internal/tool/mcp"
	"coder/internal/tool/structured"
	"coder/internal/ui/events"
	"coder/internal/ui/plain"
	"coder/internal/ui/streamjson"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// output is the face of a headless run: what the flags asked to see, where
// they asked to see it.
type output struct {
	event.Sink
	inv   *invocation
	text  bool                 // the answer goes to stdout as it is
	json  *streamjson.Renderer // nil unless a JSON format was asked for
	tally streamjson.Tally     // the turn under way
	alone bool                 // a call was refused because nobody could be asked
	asked map[string]bool      // questions of MCP servers that nobody answered

	checked    func() verify.Check
	structured func() json.RawMessage // the answer in the form that was asked for; nil: none was
	form       json.RawMessage        // that of the turn under way

	unkept func() error                // why something is not kept on disk; nil if all is
	hint   func(calls []string) string // the option that lets calls pass; nil: none is known
	local  display.Blocks              // the last answer of the program's own
}

func (inv *invocation) newOutput(a *app.App) *output {
	fl := inv.flags
	o := &output{inv: inv, checked: a.Checked, hint: hintOf(a)}
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
		o.json = streamjson.New(inv.Stdout, streamjson.Options{Now: inv.Now, Servers: func() []streamjson.Server { return initServers(a) }, ResultOnly: fl.outputFormat == "json"})
		face = o.json
	}
	o.Sink = event.Tee(event.SinkFunc(o.count), face, plain.New(inv.Stderr, plain.Options{Verbose: fl.verbose, Words: inv.words}))
	return o
}

// eventStream is the timeline for programs, in the vocabulary of the flag.
func (inv *invocation) eventStream() event.Sink {
	view, err := events.ParseView(inv.flags.events)
	if err != nil {
		panic(err) // the flag allows no other
	}
	return events.New(inv.Stdout, view)
}

// newLines is the face of a run that is read as it goes, like a terminal's, by
// something that is none.
func (inv *invocation) newLines(a *app.App) (*output, *term.Renderer) {
	o := &output{inv: inv, hint: hintOf(a), checked: func() verify.Check { return verify.Check{} }}
	face := term.New(term.Options{Out: inv.Stdout, Palette: inv.palette(false), Words: inv.words, Now: inv.Now, ASCII: inv.ascii()})
	o.Sink = event.Tee(event.SinkFunc(o.count), face)
	return o, face
}

func hintOf(a *app.App) func(calls []string) string {
	return func(calls []string) string { return a.Hint(context.Background(), calls) }
}

// count keeps the turn's account.
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

// begin opens the account of a turn.
func (o *output) begin() {
	o.tally, o.alone, o.asked, o.local, o.form = streamjson.Tally{}, false, nil, nil, nil
}

// end writes what the turn came to and returns the error the program should
// end with: the turn's own, or that calls were refused.
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
		return &exitError{code: ExitRefused, text: "finished, but an MCP server asked something and nobody could answer"}
	}
	if turnErr == nil && o.inv.flags.requireVerified && !o.checked().Verified() {
		return &exitError{code: ExitUnverified, text: unverified(o.checked())}
	}
	return turnErr
}

// unverified says what was left unchecked.
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

// formed is the answer in the form that was asked for, nil if none was.
func (o *output) formed() json.RawMessage {
	if o.structured == nil {
		return nil
	}
	if o.form == nil {
		o.form = o.structured()
	}
	return o.form
}

// outcome is how a turn ended, for programs.
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
	if !o.alone || o.hint == nil {
		return text
	}
	var calls []string
	for _, d := range o.tally.Denials {
		calls = append(calls, d.CallID)
	}
	switch option := o.hint(calls); {
	case option == "--auto-approve":
		text += "; --auto-approve allows calls that only need approval"
	case option != "":
		text += fmt.Sprintf("; %s allows the refused calls", option)
	}
	return text
}
