package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/stdio"
	"coder/internal/ui/i18n"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/tty"
)

// console asks you for lines, choices and secrets outside a session. Lists have arrows at a terminal,
// and numbers in plain lines, in a pipe and in tests.
type console struct {
	printer  *i18n.Printer
	out      io.Writer
	in       *stdio.Reader // nil if nobody can answer
	keyboard *os.File      // the terminal that in reads, if it is one
	tty      *os.File      // the terminal that out writes to, if it is one
	ascii    bool
	noRedraw bool // never redraw
	palette  term.Palette
	onStuck  func(func()) // sets how to restore the terminal if the program hangs; may be nil
}

// errNoAnswer reports that the input ended without an answer.
var errNoAnswer = errors.New("no answer")

// terminalConsole returns a console that asks at the terminal; nil without one.
func (inv *invocation) terminalConsole(ctx context.Context) *console {
	in, out, ok := inv.Terminal()
	if !ok {
		return nil
	}
	return inv.newConsole(stdio.NewReader(in), stdio.NewWriter(ctx, out), in, out)
}

// newConsole returns a console for an open terminal.
func (inv *invocation) newConsole(lines *stdio.Reader, printer io.Writer, in, out *os.File) *console {
	c := &console{printer: inv.printer, out: printer, in: lines, keyboard: in, tty: out, ascii: inv.useASCII(),
		noRedraw: inv.isLineMode(), palette: inv.palette(true)}
	if inv.shutdown != nil {
		c.onStuck = inv.shutdown.setRestore
	}
	return c
}

// printLines prints lines, with keys masked.
func (c *console) printLines(lines ...string) {
	fmt.Fprintln(c.out, ink.FoldText(sanitize.Mask(strings.Join(lines, "\n")), c.columnCount()))
}

func (c *console) printTable(t display.Table) {
	text := display.Blocks{t}.Translate(c.printer.TranslateText, ink.Width)
	if wide := c.columnCount(); wide > 0 {
		text = term.RenderText(display.Blocks{t}, wide-2, term.Options{Translator: c.printer, ASCII: c.ascii})
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(c.out, "  "+line)
	}
}

// columnCount returns the current columns; 0: unlimited.
func (c *console) columnCount() int {
	if c.tty == nil {
		return 0
	}
	return terminalWidth(c.tty)
}

// wrapQuestion wraps a question to width, ending in the space before the answer.
func wrapQuestion(question string, width int) string {
	words := strings.TrimRight(question, " ")
	return ink.FoldText(words, width) + question[len(words):]
}

// keysUnsupportedHint is shown after keys that are not characters.
const keysUnsupportedHint = "arrows and similar keys do nothing here: type the answer"

// hasEscapeKeys reports whether a line contains keys that are not characters: the terminal sends them as
// escape sequences.
func hasEscapeKeys(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// askLine asks for one line.
func (c *console) askLine(ctx context.Context, question string) (string, error) {
	for {
		fmt.Fprint(c.out, wrapQuestion(question, c.columnCount()))
		line, err := c.readLine(ctx)
		if err != nil {
			fmt.Fprintln(c.out)
			return "", err
		}
		if !hasEscapeKeys(line) {
			return line, nil
		}
		c.printLines(c.printer.T(keysUnsupportedHint))
	}
}

func (c *console) readLine(ctx context.Context) (string, error) {
	line, err := c.in.ReadLine(ctx, maxPromptBytes)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", errNoAnswer
	}
	return strings.TrimSpace(line), nil
}

// askSecret asks for a line that the terminal neither shows nor saves.
func (c *console) askSecret(ctx context.Context, question string) (string, error) {
	fmt.Fprint(c.out, wrapQuestion(question, c.columnCount()))
	if c.keyboard != nil {
		show, err := tty.DisableEcho(c.keyboard)
		if err != nil {
			return "", message.Errorf("ask for the key: %w", err)
		}
		again := func() { _ = show() } // a lost terminal shows nothing
		defer again()
		if c.onStuck != nil {
			c.onStuck(again)
		}
	}
	line, err := c.readLine(ctx)
	fmt.Fprintln(c.out)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(sanitize.Text(line)), nil
}

// confirm asks a yes-or-no question. No answer means no.
func (c *console) confirm(ctx context.Context, question string, byDefault bool) (bool, error) {
	for {
		line, err := c.askLine(ctx, question)
		if errors.Is(err, errNoAnswer) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		switch answer := strings.ToLower(line); {
		case answer == "":
			return byDefault, nil
		case slices.Contains([]string{"y", "yes", "是", "好"}, answer):
			return true, nil
		case slices.Contains([]string{"n", "no", "q", "quit", "exit", "否", "不"}, answer):
			return false, nil
		}
		c.printLines(c.printer.T("answer %s", "y, n"))
	}
}

// choose lets you choose from a list: with arrows, by number, or by words. Enter accepts the highlighted
// item. It returns errNoAnswer if you leave the list.
func (c *console) choose(ctx context.Context, p lineedit.Picker) (value string, err error) {
	p.Numbered = true
	if c.keyboard == nil || c.tty == nil || c.noRedraw {
		return c.chooseByLine(ctx, p)
	}
	paint := func(r ink.Role) string { head, _, _ := strings.Cut(c.palette.Paint(r, "x"), "x"); return head }
	p.Style = lineedit.Style{Menu: "", Selected: paint(ink.Good), Note: paint(ink.Dim), Search: "", ASCII: c.ascii}
	p.Help, p.EmptyText = c.printer.T("a number, or Up, Down and Enter · type to search · Esc leaves"),
		c.printer.T("nothing matches")
	keys, err := tty.Open(c.keyboard, c.tty, tty.Options{Writer: c.out})
	if err != nil {
		return "", message.Errorf("open the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	if c.onStuck != nil {
		c.onStuck(func() { _ = keys.Restore() }) // no one is left to see an error
	}
	if err := keys.SetRaw(); err != nil {
		return "", message.Errorf("open the terminal: %w", err)
	}
	l := openList{picker: &p, keyboard: keys, screen: tty.NewScreen(c.out, keys.Size, tty.ScreenOptions{}),
		printer: c.printer}
	return l.run(ctx)
}

// chooseByLine prints the list with numbers and asks for a line.
func (c *console) chooseByLine(ctx context.Context, p lineedit.Picker) (string, error) {
	first, items := p.Selected(), p.Items
	for {
		var t display.Table
		for i, item := range items[:min(len(items), maxShownItems)] {
			t.Rows = append(t.Rows, display.DataCells(strconv.Itoa(i+1), item.Text, item.Note))
		}
		c.printTable(t)
		if more := len(items) - maxShownItems; more > 0 {
			c.printLines(c.printer.T("and %d more; type part of a name to filter them", more))
		}
		answer, err := c.askLine(ctx, c.printer.T("%s (a number or words) [%d]: ", strings.TrimRight(p.Title, ":： "),
			first+1))
		if err != nil {
			return "", err
		}
		n, notNumber := strconv.Atoi(answer)
		switch found := p.Find(answer); {
		case answer == "" && len(items) > 0:
			return items[first].Value, nil
		case notNumber == nil && n >= 1 && n <= len(items):
			return items[n-1].Value, nil
		case notNumber == nil:
			c.printLines(c.printer.T(display.Plural(len(items), "the only number is %d", "the last number is %d"), len(items)))
		case len(found) == 0:
			c.printLines(c.printer.T("nothing matches"))
			first, items = 0, p.Items
		case len(found) == 1, strings.TrimSpace(found[0].Text) == answer:
			return found[0].Value, nil
		default:
			first, items = 0, found
		}
	}
}

// maxShownItems is the most items of a list printed at a time.
const maxShownItems = 20

// openList is an open list at a terminal.
type openList struct {
	picker   *lineedit.Picker
	keyboard *tty.Terminal
	screen   *tty.Screen
	printer  *i18n.Printer
}

// run lets you choose, and leaves one line that shows the choice.
func (l *openList) run(ctx context.Context) (value string, err error) {
	defer func() { err = errors.Join(err, l.screen.SetLive(nil, 0, 0)) }()
	for {
		cols, rows := l.keyboard.Size()
		if err := l.screen.SetLive(l.picker.View(cols, max(3, rows-2))); err != nil {
			return "", err
		}
		batch, err := l.keyboard.Read(ctx)
		if errors.Is(err, io.EOF) {
			return "", errNoAnswer
		}
		if err != nil {
			return "", err
		}
		for _, e := range batch {
			if value, done, err := l.handleEvent(e); done || err != nil {
				return value, err
			}
		}
	}
}

func (l *openList) handleEvent(e tty.Event) (value string, done bool, err error) {
	switch e := e.(type) {
	case tty.Paste:
		l.picker.Paste(e.Text)
	case tty.Resumed:
		return "", false, l.screen.Show()
	case tty.Key:
		switch a := l.picker.HandleKey(lineedit.Key(e)); a.Kind {
		case lineedit.Submit:
			return a.Text, true, l.screen.Print(l.picker.Title + l.picker.Label(a.Text) + "\n")
		case lineedit.Cancel, lineedit.EOF:
			return "", true, errNoAnswer
		case lineedit.Interrupt:
			return "", true, &exitError{code: ExitInterrupted}
		case lineedit.Suspend:
			return "", false, errors.Join(l.screen.Hide(), l.keyboard.Suspend())
		case lineedit.Redraw:
			return "", false, l.screen.Clear()
		}
	}
	return "", false, nil
}
