package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"coder/internal/ui/cells"

	"github.com/charmbracelet/x/vt"
)

// glass is a terminal as a person sees it. It looks at every byte it is sent:
// no other screen, no jumps, no way up beyond the block that is being edited,
// no control characters that mean something.
type glass struct {
	program  atomic.Pointer[os.File] // where replies go
	replying sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	emu    *vt.Emulator
	tail   string // the start of a sequence that has not ended
	sent   int    // bytes
	raw    string // the last of them
	codes  int    // sequences
	faults []string
}

// maxRaw bounds what is kept of the bytes sent.
const maxRaw = 1 << 20

func newGlass(cols, rows int) *glass {
	g := &glass{emu: vt.NewEmulator(cols, rows)}
	g.replying.Go(g.reply)
	return g
}

// reply sends on what the terminal says to the program.
func (g *glass) reply() {
	buf := make([]byte, 1024)
	for {
		n, err := g.emu.Read(buf)
		if err != nil {
			return
		}
		_, _ = g.program.Load().Write(buf[:n]) // it may be gone
	}
}

func (g *glass) close() {
	if w, ok := g.emu.InputPipe().(io.Closer); ok {
		_ = w.Close() // ends reply
	}
	g.replying.Wait()
}

// plug lets another program write, on a fresh line, as a shell would see to.
func (g *glass) plug(program *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.program.Store(program)
	if g.emu.CursorPosition().X > 0 {
		_, _ = g.emu.WriteString("\r\n")
	}
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent += len(p)
	if g.raw += string(p); len(g.raw) > maxRaw {
		g.raw = g.raw[len(g.raw)-maxRaw/2:]
	}
	text := g.tail + string(p)
	for text != "" {
		n := g.token(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	g.tail = text
	return len(p), nil
}

const escape = '\x1b'

// token takes one sequence, or text up to the next one; 0 if it has not ended.
func (g *glass) token(text string) int {
	if text[0] == escape {
		n := cells.EscapeLen(text)
		if n > 0 {
			g.sequence(text[:n])
		}
		return n
	}
	n := strings.IndexByte(text, escape)
	if n < 0 {
		n = len(text)
		for n > 0 && n > len(text)-utf8.UTFMax && !utf8.ValidString(text[n-1:]) && !utf8.FullRuneInString(lastRune(text[:n])) {
			n--
		}
	}
	for _, r := range text[:n] {
		if r < ' ' && !strings.ContainsRune("\r\n\t\a", r) || r >= 0x7f && r < 0xa0 {
			g.fault("sent the control character %q", r)
		}
	}
	_, _ = g.emu.WriteString(text[:n])
	return n
}

// lastRune is text from the start of its last character on.
func lastRune(text string) string {
	i := len(text) - 1
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return text[max(i, 0):]
}

// harmless are the only sequences the program sends besides links.
var harmless = regexp.MustCompile(`^\x1b\[(\d*A|\d*C|J|K|[\d;:]*m|>1u|<u|>4;[01]m|\?2026[hl]|\?(2004|1004)[hl]|\?(1|25|1000|1002|1003|1006|1049)[hl])$|^\x1b>$|^\x1b\]11;\?\x1b\\$|^\x1b\[2[23];0t$|^\x1b\]0;[^\x00-\x1f]*\x1b\\$|^\x1b\]52;c;[A-Za-z0-9+/=]+\x1b\\$|^\x1b\](9;|777;notify;coder;)[^\x00-\x1f]*\x1b\\$`)

func (g *glass) sequence(seq string) {
	g.codes++
	if !harmless.MatchString(seq) && !cells.IsLink(seq) {
		g.fault("sent %q", seq)
	}
	from := g.line()
	_, _ = g.emu.WriteString(seq)
	if seq[len(seq)-1] != 'A' || g.emu.CursorPosition().Y == 0 { // a tall block begins above the screen
		return
	}
	if top := g.top(from); g.line() < top {
		g.fault("the cursor went from line %d to %d, above %d: %q", from, g.line(), top, g.text(g.line()))
	}
}

func (g *glass) fault(format string, args ...any) {
	if len(g.faults) < 5 {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}

// How the first row of what is drawn again in place may look: the prompt, or
// rows that stand while something runs.
var (
	promptTop  = regexp.MustCompile(`^context: `)
	standing   = regexp.MustCompile(`^(\d+ jobs?|\d+ 个后台命令|mode \w+, branch.*)$`) // the line above it
	prompted   = regexp.MustCompile(`^\[[\w-]+\] .*> `)
	ended      = regexp.MustCompile(`^\[|^  [✓✗] `) // lines that are whole as soon as they are there
	options    = regexp.MustCompile(`\?(: why|：原因)$`)
	choice     = regexp.MustCompile(`^(> |  )\S`)
	runningTop = regexp.MustCompile(`^(> |>$|queued: |已排队|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] |[-\\|/] |[☑◐☐] |\d+ more todos)`)
)

// apart is the blank line above a block, which is a part of it.
func (g *glass) apart(line int) int {
	if line > 0 && g.text(line-1) == "" {
		line--
	}
	return line
}

// top is the first line of the block that line is in.
func (g *glass) top(line int) int {
	for bottom := line; line >= 0; line-- {
		text := g.text(line)
		if promptTop.MatchString(text) {
			if line > 0 && standing.MatchString(g.text(line-1)) {
				line--
			}
			return g.apart(line)
		}
		if runningTop.MatchString(text) {
			for line > 0 && runningTop.MatchString(g.text(line-1)) {
				line--
			}
			above := line
			for above > 0 && choice.MatchString(g.text(above-1)) {
				above--
			}
			if above == 0 || !prompted.MatchString(g.text(above-1)) { // else it is a menu below a draft
				for range 2 { // what runs, and above a blank line the line that is being written
					for line > 0 && g.text(line-1) != "" && !ended.MatchString(g.text(line-1)) {
						line--
					}
					for at := line; at <= bottom && line > 0; at++ {
						if options.MatchString(g.text(at)) { // of a card, and the blank line above them
							return line - 1
						}
					}
					line = g.apart(line)
				}
				if line > 0 && (strings.HasPrefix(g.text(line), "|") || strings.HasPrefix(g.text(line+1), "─")) { // a table, and the blank line above it
					line--
				}
				return line
			}
		}
	}
	return line + 1
}

// line is the line the cursor is in, counted from the first ever.
func (g *glass) line() int { return g.emu.ScrollbackLen() + g.emu.CursorPosition().Y }

// text is a line without its looks.
func (g *glass) text(line int) string { return g.row(line, false) }

// row is a line, counted from the first ever. A change of look is written as
// its codes in braces.
func (g *glass) row(line int, looks bool) string {
	var b strings.Builder
	look, back := "", g.emu.ScrollbackLen()
	for x := range g.emu.Width() {
		c := g.emu.ScrollbackCellAt(x, line)
		if line >= back {
			c = g.emu.CellAt(x, line-back)
		}
		if c == nil {
			b.WriteByte(' ')
			continue
		}
		if style := strings.Trim(c.Style.String(), "\x1b[m"); looks && style != look {
			fmt.Fprintf(&b, "{%s}", style)
			look = style
		}
		b.WriteString(c.Content)
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(b.String(), " "), "{}"), " ")
}

// all is every line ever shown.
func (g *glass) all(looks bool) (lines []string) {
	for i := range g.emu.ScrollbackLen() + g.emu.Height() {
		lines = append(lines, g.row(i, looks))
	}
	return lines
}

// picture is every line ever shown, a bar of tildes where the visible part
// begins, and a caret below the cursor. Empty rows at the bottom are taken for
// what scrolled away before them: how many there are depends on how tall the live
// block once was, and a clock in it is wider on a slow machine.
func (g *glass) picture(looks bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	lines, back := g.all(looks), g.emu.ScrollbackLen()
	at := g.emu.CursorPosition()
	last := back + at.Y
	for i, line := range lines {
		if line != "" {
			last = max(last, i)
		}
	}
	top := max(0, last+1-g.emu.Height())
	var b strings.Builder
	for i, line := range lines {
		if i == top && top > 0 {
			b.WriteString("~~~~\n")
		}
		b.WriteString(line + "\n")
		if i == back+at.Y {
			b.WriteString(strings.Repeat(" ", at.X) + "^\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// count is how often text is on the glass, line ends and blanks aside.
func (g *glass) count(text string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Count(dense(strings.Join(g.all(false), "")), dense(text))
}

// dense is text without blanks, so that it does not matter where a terminal
// wrapped it.
func dense(text string) string { return strings.Join(strings.Fields(text), "") }

var awaiting = regexp.MustCompile(`^\[[\w-]+\] .*>$`)

// idle reports whether the last line is a prompt with nothing typed.
func (g *glass) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	line, at := g.line(), g.emu.CursorPosition()
	text := g.text(line)
	return awaiting.MatchString(text) && at.X == cells.Width(text)+1
}

func (g *glass) received() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

// resize does what a terminal without reflow does: lines are cut, and what no
// longer fits goes into the scrollback.
func (g *glass) resize(cols, rows int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if over := g.emu.CursorPosition().Y - (rows - 1); over > 0 {
		fmt.Fprintf(g.emu, "\x1b[%dS\x1b[%dA", over, over)
	}
	g.emu.Resize(cols, rows)
}

// plain reports whether nothing but text was ever sent.
func (g *glass) plain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.codes == 0
}

func (g *glass) wrong() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults
}
