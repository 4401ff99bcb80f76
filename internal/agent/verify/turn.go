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

// TurnWork tracks a turn's edits and checks so far.
type TurnWork struct {
	EditedFiles []string // paths
	repairs     int      // failed checks returned to the model
	// passedCommand is the last command, if it passed and nothing was written since;
	// checked is the last check that the model ran itself and that passed; failed
	// is the outcome of the last failed check, if nothing was written since.
	passedCommand, modelCheck string
	lastFailure               tool.ShellResult
	deniedCommands            []string // the model's command lines that the user denied
}

// RecordDenied records that the user denied the model's command line.
func (w *TurnWork) RecordDenied(command string) { w.deniedCommands = append(w.deniedCommands, command) }

// isDeniedThisTurn reports whether the user denied a command line with this check during the turn.
func (t TurnContext) isDeniedThisTurn(check string) bool {
	return slices.ContainsFunc(t.deniedCommands, func(line string) bool {
		return strings.Contains(line, check) || LastCheck{Command: line, root: t.LastCheck.root}.Covers(check)
	})
}

// RecordWrite records that a file was written.
func (w *TurnWork) RecordWrite(file string) {
	w.EditedFiles = append(w.EditedFiles, file)
	w.passedCommand, w.lastFailure = "", tool.ShellResult{}
}

// RecordCommand records that a command ran, with its result from the conversation.
func (w *TurnWork) RecordCommand(command string, failed bool, result string) {
	if w.passedCommand = command; failed {
		w.passedCommand = ""
	}
	if !IsCheck(command) {
		return
	}
	switch r := tool.ParseShellResult(command, result); {
	case r.ExitCode > 0:
		w.lastFailure = r
	case r.ExitCode == 0:
		w.modelCheck = command
	}
}

// TurnContext is the basis for a turn's check.
type TurnContext struct {
	*TurnWork
	ChoiceInput
	Conditions
	Trusted   bool // checks need no approval
	LastCheck LastCheck
	// DeclineReason returns why a check did not run when last asked about, or "".
	DeclineReason func(command string) (why string)
	// NeedsApproval reports whether a check would need approval or be denied.
	NeedsApproval func(command string) bool
}

// NextAction is what to do about a turn's check: show notices, and then run a command or use its known result.
type NextAction struct {
	Notices   []string
	Command   string // "" if there is nothing to run
	HasResult bool   // Result is the command's result
	Result    tool.ShellResult
}

// exitNotFound is a shell's exit code if it finds no program.
const exitNotFound = 127

// NextAction decides about a turn's check.
func (t TurnContext) NextAction() (n NextAction) {
	asked := IsRequested(t.UserText)
	t.Conditions.EditedFiles, t.Requested, t.Attempts, t.ChoiceInput.EditedFiles = t.TurnWork.EditedFiles, asked,
		t.repairs, t.TurnWork.EditedFiles
	switch why := CheckReason(t.Conditions); {
	case why.IsWorthShowing():
		return NextAction{Notices: NotRunNotice(string(why))}
	case why != ReasonEdits:
		return NextAction{}
	case IsDeclined(t.UserText) && !asked:
		return NextAction{Notices: NotRunNotice("you asked not to run tests")}
	}
	choice := ChooseCheck(t.ChoiceInput)
	for _, refused := range choice.Refused {
		n.Notices = append(n.Notices, RefusedNotice(refused))
	}
	// for the current files
	stands := t.LastCheck.Command != "" && t.LastCheck.IsVerified() && t.LastCheck.InconclusiveReason == ""
	switch command := choice.Command; {
	case choice.NoneCoversEdits, command == "" && stands:
	case command == "":
		n.Notices = append(n.Notices, NotRunNotice(cmp.Or(choice.UnfitReason, "no check found for the edits"))...)
	case command == t.passedCommand: // the model ran it itself on the current files
	// anyone's check, and nothing changed since
	case t.lastFailure.Command == t.LastCheck.Command && t.LastCheck.HasFailed(command):
		n.Command, n.HasResult, n.Result = command, true, t.lastFailure
	case stands && (!asked || t.LastCheck.Command == t.modelCheck) && t.LastCheck.Covers(command):
	default:
		t.scheduleUnlessDeclined(&n, command, asked, stands)
	}
	return n
}

// scheduleUnlessDeclined schedules a check, unless the user does not
// want to be asked again or its program is missing.
func (t TurnContext) scheduleUnlessDeclined(n *NextAction, command string, asked, stands bool) {
	if t.isDeniedThisTurn(command) {
		n.Notices = append(n.Notices, NotRunNotice("you refused this command")...)
		return
	}
	if why := t.DeclineReason(command); why != "" && !t.Trusted && !asked && t.NeedsApproval(command) {
		n.Notices = append(n.Notices, NotRunNotice(why)...) // do not ask in every turn
		return
	}
	lacks := MissingProgram(command, t.IsInstalled)
	if lacks != "" && stands && len(t.Configured) == 0 { // the model ran another check, which passed
		return
	}
	// do not ask for approval of a check that cannot run
	if n.Command = command; lacks != "" && !t.Trusted && t.NeedsApproval(command) {
		n.HasResult, n.Result = true, tool.ShellResult{ExitCode: exitNotFound, Stderr: lacks + ": command not found"}
	}
}

// EvaluateResult evaluates a check's result: it returns what to record, and whether the
// model continues. A failure goes back to the model while attempts are left.
func (w *TurnWork) EvaluateResult(command string, r tool.ShellResult, maxAttempts int) (said []event.Event,
	again bool) {
	v := Interpret(r.ExitCode, r.Stdout, r.Stderr)
	warn := func(text string) event.Event { return event.Notice{Level: event.LevelWarn, Text: text} }
	tell := func(text string) event.Event { return event.MessageAdded{Message: chat.TextMessage(chat.User, text)} }
	switch v.Outcome {
	case OutcomePassed:
		return []event.Event{event.Notice{Level: event.LevelInfo, Text: fmt.Sprintf("verified: %s passed", command)}}, false
	case OutcomeEnvironment:
		for _, text := range EnvironmentNotice(command, v) {
			said = append(said, warn(text))
		}
		return said, false
	case OutcomeFailed:
		w.lastFailure = r
	}
	if CanRepair(w.repairs, maxAttempts) {
		w.repairs++
		text := fmt.Sprintf("%s failed, fixing (%d of %d)", command, w.repairs, maxAttempts)
		return []event.Event{warn(text), tell(RepairPrompt(command, v, r.Stdout, r.Stderr))}, true
	}
	still := fmt.Sprintf(display.Plural(w.repairs, "%s still fails after %d attempt to fix it",
		"%s still fails after %d attempts to fix it"), command, w.repairs)
	if w.repairs == 0 {
		still = command + " fails, and the settings allow no repair"
	}
	return []event.Event{tell("[verification] " + still + " (" + v.Reason + ")"), warn(still)}, false
}
