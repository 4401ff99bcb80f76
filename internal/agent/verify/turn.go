package verify

import (
	"cmp"
	"fmt"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// Work is what a turn has written and checked so far.
type Work struct {
	Edited  []string // paths
	repairs int      // failed checks handed back to the model
	// passed is the command that ran last, if it passed and nothing was written since;
	// checked the last check that the model ran itself and that passed; failed the outcome
	// of the last check that failed, if nothing was done since.
	passed, checked string
	failed          tool.ShellResult
}

// Wrote notes that a file was written.
func (w *Work) Wrote(file string) {
	w.Edited = append(w.Edited, file)
	w.passed, w.failed = "", tool.ShellResult{}
}

// Ran notes that a command ran, with its result as it stands in the conversation.
func (w *Work) Ran(command string, failed bool, result string) {
	if w.passed = command; failed {
		w.passed = ""
	}
	if !IsCheck(command) {
		return
	}
	switch r := tool.ReadShellResult(command, result); {
	case r.ExitCode > 0:
		w.failed = r
	case r.ExitCode == 0:
		w.checked = command
	}
}

// Turn is what the check of a turn rests on.
type Turn struct {
	*Work
	Input
	Facts
	Trusted bool // checks run unasked
	Last    Check
	// TurnedDown is why a check did not run when it was asked about last, or "".
	TurnedDown func(command string) (why string)
	// Asks reports whether the person would be asked about a check, or it be refused.
	Asks func(command string) bool
}

// Next is what to do about the check of a turn: say sentences, and then run a command, or
// take the result it is known to have.
type Next struct {
	Notices []string
	Command string // "" if there is nothing to run
	Known   bool   // Result is its result
	Result  tool.ShellResult
}

// notFound is how a shell ends that finds no program.
const notFound = 127

// Next decides about the check of a turn.
func (t Turn) Next() (n Next) {
	asked := AskedFor(t.UserText)
	t.Facts.Edited, t.Asked, t.Attempts, t.Input.Edited = t.Work.Edited, asked, t.repairs, t.Work.Edited
	switch why := Needed(t.Facts); {
	case why.Worth():
		return Next{Notices: NotRunNotice(string(why))}
	case why != Edits:
		return Next{}
	case Declined(t.UserText) && !asked:
		return Next{Notices: NotRunNotice("you asked not to run tests")}
	}
	choice := Choose(t.Input)
	for _, refused := range choice.Refused {
		n.Notices = append(n.Notices, RefusedNotice(refused))
	}
	stands := t.Last.Command != "" && t.Last.Verified() && t.Last.Untold == "" // for what is there now
	switch command := choice.Command; {
	case choice.Blind, command == "" && stands:
	case command == "":
		n.Notices = append(n.Notices, NotRunNotice(cmp.Or(choice.Unfit, "no check found for the edits"))...)
	case command == t.passed: // the model has run it itself, on what is there now
	case t.failed.Command == t.Last.Command && t.Last.Fails(command): // by anybody, and nothing was done about it
		n.Command, n.Known, n.Result = command, true, t.failed
	case stands && (!asked || t.Last.Command == t.checked) && t.Last.Stands(command):
	default:
		t.unlessTurnedDown(&n, command, asked, stands)
	}
	return n
}

// unlessTurnedDown has a check run, unless the person does not want to be asked about it
// again or its program is not there.
func (t Turn) unlessTurnedDown(n *Next, command string, asked, stands bool) {
	if why := t.TurnedDown(command); why != "" && !t.Trusted && !asked && t.Asks(command) {
		n.Notices = append(n.Notices, NotRunNotice(why)...) // the person is not asked every turn
		return
	}
	lacks := Missing(command, t.Installed)
	if lacks != "" && stands && len(t.Configured) == 0 { // the model has run another, which passed
		return
	}
	if n.Command = command; lacks != "" && !t.Trusted && t.Asks(command) { // nobody is asked for what cannot be
		n.Known, n.Result = true, tool.ShellResult{ExitCode: notFound, Stderr: lacks + ": command not found"}
	}
}

// Judge says what the result of a check comes to: what is put on record, and whether the
// model goes on. A failure goes back to it as long as it may try again.
func (w *Work) Judge(command string, r tool.ShellResult, maxAttempts int) (said []event.Event, again bool) {
	v := Judge(r.ExitCode, r.Stdout, r.Stderr)
	warn := func(text string) event.Event { return event.Notice{Level: event.Warn, Text: text} }
	tell := func(text string) event.Event { return event.MessageAdded{Message: chat.Say(chat.User, text)} }
	switch v.Outcome {
	case Passed:
		return []event.Event{event.Notice{Level: event.Info, Text: fmt.Sprintf("verified: %s passed", command)}}, false
	case Environment:
		for _, text := range EnvironmentNotice(command, v) {
			said = append(said, warn(text))
		}
		return said, false
	case Failed:
		w.failed = r
	}
	if MayRepair(w.repairs, maxAttempts) {
		w.repairs++
		text := fmt.Sprintf("%s failed, fixing (%d of %d)", command, w.repairs, maxAttempts)
		return []event.Event{warn(text), tell(RepairPrompt(command, v, r.Stdout, r.Stderr))}, true
	}
	still := fmt.Sprintf(display.Form(w.repairs, "%s still fails after %d attempt to fix it", "%s still fails after %d attempts to fix it"), command, w.repairs)
	if w.repairs == 0 {
		still = command + " fails, and the settings allow no repair"
	}
	return []event.Event{tell("[verification] " + still + " (" + v.Reason + ")"), warn(still)}, false
}
