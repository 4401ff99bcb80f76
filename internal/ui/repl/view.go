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

// patience is how long a turn may take before its activity is shown.
const patience = time.Second

// outputPatience is how long a call may print before its output is shown.
const outputPatience = 250 * time.Millisecond

// maxRunning is the most running calls listed.
const maxRunning = 6

// draw shows the live block: a question's line, or the activity and the draft, or the prompt.
func (r *REPL) draw() error {
	r.title()
	return r.wrote.showWith(r.live)
}

// live returns the rows of the live block, with the output ahead, and the cursor position.
func (r *REPL) live(ahead term.Ahead) (rows []string, row, col int) {
	width, height := r.Terminal.Size()
	r.line().MenuRows = max(2, min(8, height-5)) // so that the draft is visible too
	switch {
	case r.open != nil:
		r.answer.Prompt = r.answerPrompt()
		rows := r.waiting(width, max(2, height/3))
		if options := r.options(height - leastCard - len(rows)); len(options) > 0 {
			rows = slices.Concat([]string{""}, rows, options)
		}
		line, row, col := r.answer.View(width)
		line, row = r.around(line, row, width, height-len(rows))
		return append(rows, line...), len(rows) + row, col
	case r.picker != nil:
		return r.picker.View(width, height-1)
	case r.turn != nil:
		return r.underway(ahead, width, height)
	}
	r.editor.Prompt = r.prompt()
	return r.draft(width, height)
}

// draft returns the rows of the draft; below it are the keys if the draft is only a question mark, or
// what Esc would do.
func (r *REPL) draft(width, height int) (rows []string, row, col int) {
	rows, row, col = r.editor.View(width)
	rows, row = r.around(rows, row, width, height)
	switch {
	case r.Keys != nil && r.editor.Text() == "?":
		rows = append(rows, r.keys(width, max(1, height-1-len(rows)))...)
	case r.editor.Normal():
		rows = append(rows, r.Palette.Paint(dim, r.fit(r.Words.T("NORMAL"), width)))
	case r.stays && r.turn != nil:
		rows = append(rows, r.Palette.Paint(dim, r.fit(staying(r.Words), width)))
	case r.escaped:
		rows = append(rows, r.Palette.Paint(dim, r.fit(r.Words.T("Esc again: rewind to an earlier message"), width)))
	}
	return rows, row, col
}

// around returns the rows that fit: those around the cursor, which state how many others there are.
func (r *REPL) around(rows []string, row, width, height int) ([]string, int) {
	height = max(height-1, 4) // keep one row of the output above
	first := min(max(row-1, 0), len(rows)-height)
	if len(rows) <= height {
		return rows, row
	}
	first = max(first, 0)
	seen := slices.Clone(rows[first : first+height])
	if first > 0 {
		seen[0] = r.Palette.Paint(dim, r.fit(r.Words.T("%d more lines above", first+1), width))
	}
	if below := len(rows) - first - height; below > 0 {
		seen[height-1] = r.Palette.Paint(dim, r.fit(r.Words.T("%d more lines below", below+1), width))
	}
	return seen, row - first
}

// staying says why Ctrl+D does not leave.
func staying(words term.Words) string {
	return words.T("a turn is running: Esc stops it, Ctrl+C quits")
}

// keys describes each key, in at most height rows.
func (r *REPL) keys(width, height int) (rows []string) {
	all := r.Keys()
	column := 0
	for _, k := range all {
		if width >= 60 { // otherwise there is no room for a column
			column = max(column, cells.Width(k[0]))
		}
	}
	for _, k := range all {
		rows = append(rows, r.Palette.Paint(dim, r.fit(k[0]+strings.Repeat(" ", max(0, column-cells.Width(k[0]))+2)+k[1], width)))
	}
	if len(rows) > height {
		rows = append(rows[:height-1], r.Palette.Paint(dim, r.fit(r.Words.T("/keys lists all keys"), width)))
	}
	return rows
}

// title updates the window title when it changes.
func (r *REPL) title() {
	if now := [2]bool{r.open != nil, r.turn != nil}; r.Title != nil && now != r.told {
		r.told = now
		r.Title(now[0], now[1])
	}
}

// shortened returns a folder for the prompt after a mode, short enough to leave a fifth of the line for
// typing.
func shortened(dir string, width int, mode string, ascii bool) string {
	if width <= 0 {
		return dir
	}
	return cells.Middle(dir, width-width/5-cells.Width(mode)-len("[] > "), dots(ascii))
}

// head is the line above the prompt, which is printed when it changed.
type head struct{ now, last string }

// next is the line, or "" where it is the one that was printed last.
func (h *head) next(line func() string) string {
	if line == nil {
		return ""
	}
	if h.now = line(); h.now == h.last {
		return ""
	}
	return h.now
}

// printed notes that the line now stands in the stream.
func (h *head) printed() { h.last = h.now }

// prompt is what stands before the draft: a blank line, one that changed, and two that are always there.
func (r *REPL) prompt() []lineedit.Span {
	all := []lineedit.Span{{Text: "\n"}}
	model, mode := r.Status()
	width := r.width()
	if line := r.above.next(r.Above); line != "" {
		all = append(all, lineedit.Span{Text: r.fit(sanitize.Line(line, 0), width) + "\n", Style: r.sgr(dim)})
	}
	bracketed := lineedit.Span{Text: "[" + mode + "]", Style: r.sgr(modeLook(mode))}
	if r.Compact {
		dir := cells.Middle(sanitize.Line(filepath.Base(r.Dir), 0), max(8, width/3), dots(r.ASCII))
		return append(all, bracketed, lineedit.Span{Text: " " + dir + "> ", Style: r.sgr(good)})
	}
	dir := shortened(sanitize.Line(r.Dir, 0), width, mode, r.ASCII)
	used := r.Session().ContextUsed()
	room := max(8, width-cells.Width(contextLine(r.ASCII, used, "")))
	model = r.fit(cells.Middle(sanitize.Line(model, 80), room, dots(r.ASCII)), room+1)
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

// modeLook returns the style of a mode, which makes modes distinguishable, most of all those that only
// plan, edit without approval or never ask.
func modeLook(mode string) ink.Role {
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

// underway returns the rows shown during a turn: output pending at the end of a paragraph, the turn's
// activity, the queue and the draft.
func (r *REPL) underway(ahead term.Ahead, width, height int) (rows []string, row, col int) {
	if ahead.Table != "" {
		rows = strings.Split(ahead.Table, "\n")
		rows = rows[max(0, len(rows)-max(4, r.room()-ahead.Above)):] // the newest
	}
	rows = append(rows, r.beside(ahead, width, max(4, r.room()-len(rows)))...)
	if len(rows) == 0 || rows[len(rows)-1] != "" {
		rows = append(rows, "") // between the stream and the rest
	}
	r.editor.Prompt = []lineedit.Span{{Text: "> ", Style: r.sgr(dim)}}
	draft, row, col := r.draft(width, height)
	room := max(2, height-1-len(rows)-min(len(draft), leastDraft))
	waiting := r.waiting(width, room)
	if took := r.Now().Sub(r.turn.began); took >= patience || took >= outputPatience && r.printing() {
		doing := r.doing(width, room-min(len(waiting), max(1, room/2)))
		rows = append(rows, doing...)
		room -= len(doing)
	}
	todos := r.todos(width, min(mostTodos, room-min(len(waiting), max(1, room/2))))
	rows = append(rows, todos...)
	room -= len(todos)
	if len(waiting) > room {
		waiting = r.waiting(width, max(1, room))
	}
	rows = append(rows, waiting...)
	if most := height - 1; len(rows)+len(draft) >= most { // keep a row for the line being written
		draft, row, col = r.draft(width, most-len(rows))
	}
	return append(rows, draft...), len(rows) + row, col
}

// mostTodos is the most rows of todos shown during a turn.
const mostTodos = 8

// todos returns the list that the turn works on, in at most most rows.
func (r *REPL) todos(width, most int) []string {
	busy := r.busy.Load()
	if busy == nil {
		return nil
	}
	return busy.TodoRows(width, most, term.Options{Palette: r.Palette, Words: r.Words, ASCII: r.ASCII})
}

// leastDraft is the number of a draft's rows that are always visible.
const leastDraft = 4

// waiting returns the messages and changes that the turn has not reached, in at most most rows.
func (r *REPL) waiting(width, most int) (rows []string) {
	if r.turn == nil {
		return nil
	}
	add := func(text string) { rows = append(rows, r.Palette.Paint(dim, r.fit(text, width))) }
	if _, mode := r.Status(); r.turn.mode != "" && r.turn.mode != mode {
		add(r.Words.T("mode %s from the next step", r.turn.mode))
	}
	queued := r.queue.waiting()
	for i, d := range queued {
		if more := len(queued) - i; more > 1 && len(rows) >= most-1 {
			add(r.Words.T("queued: %d more", more))
			break
		}
		add(r.Words.T("queued: %s", oneLine(d.String())))
	}
	return rows
}

// beside returns the output pending at the end of a paragraph, at most most rows: the newest, if there
// are more.
func (r *REPL) beside(ahead term.Ahead, width, most int) []string {
	if ahead.Aside == "" {
		return nil
	}
	rows := strings.Split(ahead.Aside, "\n")
	if len(rows) > most {
		rows = strings.Split(ahead.Newest, "\n")
	}
	if n := len(rows) - most + 1; n > 1 {
		rows = append(rows[:most-1], r.Palette.Paint(dim, r.fit(r.Words.T("%d more lines follow", n), width)))
	}
	return slices.Concat([]string{""}, rows, []string{""})
}

// printing reports whether a running call has printed something.
func (r *REPL) printing() bool {
	busy := r.busy.Load()
	return busy != nil && slices.ContainsFunc(busy.Calls, func(c term.Running) bool { return len(c.Tail) > 0 })
}

// doing returns the turn's activity, in at most most rows: the running calls, each with its time, or the
// last status.
func (r *REPL) doing(width, most int) (rows []string) {
	busy := r.busy.Load()
	if busy == nil {
		return nil
	}
	calls := busy.Calls
	if len(calls) == 0 {
		calls = []term.Running{{Name: cmp.Or(busy.What, r.Words.T("working")), Since: r.turn.began}}
	}
	named := calls[:min(len(calls), maxRunning, max(most, 1))]
	printed := most - len(named) // rows for their output
	f := frames
	if r.ASCII {
		f = asciiFrames
	}
	for i, c := range named {
		tail := c.Tail[max(0, len(c.Tail)-max(printed, 0)):]
		printed -= len(tail)
		for i, line := range tail {
			if i == len(tail)-1 && c.Open { // its newest output is at the end
				line = ink.End(line, width-3, dots(r.ASCII))
			}
			rows = append(rows, r.Palette.Paint(dim, r.fit("  "+line, width)))
		}
		took := r.Now().Sub(c.Since).Truncate(time.Second)
		say := func(name string) string {
			name = f[r.turn.frame%len(f)] + " " + name
			if c.Count != "" {
				name += apart(r.ASCII) + c.Count
			}
			switch {
			case i < len(named)-1:
				return name + apart(r.ASCII) + took.String()
			case i < len(calls)-1:
				return r.Words.T("%s · %s · %d more · Esc stops it", name, took, len(calls)-len(named))
			}
			return r.Words.T("%s · %s · Esc stops it", name, took)
		}
		rows = append(rows, r.Palette.Paint(dim, r.fit(say(r.fit(oneLine(c.Name), width-cells.Width(say("")))), width)))
	}
	return rows
}

var (
	frames      = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	asciiFrames = []string{"-", "\\", "|", "/"}
)

func oneLine(s string) string { return sanitize.Line(s, 200) }

// fit cuts a line to the terminal's width.
func (r *REPL) fit(s string, width int) string {
	if width <= 1 || cells.Width(s) < width {
		return s
	}
	head, _ := cells.Cut(s, width-1-cells.Width(dots(r.ASCII)))
	return head + dots(r.ASCII)
}

// dots returns the sign for omitted text.
func dots(ascii bool) string {
	if ascii {
		return "..."
	}
	return "…"
}

// contextLine returns the line above the prompt.
func contextLine(ascii bool, tokens int, model string) string {
	return fmt.Sprintf("context: %d tokens%smodel: %s", tokens, apart(ascii), model)
}

// apart returns the separator between the parts of a line.
func apart(ascii bool) string {
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

func (r *REPL) style() lineedit.Style {
	return lineedit.Style{Paste: r.sgr(dim), Menu: r.sgr(dim), Chosen: r.sgr(good), Note: r.sgr(dim), Search: r.sgr(dim), ASCII: r.ASCII}
}

// failureSink records whether a turn's error was shown when it happened.
type failureSink struct {
	event.Sink
	stopped *atomic.Bool // by Esc
	told    atomic.Bool
}

func (w *failureSink) Emit(ctx context.Context, rec event.Record) error {
	switch e := rec.Event.(type) {
	case event.TaskFailed, event.TaskCanceled, event.Interrupted:
		w.told.Store(true)
	case event.LocalAdded:
		if e.Failed {
			w.told.Store(true)
		}
	}
	if _, ok := rec.Event.(event.Interrupted); ok && !w.stopped.Load() {
		return nil // the program ends, so no message about Esc
	}
	return w.Sink.Emit(ctx, rec)
}

// writes buffers output for the loop to show, so that a stream of small pieces is drawn at most once per
// frame. It records when output last arrived.
type writes struct {
	screen *tty.Screen
	ready  chan struct{} // buffers one: there is something to show

	mu      sync.Mutex // guards the fields below and the order of writing
	held    []byte
	ahead   term.Ahead // the output that will follow
	shows   int        // number of flushes
	changed bool
	looped  bool // a loop waits for ready
}

// maxHeld is the most output buffered before the writer shows it itself.
const maxHeld = 32 << 10

// stream adds text, and the output that will follow it.
func (w *writes) stream(text string, ahead term.Ahead) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" && ahead == w.ahead {
		return nil
	}
	w.held, w.ahead = append(w.held, text...), ahead
	w.changed = true
	if !w.looped || len(w.held) > maxHeld {
		return w.show()
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
	return nil
}

// flush shows the buffered output.
func (w *writes) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.show()
}

func (w *writes) show() error {
	if !w.changed {
		return nil
	}
	err := w.screen.Stream(string(w.held), w.ahead.Begun)
	w.held, w.changed = w.held[:0], false
	w.shows++
	return err
}

// showWith shows the buffered output together with its live block, which live makes from the output that
// will follow.
func (w *writes) showWith(live func(term.Ahead) (rows []string, row, col int)) error {
	w.mu.Lock()
	ahead, n, shows := w.ahead, len(w.held), w.shows
	w.mu.Unlock()
	rows, row, col := live(ahead) // unlocked: live calls many functions
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shows != shows { // a writer has shown it meanwhile
		return w.screen.SetLive(rows, row, col)
	}
	err := w.screen.StreamLive(string(w.held[:n]), ahead.Begun, rows, row, col)
	w.held = append(w.held[:0], w.held[n:]...)
	w.changed = len(w.held) > 0 || w.ahead != ahead
	return err
}

// loop sets whether a loop shows the output; otherwise it is shown at once.
func (w *writes) loop(on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looped = on
	return w.show()
}
