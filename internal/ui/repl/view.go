//go:build unix

package repl

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/ui/cells"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// Styles of the REPL's own output.
const (
	dim  = ink.Dim
	good = ink.Good
	warn = ink.Warn
	bad  = ink.Bad
)

// activityDelay is how long a turn may take before its activity is shown.
const activityDelay = time.Second

// outputDelay is how long a call may print before its output is shown.
const outputDelay = 250 * time.Millisecond

// maxRunningCalls is the most running calls listed.
const maxRunningCalls = 6

// draw shows the live block: a question's line, or the activity and the draft, or the prompt.
func (r *REPL) draw() error {
	r.updateTitle()
	return r.output.flushWith(r.liveRows)
}

// liveRows returns the rows of the live block, with the output ahead, and the cursor position.
func (r *REPL) liveRows(ahead term.PendingOutput) (rows []string, row, col int) {
	width, height := r.Terminal.Size()
	r.activeEditor().MenuRows = max(2, min(8, height-5)) // so that the draft is visible too
	switch {
	case r.question != nil:
		r.answer.Prompt = r.answerPrompt()
		rows := r.queueRows(width, max(2, height/3))
		if options := r.optionRows(height - minCardRows - len(rows)); len(options) > 0 {
			rows = slices.Concat([]string{""}, rows, options)
		}
		line, row, col := r.answer.View(width)
		line, row = r.visibleRows(line, row, width, height-len(rows))
		return append(rows, line...), len(rows) + row, col
	case r.picker != nil:
		return r.picker.View(width, height-1)
	case r.turn != nil:
		return r.turnRows(ahead, width, height)
	}
	r.editor.Prompt = r.promptSpans()
	return r.draftRows(width, height)
}

// draftRows returns the rows of the draft; below it are the keys if the draft is only a question mark, or
// what Esc would do.
func (r *REPL) draftRows(width, height int) (rows []string, row, col int) {
	rows, row, col = r.editor.View(width)
	rows, row = r.visibleRows(rows, row, width, height)
	switch {
	case r.KeyHelp != nil && r.editor.Text() == "?":
		rows = append(rows, r.keyHelpRows(width, max(1, height-1-len(rows)))...)
	case r.editor.IsNormalMode():
		rows = append(rows, r.Palette.Paint(dim, r.fitLine(r.Translator.T("NORMAL"), width)))
	case r.ctrlDPressed && r.turn != nil:
		rows = append(rows, r.Palette.Paint(dim, r.fitLine(stayText(r.Translator), width)))
	case r.escPressed:
		rows = append(rows, r.Palette.Paint(dim, r.fitLine(r.Translator.T("Esc again: rewind to an earlier message"), width)))
	}
	return rows, row, col
}

// visibleRows returns the rows that fit: those around the cursor, which state how many others there are.
func (r *REPL) visibleRows(rows []string, row, width, height int) ([]string, int) {
	height = max(height-1, 4) // keep one row of the output above
	first := min(max(row-1, 0), len(rows)-height)
	if len(rows) <= height {
		return rows, row
	}
	first = max(first, 0)
	seen := slices.Clone(rows[first : first+height])
	if first > 0 {
		seen[0] = r.Palette.Paint(dim, r.fitLine(r.Translator.T("%d more lines above", first+1), width))
	}
	if below := len(rows) - first - height; below > 0 {
		seen[height-1] = r.Palette.Paint(dim, r.fitLine(r.Translator.T("%d more lines below", below+1), width))
	}
	return seen, row - first
}

// stayText says why Ctrl+D does not leave.
func stayText(words term.Translator) string {
	return words.T("a turn is running: Esc stops it, Ctrl+C quits")
}

// keyHelpRows describes each key, in at most height rows.
func (r *REPL) keyHelpRows(width, height int) (rows []string) {
	all := r.KeyHelp()
	column := 0
	for _, k := range all {
		if width >= 60 { // otherwise there is no room for a column
			column = max(column, cells.Width(k[0]))
		}
	}
	for _, k := range all {
		rows = append(rows, r.Palette.Paint(dim, r.fitLine(k[0]+strings.Repeat(" ", max(0, column-cells.Width(k[0]))+2)+k[1],
			width)))
	}
	if len(rows) > height {
		rows = append(rows[:height-1], r.Palette.Paint(dim, r.fitLine(r.Translator.T("/keys lists all keys"), width)))
	}
	return rows
}

// updateTitle updates the window title when it changes.
func (r *REPL) updateTitle() {
	if now := [2]bool{r.question != nil, r.turn != nil}; r.SetTitle != nil && now != r.lastTitle {
		r.lastTitle = now
		r.SetTitle(now[0], now[1])
	}
}

// shortenDir returns a folder for the prompt after a mode, short enough to leave a fifth of the line for
// typing.
func shortenDir(dir string, width int, mode string, ascii bool) string {
	if width <= 0 {
		return dir
	}
	return cells.ShortenMiddle(dir, width-width/5-cells.Width(mode)-len("[] > "), ellipsis(ascii))
}

// headerLine is the line above the prompt, which is printed when it changed.
type headerLine struct{ current, last string }

// next is the line, or "" where it is the one that was printed last.
func (h *headerLine) next(line func() string) string {
	if line == nil {
		return ""
	}
	if h.current = line(); h.current == h.last {
		return ""
	}
	return h.current
}

// markPrinted notes that the line now stands in the stream.
func (h *headerLine) markPrinted() { h.last = h.current }

// promptSpans is what stands before the draft: a blank line, one that changed, and two that are always there.
func (r *REPL) promptSpans() []lineedit.Span {
	all := []lineedit.Span{{Text: "\n"}}
	model, mode := r.Status()
	width := r.width()
	if line := r.header.next(r.StatusLine); line != "" {
		all = append(all, lineedit.Span{Text: r.fitLine(sanitize.Line(line, 0), width) + "\n", Style: r.sgr(dim)})
	}
	bracketed := lineedit.Span{Text: "[" + mode + "]", Style: r.sgr(modeRole(mode))}
	if r.Compact {
		dir := cells.ShortenMiddle(sanitize.Line(filepath.Base(r.Dir), 0), max(8, width/3), ellipsis(r.ASCII))
		return append(all, bracketed, lineedit.Span{Text: " " + dir + "> ", Style: r.sgr(good)})
	}
	dir := shortenDir(sanitize.Line(r.Dir, 0), width, mode, r.ASCII)
	used := r.Session().ContextUsed()
	room := max(8, width-cells.Width(contextLine(r.ASCII, used, "")))
	model = r.fitLine(cells.ShortenMiddle(sanitize.Line(model, 80), room, ellipsis(r.ASCII)), room+1)
	// The wording of these two lines is fixed in every language.
	return append(all,
		lineedit.Span{Text: contextLine(r.ASCII, used, model) + "\n", Style: r.sgr(dim)},
		bracketed, lineedit.Span{Text: " " + dir + "> ", Style: r.sgr(good)},
	)
}

// answerPrompt returns the prompt of an answer.
func (r *REPL) answerPrompt() []lineedit.Span {
	return []lineedit.Span{{Text: "> ", Style: r.sgr(good)}}
}

// modeRole returns the style of a mode, which makes modes distinguishable, most of all those that only
// plan, edit without approval or never ask.
func modeRole(mode string) ink.Role {
	switch mode {
	case "plan":
		return ink.Done
	case "default":
		return ink.Tool
	case "auto-edit":
		return warn
	case "yolo":
		return bad
	}
	return good
}

// turnRows returns the rows shown during a turn: output pending at the end of a paragraph, the turn's
// activity, the queue and the draft.
func (r *REPL) turnRows(ahead term.PendingOutput, width, height int) (rows []string, row, col int) {
	if ahead.Table != "" {
		rows = strings.Split(ahead.Table, "\n")
		rows = rows[max(0, len(rows)-max(4, r.pendingRows()-ahead.LinesAbove)):] // the newest
	}
	rows = append(rows, r.aheadRows(ahead, width, max(4, r.pendingRows()-len(rows)))...)
	if len(rows) == 0 || rows[len(rows)-1] != "" {
		rows = append(rows, "") // between the stream and the rest
	}
	r.editor.Prompt = []lineedit.Span{{Text: "> ", Style: r.sgr(dim)}}
	draft, row, col := r.draftRows(width, height)
	room := max(2, height-1-len(rows)-min(len(draft), minDraftRows))
	waiting := r.queueRows(width, room)
	if took := r.Now().Sub(r.turn.started); took >= activityDelay || took >= outputDelay && r.hasOutput() {
		doing := r.activityRows(width, room-min(len(waiting), max(1, room/2)))
		rows = append(rows, doing...)
		room -= len(doing)
	}
	todos := r.todos(width, min(mostTodos, room-min(len(waiting), max(1, room/2))))
	rows = append(rows, todos...)
	room -= len(todos)
	if len(waiting) > room {
		waiting = r.queueRows(width, max(1, room))
	}
	rows = append(rows, waiting...)
	if most := height - 1; len(rows)+len(draft) >= most { // keep a row for the line being written
		draft, row, col = r.draftRows(width, most-len(rows))
	}
	return append(rows, draft...), len(rows) + row, col
}

// mostTodos is the most rows of todos shown during a turn.
const mostTodos = 8

// todos returns the list that the turn works on, in at most most rows.
func (r *REPL) todos(width, most int) []string {
	busy := r.activity.Load()
	if busy == nil {
		return nil
	}
	return busy.TodoRows(width, most, term.Options{Palette: r.Palette, Translator: r.Translator, ASCII: r.ASCII})
}

// minDraftRows is the number of a draft's rows that are always visible.
const minDraftRows = 4

// queueRows returns the messages and changes that the turn has not reached, in at most most rows.
func (r *REPL) queueRows(width, most int) (rows []string) {
	if r.turn == nil {
		return nil
	}
	add := func(text string) { rows = append(rows, r.Palette.Paint(dim, r.fitLine(text, width))) }
	if _, mode := r.Status(); r.turn.mode != "" && r.turn.mode != mode {
		add(r.Translator.T("mode %s from the next step", r.turn.mode))
	}
	queued := r.queue.list()
	for i, d := range queued {
		if more := len(queued) - i; more > 1 && len(rows) >= most-1 {
			add(r.Translator.T("queued: %d more", more))
			break
		}
		add(r.Translator.T("queued: %s", oneLine(d.String())))
	}
	return rows
}

// aheadRows returns the output pending at the end of a paragraph, at most most rows: the newest, if there
// are more.
func (r *REPL) aheadRows(ahead term.PendingOutput, width, most int) []string {
	if ahead.Waiting == "" {
		return nil
	}
	rows := strings.Split(ahead.Waiting, "\n")
	if len(rows) > most {
		rows = strings.Split(ahead.WaitingNewest, "\n")
	}
	if n := len(rows) - most + 1; n > 1 {
		rows = append(rows[:most-1], r.Palette.Paint(dim, r.fitLine(r.Translator.T("%d more lines follow", n), width)))
	}
	return slices.Concat([]string{""}, rows, []string{""})
}

// hasOutput reports whether a running call has printed something.
func (r *REPL) hasOutput() bool {
	busy := r.activity.Load()
	return busy != nil && slices.ContainsFunc(busy.Calls, func(c term.RunningCall) bool { return len(c.Tail) > 0 })
}

// activityRows returns the turn's activity, in at most most rows: the running calls, each with its time, or the
// last status.
func (r *REPL) activityRows(width, most int) (rows []string) {
	busy := r.activity.Load()
	if busy == nil {
		return nil
	}
	calls := busy.Calls
	if len(calls) == 0 {
		calls = []term.RunningCall{{Name: cmp.Or(busy.Text, r.Translator.T("working")), Since: r.turn.started}}
	}
	named := calls[:min(len(calls), maxRunningCalls, max(most, 1))]
	printed := most - len(named) // rows for their output
	f := spinnerFrames
	if r.ASCII {
		f = asciiSpinner
	}
	for i, c := range named {
		tail := c.Tail[max(0, len(c.Tail)-max(printed, 0)):]
		printed -= len(tail)
		for i, line := range tail {
			if i == len(tail)-1 && c.Incomplete { // its newest output is at the end
				line = ink.TruncateLeft(line, width-3, ellipsis(r.ASCII))
			}
			rows = append(rows, r.Palette.Paint(dim, r.fitLine("  "+line, width)))
		}
		took := r.Now().Sub(c.Since).Truncate(time.Second)
		say := func(name string) string {
			name = f[r.turn.frame%len(f)] + " " + name
			if c.Count != "" {
				name += separator(r.ASCII) + c.Count
			}
			switch {
			case i < len(named)-1:
				return name + separator(r.ASCII) + took.String()
			case i < len(calls)-1:
				return r.Translator.T("%s · %s · %d more · Esc stops it", name, took, len(calls)-len(named))
			}
			return r.Translator.T("%s · %s · Esc stops it", name, took)
		}
		rows = append(rows, r.Palette.Paint(dim, r.fitLine(say(r.fitLine(oneLine(c.Name), width-cells.Width(say("")))),
			width)))
	}
	return rows
}

var (
	spinnerFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	asciiSpinner  = []string{"-", "\\", "|", "/"}
)

func oneLine(s string) string { return sanitize.Line(s, 200) }

// fitLine cuts a line to the terminal's width.
func (r *REPL) fitLine(s string, width int) string {
	if width <= 1 || cells.Width(s) < width {
		return s
	}
	head, _ := cells.Truncate(s, width-1-cells.Width(ellipsis(r.ASCII)))
	return head + ellipsis(r.ASCII)
}

// ellipsis returns the sign for omitted text.
func ellipsis(ascii bool) string {
	if ascii {
		return "..."
	}
	return "…"
}

// contextLine returns the line above the prompt.
func contextLine(ascii bool, tokens int, model string) string {
	return fmt.Sprintf("context: %d tokens%smodel: %s", tokens, separator(ascii), model)
}

// separator returns the separator between the parts of a line.
func separator(ascii bool) string {
	if ascii {
		return ", "
	}
	return " · "
}

// sgr returns the escape sequence that starts a style.
func (r *REPL) sgr(role ink.Role) string {
	painted := r.Palette.Paint(role, "x")
	head, _, _ := strings.Cut(painted, "x")
	return head
}

func (r *REPL) editorStyle() lineedit.Style {
	return lineedit.Style{Paste: r.sgr(dim), Menu: r.sgr(dim), Selected: r.sgr(good), Note: r.sgr(dim), Search: r.sgr(dim),
		ASCII: r.ASCII}
}

// failureSink records whether a turn's error was shown when it happened.
type failureSink struct {
	event.Sink
	stopped  *atomic.Bool // by Esc
	errShown atomic.Bool
}

func (w *failureSink) Emit(ctx context.Context, rec event.Record) error {
	switch e := rec.Event.(type) {
	case event.TaskFailed, event.TaskCanceled, event.Interrupted:
		w.errShown.Store(true)
	case event.LocalAdded:
		if e.Failed {
			w.errShown.Store(true)
		}
	}
	if _, ok := rec.Event.(event.Interrupted); ok && !w.stopped.Load() {
		return nil // the program ends, so no message about Esc
	}
	return w.Sink.Emit(ctx, rec)
}

// outputBuffer buffers output for the loop to show, so that a stream of small pieces is drawn at most once per
// frame. It records when output last arrived.
type outputBuffer struct {
	screen *tty.Screen
	ready  chan struct{} // buffers one: there is something to show

	mu         sync.Mutex // guards the fields below and the order of writing
	buffered   []byte
	ahead      term.PendingOutput // the output that will follow
	flushCount int                // number of flushes
	changed    bool
	loopWaits  bool // a loop waits for ready
}

// maxBuffered is the most output buffered before the writer shows it itself.
const maxBuffered = 32 << 10

// add adds text, and the output that will follow it.
func (w *outputBuffer) add(text string, ahead term.PendingOutput) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" && ahead == w.ahead {
		return nil
	}
	w.buffered, w.ahead = append(w.buffered, text...), ahead
	w.changed = true
	if !w.loopWaits || len(w.buffered) > maxBuffered {
		return w.writeOut()
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
	return nil
}

// flush shows the buffered output.
func (w *outputBuffer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeOut()
}

func (w *outputBuffer) writeOut() error {
	if !w.changed {
		return nil
	}
	err := w.screen.Stream(string(w.buffered), w.ahead.Word)
	w.buffered, w.changed = w.buffered[:0], false
	w.flushCount++
	return err
}

// flushWith shows the buffered output together with its live block, which live makes from the output that
// will follow.
func (w *outputBuffer) flushWith(live func(term.PendingOutput) (rows []string, row, col int)) error {
	w.mu.Lock()
	ahead, n, shows := w.ahead, len(w.buffered), w.flushCount
	w.mu.Unlock()
	rows, row, col := live(ahead) // unlocked: live calls many functions
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flushCount != shows { // a writer has shown it meanwhile
		return w.screen.SetLive(rows, row, col)
	}
	err := w.screen.StreamLive(string(w.buffered[:n]), ahead.Word, rows, row, col)
	w.buffered = append(w.buffered[:0], w.buffered[n:]...)
	w.changed = len(w.buffered) > 0 || w.ahead != ahead
	return err
}

// setLoop sets whether a loop shows the output; otherwise it is shown at once.
func (w *outputBuffer) setLoop(on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loopWaits = on
	return w.writeOut()
}
