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
	case fl.verify && (fl.step || fl.speed > 0):
		return usagef("--step and --speed are for playback; they cannot be used with --verify")
	case fl.json && !fl.verify:
		return usagef("--json needs --verify; --events native prints the playback for programs")
	}
	id, err := a.Store().Known(ctx, fl.args[0])
	if err != nil {
		return err
	}
	records, err := a.Store().Log(ctx, id)
	if err != nil {
		return err
	}
	damage := a.Store().Damage(ctx, id)
	if _, err := a.Store().Verify(id); err != nil && len(a.Store().Unread()) == 0 {
		inv.warn(fmt.Sprintf("the record of session %s was changed, and may end early; see coder audit verify %[1]s", id))
	}
	n := cmp.Or(fl.until, len(records))
	switch {
	case n > len(records):
		return inputf("session %s has %d records", id, len(records))
	case fl.verify && damage != "" && fl.until == 0:
		return inputf("cannot tell whether session %s gives the same result: its record was changed (--until %d runs what is left of it)", id, len(records))
	case fl.verify:
		return inv.verify(ctx, a, id, records, n)
	}
	return inv.play(ctx, a, id, records[:n])
}

// verify reruns a session and reports the result.
func (inv *invocation) verify(ctx context.Context, a *app.Workspace, id string, records []event.Record, n int) error {
	report, err := a.Verify(ctx, id, records, n)
	if err != nil {
		return err
	}
	if inv.flags.json {
		err = inv.printJSON(report)
	} else {
		err = inv.tellRerun(id, report)
	}
	switch {
	case err != nil || report.Difference == nil:
		return err
	case report.Missing != "":
		return &exitError{code: ExitInput}
	}
	return &exitError{code: ExitError}
}

// tellRerun reports whether a rerun matched, otherwise with the first difference.
func (inv *invocation) tellRerun(name string, report *rerun.Report) error {
	title, body := inv.describeRerun(name, report)
	_, err := fmt.Fprint(inv.Stdout, title+"\n"+sanitize.Text(body))
	return err
}

// describeRerun returns the result of a rerun on one line, and the first difference: the call, its cause
// if known, and a diff.
func (inv *invocation) describeRerun(name string, report *rerun.Report) (title, body string) {
	d := report.Difference
	if d == nil {
		return inv.words.T(display.Form(report.Steps, "%s agrees: %d step, %d records, equal except for %s", "%s agrees: %d steps, %d records, equal except for %s"), oneLine(name), report.Steps, report.Records, inv.normalised()), ""
	}
	title = inv.words.T(display.Form(d.Agreement, "%s differs at step %d, record %d (%s), after %d matching record", "%s differs at step %d, record %d (%s), after %d matching records"), oneLine(name), d.Step, d.Record, inv.whatDiffers(d), d.Agreement)
	if report.Missing != "" {
		title = inv.words.T("cannot tell whether %s gives the same result: %s", oneLine(name), inv.words.T(report.Missing)) + "\n" +
			inv.words.T("the first difference: step %d, record %d (%s)", d.Step, d.Record, inv.whatDiffers(d))
	}
	if d.Call != "" {
		body += inv.words.T("call: %s", oneLine(d.About+" "+d.Call)) + "\n"
	}
	if cause := cmp.Or(oneLine(d.Cause), inv.words.T(rerunCauses[d.What])); cause != "" && report.Missing == "" {
		body += inv.words.T("cause: %s", cause) + "\n"
	}
	text, _, _ := patch.Unified(inv.words.T("record %d", d.Record), []byte(d.Was), []byte(d.Is))
	body += inv.shortDifference(text)
	if len(report.Unsure) > 0 {
		body += inv.words.T("changed since the session began, original content unknown: %s", oneLine(strings.Join(report.Unsure, ", "))) + "\n"
	}
	return title, body
}

// rerunCauses explains differences by kind.
var rerunCauses = map[string]string{
	"request": "the current prompt, rules or tools differ from the recorded ones",
	"result":  "the call gave another result twice, in the session's original files",
	"files":   "the call left other files twice, in the session's original files",
}

// maxDifference is how many lines of a difference are shown.
const maxDifference = 80

// shortDifference returns the beginning of a long difference, and how to see all of it.
func (inv *invocation) shortDifference(text string) string {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= maxDifference {
		return text
	}
	return strings.Join(lines[:maxDifference], "") + inv.words.T("… %d more lines; --json shows all", len(lines)-maxDifference) + "\n"
}

// normalised lists what may differ.
func (inv *invocation) normalised() string {
	var list []string
	for _, name := range alike.Names {
		list = append(list, inv.words.T(name))
	}
	if inv.words.Lang() == i18n.Chinese {
		return strings.Join(list, "、")
	}
	return strings.Join(list, ", ")
}

// whatDiffers describes what differs.
func (inv *invocation) whatDiffers(d *rerun.Difference) string {
	words := rerunWords[d.What]
	if strings.Contains(words, "%s") {
		return inv.words.T(words, oneLine(d.About))
	}
	return inv.words.T(words)
}

// rerunWords describes kinds of differences.
var rerunWords = map[string]string{
	"request": "the request to the model", "reply": "the model's reply", "decision": "the decision about %s", "question": "the question to the user",
	"result": "the result of %s", "files": "the files after %s", "course": "what happens next",
}

// play shows a session's records as they were shown, from the records alone.
func (inv *invocation) play(ctx context.Context, a *app.Workspace, id string, records []event.Record) error {
	_, _, person := inv.Terminal()
	if inv.flags.step && !person {
		return usagef("--step waits for Enter, so it needs a terminal")
	}
	if inv.flags.step {
		inv.warn("Enter shows the next step; q and Enter quits")
	}
	out, _ := inv.watcher(id)
	turns := a.Turns()
	pace := pace{speed: inv.flags.speed, still: !person && inv.flags.speed == 0 || inv.flags.events != ""}
	for _, r := range records {
		err := pace.wait(ctx, r.Time)
		if err == nil {
			err = out.Emit(ctx, r)
		}
		if face, ok := out.(*replay); ok && err == nil {
			if turn, ended := turns.Add(ctx, r); ended {
				err = face.face.Tell(turnLine{inv.words, inv.apart()}.of(turn))
			}
		}
		if err == nil && inv.flags.step && ends(r) {
			err = inv.next(ctx)
		}
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return &exitError{code: ExitInterrupted}
		case err != nil:
			return err
		}
	}
	return nil
}

// ends reports whether r ends a step for a viewer.
func ends(r event.Record) bool {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		return event.ByPerson(r) || e.Message.Role == chat.Assistant && e.Message.Text() != ""
	case event.ToolCallCompleted, event.InteractionRequested, event.LocalAdded, event.TaskFailed:
		return true
	}
	return false
}

// pace waits between records.
type pace struct {
	speed float64 // 0: as recorded, without long pauses
	still bool    // do not wait
	last  time.Time
}

// longestPause is the longest wait, unless the speed is given.
const longestPause = 1500 * time.Millisecond

func (p *pace) wait(ctx context.Context, at time.Time) error {
	pause := at.Sub(p.last)
	if p.last.IsZero() || p.still {
		pause = 0
	}
	p.last = at
	if p.speed > 0 {
		pause = time.Duration(float64(pause) / p.speed)
	} else {
		pause = min(pause, longestPause)
	}
	if pause <= 0 {
		return ctx.Err()
	}
	return clock.Sleep(ctx, pause)
}

// errEnough reports that the user ended the replay.
var errEnough = errors.New("enough")

// next waits for Enter; q ends the replay.
func (inv *invocation) next(ctx context.Context) error {
	line, err := inv.input.Line(ctx, promptLimit)
	if errors.Is(err, io.EOF) || strings.TrimSpace(line) == "q" {
		return errEnough
	}
	return err
}
