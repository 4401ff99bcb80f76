package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"coder/internal/agent/alike"
	"coder/internal/agent/rerun"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/clock"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/host/patch"
	"coder/internal/ui/i18n"
)

// runReplay replays a session, or reruns it to compare the results.
func (inv *invocation) runReplay(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	switch {
	case fl.verify && (fl.stepByStep || fl.speed > 0):
		return usageErrorf("--step and --speed are for playback; they cannot be used with --verify")
	case fl.json && !fl.verify:
		return usageErrorf("--json needs --verify; --events native prints the playback for programs")
	}
	id, err := a.Store().CheckSession(ctx, fl.args[0])
	if err != nil {
		return err
	}
	records, err := a.Store().ReadLog(ctx, id)
	if err != nil {
		return err
	}
	damage := a.Store().DescribeDamage(ctx, id)
	if _, err := a.Store().Verify(id); err != nil && len(a.Store().UnreadSessions()) == 0 {
		inv.warn(fmt.Sprintf("the record of session %s was changed, and may end early; see coder audit verify %[1]s", id))
	}
	n := cmp.Or(fl.untilRecord, len(records))
	switch {
	case n > len(records):
		return inputErrorf("session %s has %d records", id, len(records))
	case fl.verify && damage != "" && fl.untilRecord == 0:
		return inputErrorf("cannot tell whether session %s gives the same result: its record was changed (--until %d runs what is left of it)", id, len(records))
	case fl.verify:
		return inv.verifyRerun(ctx, a, id, records, n)
	}
	return inv.playRecords(ctx, a, id, records[:n])
}

// verifyRerun reruns a session and reports the result.
func (inv *invocation) verifyRerun(ctx context.Context, a *app.Workspace, id string, records []event.Record,
	n int) error {
	report, err := a.Verify(ctx, id, records, n)
	if err != nil {
		return err
	}
	if inv.flags.json {
		err = inv.printJSON(report)
	} else {
		err = inv.printRerun(id, report)
	}
	switch {
	case err != nil || report.Difference == nil:
		return err
	case report.Missing != "":
		return &exitError{code: ExitInput}
	}
	return &exitError{code: ExitError}
}

// printRerun reports whether a rerun matched, otherwise with the first difference.
func (inv *invocation) printRerun(name string, report *rerun.Report) error {
	title, body := inv.describeRerun(name, report)
	_, err := fmt.Fprint(inv.Stdout, title+"\n"+sanitize.Text(body))
	return err
}

// describeRerun returns the result of a rerun on one line, and the first difference: the call, its cause
// if known, and a diff.
func (inv *invocation) describeRerun(name string, report *rerun.Report) (title, body string) {
	d := report.Difference
	if d == nil {
		return inv.printer.T(display.Plural(report.Steps, "%s agrees: %d step, %d records, equal except for %s",
			"%s agrees: %d steps, %d records, equal except for %s"), singleLine(name), report.Steps, report.ComparedRecords,
			inv.ignoredDifferences()), ""
	}
	title = inv.printer.T(display.Plural(d.AgreedRecords,
		"%s differs at step %d, record %d (%s), after %d matching record",
		"%s differs at step %d, record %d (%s), after %d matching records"), singleLine(name), d.Step, d.Record,
		inv.describeDifference(d), d.AgreedRecords)
	if report.Missing != "" {
		title = inv.printer.T("cannot tell whether %s gives the same result: %s", singleLine(name),
			inv.printer.T(report.Missing)) + "\n" +
			inv.printer.T("the first difference: step %d, record %d (%s)", d.Step, d.Record, inv.describeDifference(d))
	}
	if d.Call != "" {
		body += inv.printer.T("call: %s", singleLine(d.Subject+" "+d.Call)) + "\n"
	}
	if cause := cmp.Or(singleLine(d.Cause), inv.printer.T(rerunCauseTexts[d.Kind])); cause != "" && report.Missing == "" {
		body += inv.printer.T("cause: %s", cause) + "\n"
	}
	text, _, _ := patch.Unified("", []byte(d.Recorded), []byte(d.Rerun))
	if at := strings.Index(text, "\n@@"); at >= 0 { // the names of the two sides, in place of those of a file
		text = "--- " + inv.printer.T("record %d", d.Record) + "\n+++ " + inv.printer.T("rerun") + text[at:]
	}
	body += inv.shortDifference(text)
	if len(report.UnsureFiles) > 0 {
		body += inv.printer.T("changed since the session began, original content unknown: %s",
			singleLine(strings.Join(report.UnsureFiles, ", "))) + "\n"
	}
	return title, body
}

// rerunCauseTexts explains differences by kind.
var rerunCauseTexts = map[string]string{
	"request": "the current prompt, rules or tools differ from the recorded ones",
	"result":  "the call gave another result twice, in the session's original files",
	"files":   "the call left other files twice, in the session's original files",
}

// maxDifferenceLines is how many lines of a difference are shown.
const maxDifferenceLines = 80

// shortDifference returns the beginning of a long difference, and how to see all of it.
func (inv *invocation) shortDifference(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= maxDifferenceLines {
		return text
	}
	return strings.Join(lines[:maxDifferenceLines], "") +
		inv.printer.T("… %d more lines; --json shows all", len(lines)-maxDifferenceLines) + "\n"
}

// ignoredDifferences lists what may differ.
func (inv *invocation) ignoredDifferences() string {
	var list []string
	for _, name := range alike.VolatileNames {
		list = append(list, inv.printer.T(name))
	}
	if inv.printer.Lang() == i18n.Chinese {
		return strings.Join(list, "、")
	}
	return strings.Join(list, ", ")
}

// describeDifference describes what differs.
func (inv *invocation) describeDifference(d *rerun.Difference) string {
	words := differenceKindTexts[d.Kind]
	if strings.Contains(words, "%s") {
		return inv.printer.T(words, singleLine(d.Subject))
	}
	return inv.printer.T(words)
}

// differenceKindTexts describes kinds of differences.
var differenceKindTexts = map[string]string{
	"request": "the request to the model", "reply": "the model's reply", "decision": "the decision about %s",
	"question": "the question to the user",
	"result":   "the result of %s", "files": "the files after %s", "course": "what happens next",
}

// playRecords shows a session's records as they were shown, from the records alone.
func (inv *invocation) playRecords(ctx context.Context, a *app.Workspace, id string, records []event.Record) error {
	_, _, person := inv.Terminal()
	if inv.flags.stepByStep && !person {
		return usageErrorf("--step waits for Enter, so it needs a terminal")
	}
	if inv.flags.stepByStep {
		inv.warn("Enter shows the next step; q and Enter quits")
	}
	out, _ := inv.newWatcher(id)
	turns := a.NewTurnTracker()
	pace := playbackPace{speed: inv.flags.speed, noWait: !person && inv.flags.speed == 0 || inv.flags.events != ""}
	for _, r := range records {
		err := pace.wait(ctx, r.Time)
		if err == nil {
			err = out.Emit(ctx, r)
		}
		if face, ok := out.(*replayFace); ok && err == nil {
			if turn, ended := turns.Add(ctx, r); ended {
				err = face.face.PrintLines(turnLine{inv.printer, inv.separator()}.format(turn))
			}
		}
		if err == nil && inv.flags.stepByStep && endsStep(r) {
			err = inv.waitForEnter(ctx)
		}
		switch {
		case errors.Is(err, errReplayEnded):
			return nil
		case ctx.Err() != nil:
			return &exitError{code: ExitInterrupted}
		case err != nil:
			return err
		}
	}
	return nil
}

// endsStep reports whether r ends a step for a viewer.
func endsStep(r event.Record) bool {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		return event.IsUserMessage(r) || e.Message.Role == chat.Assistant && e.Message.Text() != ""
	case event.ToolCallCompleted, event.InteractionRequested, event.LocalAdded, event.TaskFailed:
		return true
	}
	return false
}

// playbackPace waits between records.
type playbackPace struct {
	speed  float64 // 0: as recorded, without long pauses
	noWait bool    // do not wait
	last   time.Time
}

// maxPause is the longest wait, unless the speed is given.
const maxPause = 1500 * time.Millisecond

func (p *playbackPace) wait(ctx context.Context, at time.Time) error {
	pause := at.Sub(p.last)
	if p.last.IsZero() || p.noWait {
		pause = 0
	}
	p.last = at
	if p.speed > 0 {
		pause = time.Duration(float64(pause) / p.speed)
	} else {
		pause = min(pause, maxPause)
	}
	if pause <= 0 {
		return ctx.Err()
	}
	return clock.Sleep(ctx, pause)
}

// errReplayEnded reports that the user ended the replay.
var errReplayEnded = errors.New("enough")

// waitForEnter waits for Enter; q ends the replay.
func (inv *invocation) waitForEnter(ctx context.Context) error {
	line, err := inv.stdin.ReadLine(ctx, maxPromptBytes)
	if errors.Is(err, io.EOF) || strings.TrimSpace(line) == "q" {
		return errReplayEnded
	}
	return err
}
