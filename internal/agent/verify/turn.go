package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// Work tracks a turn's edits and checks so far.
type Work struct {
	Edited  []string // paths
	repairs int      // failed checks returned to the model
	// passed is the last command, if it passed and nothing was written since;
	// checked is the last check that the model ran itself and that passed; failed
	// is the outcome of the last failed check, if nothing was written since.
	passed, checked string
	failed          tool.ShellResult
	refused         []string // the model's command lines that the user denied
}

// Refused records that the user denied the model's command line.
func (w *Work) Refused(command string) { w.refused = append(w.refused, command) }

// refuses reports whether the user denied a command line with this check during the turn.
func (t Turn) refuses(check string) bool {
	return slices.ContainsFunc(t.refused, func(line string) bool {
		return strings.Contains(line, check) || Check{Command: line, root: t.Last.root}.Stands(check)
	})
}

// Wrote records that a file was written.
func (w *Work) Wrote(file string) {
	w.Edited = append(w.Edited, file)
	w.passed, w.failed = "", tool.ShellResult{}
}

// Ran records that a command ran, with its result from the conversation.
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

// Turn is the basis for a turn's check.
type Turn struct {
	*Work
	Input
	Facts
	Trusted bool // checks need no approval
	Last    Check
	// TurnedDown returns why a check did not run when last asked about, or "".
	TurnedDown func(command string) (why string)
	// Asks reports whether a check would need approval or be denied.
	Asks func(command string) bool
}

// Next is what to do about a turn's check: show notices, and then run a command or use its known result.
type Next struct {
	Notices []string
	Command string // "" if there is nothing to run
	Known   bool   // Result is the command's result
	Result  tool.ShellResult
}

// notFound is a shell's exit code if it finds no program.
const notFound = 127

// Next decides about a turn's check.
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
	stands := t.Last.Command != "" && t.Last.Verified() && t.Last.Untold == "" // for the current files
	switch command := choice.Command; {
	case choice.Blind, command == "" && stands:
	case command == "":
		n.Notices = append(n.Notices, NotRunNotice(cmp.Or(choice.Unfit, "no check found for the edits"))...)
	case command == t.passed: // the model ran it itself on the current files
	case t.failed.Command == t.Last.Command && t.Last.Fails(command): // anyone's check, and nothing changed since
		n.Command, n.Known, n.Result = command, true, t.failed
	case stands && (!asked || t.Last.Command == t.checked) && t.Last.Stands(command):
	default:
		t.unlessTurnedDown(&n, command, asked, stands)
	}
	return n
}

// unlessTurnedDown schedules a check, unless the user does not
// want to be asked again or its program is missing.
func (t Turn) unlessTurnedDown(n *Next, command string, asked, stands bool) {
	if t.refuses(command) {
		n.Notices = append(n.Notices, NotRunNotice("you refused this command")...)
		return
	}
	if why := t.TurnedDown(command); why != "" && !t.Trusted && !asked && t.Asks(command) {
		n.Notices = append(n.Notices, NotRunNotice(why)...) // do not ask in every turn
		return
	}
	lacks := Missing(command, t.Installed)
	if lacks != "" && stands && len(t.Configured) == 0 { // the model ran another check, which passed
		return
	}
	if n.Command = command; lacks != "" && !t.Trusted && t.Asks(command) { // do not ask for approval of a check that cannot run
		n.Known, n.Result = true, tool.ShellResult{ExitCode: notFound, Stderr: lacks + ": command not found"}
	}
}

// Judge evaluates a check's result: it returns what to record, and whether the
// model continues. A failure goes back to the model while attempts are left.
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
