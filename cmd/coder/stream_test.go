package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"
)

// TestTypingDuringAStream types while twenty thousand pieces of an answer are
// on their way: what is typed is shown long before they are all there.
func TestTypingDuringAStream(t *testing.T) {
	const lines, perLine = 2000, 10
	var model bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&model, "say line %d of a long answer in many small pieces\n", i) // ten words
	}
	model.WriteString("say that-was-all\n")
	s := newScene(t, &page{}, "80x24")
	t.Cleanup(s.end)
	s.check(os.WriteFile(s.file("../model"), model.Bytes(), 0o644))
	s.check(s.plugIn())
	s.check(s.run("--script", "../model", "--session-id", "s"))
	giveUp := time.AfterFunc(3*patience, func() { _ = errors.Join(s.cmd.Process.Kill(), s.tty.Close()) })
	defer giveUp.Stop()
	var seen plainText
	see := func(text string) {
		t.Helper()
		if err := seen.readUntil(s.pty, text); err != nil {
			t.Fatal(err)
		}
	}
	see("w> ")
	s.check(s.send("go\r"))
	see("line 5 ")
	s.check(s.send("typed meanwhile")) // nothing more is read before that is sent
	see("that-was-all")
	at := bytes.Index(seen.text, []byte("> typed meanwhile"))
	if at < 0 {
		t.Fatal("what was typed was not shown before the end")
	}
	t.Logf("shown after %d of %d bytes", at, len(seen.text))
	see("w> typed meanwhile") // it is the next draft
	s.check(s.send("\x03"))
	s.watching.Go(func() { s.watch(s.pty) })
	s.check(s.exit(130))
	t.Logf("%d pieces took %v of processor time", lines*perLine, s.cmd.ProcessState.UserTime()+s.cmd.ProcessState.SystemTime())
}

var looks = regexp.MustCompile(`\x1b\[[?\d;]*[A-Za-z]`)

// plainText is what a program wrote, without its looks.
type plainText struct {
	text []byte
	upTo int    // how much of text was waited for
	held []byte // the start of a sequence, perhaps
}

// readUntil reads on until text stands behind what was waited for before: both
// may come in one piece.
func (p *plainText) readUntil(from io.Reader, text string) error {
	buf := make([]byte, 4096)
	for {
		if i := bytes.Index(p.text[p.upTo:], []byte(text)); i >= 0 {
			p.upTo += i + len(text)
			return nil
		}
		n, err := from.Read(buf)
		if err != nil {
			return fmt.Errorf("wait for %q: %w, after %q", text, err, p.text[max(0, len(p.text)-300):])
		}
		p.add(buf[:n])
	}
}

func (p *plainText) add(b []byte) {
	b = append(p.held, b...)
	whole := len(b)
	if i := bytes.LastIndexByte(b, escape); i >= 0 && !looks.Match(b[i:]) {
		whole = i
	}
	p.text = append(p.text, looks.ReplaceAll(b[:whole], nil)...)
	p.held = bytes.Clone(b[whole:])
}
