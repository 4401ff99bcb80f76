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
	terminal *tty.Terminal
	page     *Page
	inputs   chan input    // closed when no more input can come
	lends    chan lent     // requests for the terminal
	begins   <-chan string // text to show as if typed
	keeps    func() bool   // reports whether Esc keeps the typed text
	stands   atomic.Value  // the line as a string, for other goroutines

	line   []byte
	typing bool
	pasted bool // a part of the line was pasted with several lines
}

// input is what the user did.
type input struct {
	kind  inputKind
	line  string
	asked bool // typed after the prompt; otherwise begun before it
	apart bool // something was printed below the line before it was read
	// pasted means that part of it was pasted with several lines.
	pasted bool
}

// draft returns the line as a draft, as one paste if part of it was pasted.
func (h input) draft() lineedit.Draft {
	if h.pasted {
		return lineedit.Folded(h.line, []string{h.line})
	}
	return lineedit.Folded(h.line, nil)
}

type inputKind uint8

const (
	entered     inputKind = iota // a line
	stopped                      // Esc
	left                         // Ctrl+D on an empty line
	interrupted                  // Ctrl+C
)

// listen reads keys until ctx ends or the input ends.
func (k *keyboard) listen(ctx context.Context) {
	defer close(k.inputs)
	for {
		batch, away, err := k.read(ctx)
		if err == nil && away != nil {
			err = k.lend(*away)
		}
		if err != nil {
			return
		}
		for _, e := range batch {
			paste, _ := e.(tty.Paste)
			several := strings.ContainsAny(strings.TrimRight(paste.Text, "\r\n"), "\r\n")
			for _, key := range pressed(e) {
				k.pasted = k.pasted || several
				h, ok := k.key(key)
				k.stands.Store(string(k.line))
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

// read reads keys until a batch is complete or the terminal is requested.
func (k *keyboard) read(ctx context.Context) (batch []tty.Event, away *lent, err error) {
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
	case l := <-k.lends:
		stop()
		<-done
		return batch, &l, nil
	case text := <-k.begins:
		stop()
		<-done
		if len(k.line) > 0 {
			text = "\n" + text
		}
		k.add(text)
		k.stands.Store(string(k.line))
		return batch, nil, nil
	}
}

// lend lends the terminal and waits until it is back.
func (k *keyboard) lend(l lent) error {
	if err := k.terminal.Restore(); err != nil {
		close(l.refused)
		return err
	}
	close(l.ready)
	<-l.back
	if err := k.terminal.Raw(); err != nil {
		return err
	}
	if k.typing {
		k.page.show(shown(k.line), shown(k.line))
	}
	return nil
}

// pressed returns an event's keys. Pasted text counts as typed.
func pressed(e tty.Event) (keys []lineedit.Key) {
	switch e := e.(type) {
	case tty.Key:
		return []lineedit.Key{lineedit.Key(e)}
	case tty.Paste:
		for _, r := range strings.ReplaceAll(e.Text, "\r\n", "\n") {
			if r == '\n' || r == '\r' {
				keys = append(keys, lineedit.Key{Name: lineedit.Enter})
			} else if r == '\t' || !unicode.IsControl(r) {
				keys = append(keys, lineedit.Typed(r))
			}
		}
	}
	return keys
}

// key handles a key, and returns what the user did if it is more than typing. Keys that move the cursor
// do nothing.
func (k *keyboard) key(key lineedit.Key) (input, bool) {
	switch key {
	case lineedit.Key{Name: lineedit.Enter}, lineedit.WithCtrl('j'):
		return k.enter()
	case lineedit.Key{Name: lineedit.Escape}:
		if k.keeps() {
			k.page.aside()
			return input{kind: stopped}, true
		}
		line := string(k.line)
		k.erase(0)
		return input{kind: stopped, line: line}, true
	case lineedit.WithCtrl('c'):
		return input{kind: interrupted}, true
	case lineedit.WithCtrl('d'):
		return input{kind: left}, len(k.line) == 0
	case lineedit.WithCtrl('z'):
		_ = k.terminal.Suspend() // continue where it is not supported
		k.page.show(shown(k.line), shown(k.line))
	case lineedit.Key{Name: lineedit.Backspace}, lineedit.WithCtrl('h'):
		k.erase(len(k.line) - len(lastOf(string(k.line))))
	case lineedit.WithCtrl('w'):
		k.erase(bytes.LastIndexByte(bytes.TrimRight(k.line, " "), ' ') + 1)
	case lineedit.WithCtrl('u'):
		k.erase(0)
	case lineedit.Key{Name: lineedit.Tab}:
		k.add("\t")
	default:
		if key.Name == lineedit.Char && key.Mod == 0 && key.Rune != 0 {
			k.add(string(key.Rune))
		}
	}
	return input{}, false
}

func (k *keyboard) add(text string) {
	if !k.typing {
		k.typing = true
		k.page.begin()
	}
	if len(k.line) > maxLine {
		return
	}
	k.line = append(k.line, text...)
	k.page.show(shown([]byte(text)), shown(k.line))
}

// erase deletes typed text from byte to on. If nothing is left, waiting output is printed.
func (k *keyboard) erase(to int) {
	if !k.typing {
		return
	}
	k.page.unshow(shown(k.line[to:]), shown(k.line[:to]))
	if k.line = k.line[:to]; to == 0 {
		k.typing, k.pasted = false, false
		k.page.end(true)
	}
}

// enter returns the line, if there is one. An empty line counts only after a prompt.
func (k *keyboard) enter() (input, bool) {
	if !k.typing {
		if !k.page.asks() {
			return input{}, false
		}
		k.page.begin()
	}
	h := input{line: string(k.line), pasted: k.pasted}
	h.apart, h.asked = k.page.end(false)
	k.line, k.typing, k.pasted = nil, false, false
	return h, true
}

// shown returns typed text as the page shows it.
func shown(line []byte) string {
	return strings.NewReplacer("\t", " ", "\n", " ").Replace(string(line))
}

// lastOf returns the last visible character of s.
func lastOf(s string) (last string) {
	for s != "" {
		last, _ = cells.Next(s)
		s = s[len(last):]
	}
	return last
}
