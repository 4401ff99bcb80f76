//go:build unix

package repl

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"unicode"

	"coder/internal/ui/cells"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/tty"
)

// keyboard turns key presses at a [Page] into lines.
type keyboard struct {
	terminal     *tty.Terminal
	screen       *LineScreen
	inputs       chan input       // closed when no more input can come
	lendRequests chan lendRequest // requests for the terminal
	prefill      <-chan string    // text to show as if typed
	keepsText    func() bool      // reports whether Esc keeps the typed text
	currentLine  atomic.Value     // the line as a string, for other goroutines

	line   []byte
	typing bool
	pasted bool // a part of the line was pasted with several lines
}

// input is what the user did.
type input struct {
	kind        inputKind
	line        string
	afterPrompt bool // typed after the prompt; otherwise begun before it
	outputBelow bool // something was printed below the line before it was read
	// pasted means that part of it was pasted with several lines.
	pasted bool
}

// draft returns the line as a draft, as one paste if part of it was pasted.
func (h input) draft() lineedit.Draft {
	if h.pasted {
		return lineedit.NewDraft(h.line, []string{h.line})
	}
	return lineedit.NewDraft(h.line, nil)
}

type inputKind uint8

const (
	inputLine      inputKind = iota // a line
	inputEsc                        // Esc
	inputEOF                        // Ctrl+D on an empty line
	inputInterrupt                  // Ctrl+C
)

// listen reads keys until ctx ends or the input ends.
func (k *keyboard) listen(ctx context.Context) {
	defer close(k.inputs)
	for {
		batch, away, err := k.readBatch(ctx)
		if err == nil && away != nil {
			err = k.lend(*away)
		}
		if err != nil {
			return
		}
		for _, e := range batch {
			paste, _ := e.(tty.Paste)
			several := strings.ContainsAny(strings.TrimRight(paste.Text, "\r\n"), "\r\n")
			for _, key := range eventKeys(e) {
				k.pasted = k.pasted || several
				h, ok := k.handleKey(key)
				k.currentLine.Store(string(k.line))
				if !ok {
					continue
				}
				select {
				case k.inputs <- h:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// readBatch reads keys until a batch is complete or the terminal is requested.
func (k *keyboard) readBatch(ctx context.Context) (batch []tty.Event, away *lendRequest, err error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		batch, err = k.terminal.Read(reading)
	}()
	select {
	case <-done:
		return batch, nil, err
	case l := <-k.lendRequests:
		stop()
		<-done
		return batch, &l, nil
	case text := <-k.prefill:
		stop()
		<-done
		if len(k.line) > 0 {
			text = "\n" + text
		}
		k.addText(text)
		k.currentLine.Store(string(k.line))
		return batch, nil, nil
	}
}

// lend lends the terminal and waits until it is back.
func (k *keyboard) lend(l lendRequest) error {
	if err := k.terminal.Restore(); err != nil {
		close(l.refused)
		return err
	}
	close(l.ready)
	<-l.returned
	if err := k.terminal.SetRaw(); err != nil {
		return err
	}
	if k.typing {
		k.screen.showTyped(displayText(k.line), displayText(k.line))
	}
	return nil
}

// eventKeys returns an event's keys. Pasted text counts as typed.
func eventKeys(e tty.Event) (keys []lineedit.Key) {
	switch e := e.(type) {
	case tty.Key:
		return []lineedit.Key{lineedit.Key(e)}
	case tty.Paste:
		for _, r := range strings.ReplaceAll(e.Text, "\r\n", "\n") {
			if r == '\n' || r == '\r' {
				keys = append(keys, lineedit.Key{Name: lineedit.Enter})
			} else if r == '\t' || !unicode.IsControl(r) {
				keys = append(keys, lineedit.RuneKey(r))
			}
		}
	}
	return keys
}

// handleKey handles a key, and returns what the user did if it is more than typing. Keys that move the cursor
// do nothing.
func (k *keyboard) handleKey(key lineedit.Key) (input, bool) {
	switch key {
	case lineedit.Key{Name: lineedit.Enter}, lineedit.CtrlKey('j'):
		return k.takeLine()
	case lineedit.Key{Name: lineedit.Escape}:
		if k.keepsText() {
			k.screen.allowInterrupt()
			return input{kind: inputEsc}, true
		}
		line := string(k.line)
		k.erase(0)
		return input{kind: inputEsc, line: line}, true
	case lineedit.CtrlKey('c'):
		return input{kind: inputInterrupt}, true
	case lineedit.CtrlKey('d'):
		return input{kind: inputEOF}, len(k.line) == 0
	case lineedit.CtrlKey('z'):
		_ = k.terminal.Suspend() // continue where it is not supported
		k.screen.showTyped(displayText(k.line), displayText(k.line))
	case lineedit.Key{Name: lineedit.Backspace}, lineedit.CtrlKey('h'):
		k.erase(len(k.line) - len(lastVisible(string(k.line))))
	case lineedit.CtrlKey('w'):
		k.erase(bytes.LastIndexByte(bytes.TrimRight(k.line, " "), ' ') + 1)
	case lineedit.CtrlKey('u'):
		k.erase(0)
	case lineedit.Key{Name: lineedit.Tab}:
		k.addText("\t")
	default:
		if key.Name == lineedit.Char && key.Mod == 0 && key.Rune != 0 {
			k.addText(string(key.Rune))
		}
	}
	return input{}, false
}

func (k *keyboard) addText(text string) {
	if !k.typing {
		k.typing = true
		k.screen.startLine()
	}
	if len(k.line) > maxLine {
		return
	}
	k.line = append(k.line, text...)
	k.screen.showTyped(displayText([]byte(text)), displayText(k.line))
}

// erase deletes typed text from byte to on. If nothing is left, waiting output is printed.
func (k *keyboard) erase(to int) {
	if !k.typing {
		return
	}
	k.screen.eraseTyped(displayText(k.line[to:]), displayText(k.line[:to]))
	if k.line = k.line[:to]; to == 0 {
		k.typing, k.pasted = false, false
		k.screen.endLine(true)
	}
}

// takeLine returns the line, if there is one. An empty line counts only after a prompt.
func (k *keyboard) takeLine() (input, bool) {
	if !k.typing {
		if !k.screen.hasPrompt() {
			return input{}, false
		}
		k.screen.startLine()
	}
	h := input{line: string(k.line), pasted: k.pasted}
	h.outputBelow, h.afterPrompt = k.screen.endLine(false)
	k.line, k.typing, k.pasted = nil, false, false
	return h, true
}

// displayText returns typed text as the page shows it.
func displayText(line []byte) string {
	return strings.NewReplacer("\t", " ", "\n", " ").Replace(string(line))
}

// lastVisible returns the last visible character of s.
func lastVisible(s string) (last string) {
	for s != "" {
		last, _ = cells.NextCluster(s)
		s = s[len(last):]
	}
	return last
}
