// Package typed keeps what a person types in a project: what was sent, to be
// found again by searching, and what was not sent yet, to be there again
// whatever ended the program. Keys are blotted out before anything is kept.
package typed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Limits of what is kept.
const (
	maxBytes = 2 << 20  // of what was sent
	maxEntry = 64 << 10 // of one text sent; a longer one is not for searching
	maxDraft = 8 << 20
	maxAge   = 60 * 24 * time.Hour // of a draft
)

// Book is where it is kept: the folder of one workspace, and that of the project it is a part
// of, where what is sent is kept for all of its parts. The zero Book keeps nothing.
type Book struct{ Dir, Project string }

// Draft is what was typed and not sent.
type Draft struct {
	Queue  []string `json:"queue,omitempty"` // sent while a turn ran, which has not heard of it
	Text   string   `json:"text,omitempty"`
	Pastes []string `json:"pastes,omitempty"` // what in these stands as one unit
	Answer string   `json:"answer,omitempty"` // to a question that was open
	// Question is the id of that one, Given what was answered to its first parts, and Mode
	// the mode that was chosen at it, to count from the step after it.
	Question string   `json:"question,omitempty"`
	Given    []string `json:"given,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	By       int      `json:"by,omitempty"` // the process that it was typed in
}

// elsewhere reports whether it is being typed in another process.
func (d Draft) elsewhere() bool {
	return d.By > 0 && d.By != os.Getpid() && !errors.Is(syscall.Kill(d.By, 0), syscall.ESRCH)
}

// Empty reports whether there is nothing in it.
func (d Draft) Empty() bool {
	return strings.TrimSpace(d.Whole()) == "" && d.Mode == "" && len(d.Given) == 0
}

// Whole is all of it as one text.
func (d Draft) Whole() string { return strings.Join(d.Parts(), "\n") }

// Parts are the texts that it is made of.
func (d Draft) Parts() []string {
	all := append(slices.Clone(d.Queue), d.Text, d.Answer)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

type entry struct {
	Text string `json:"text"`
}

func (b Book) path(name string) string { return filepath.Join(b.Dir, name) }

// sent is the file of what is sent.
func (b Book) sent() string { return filepath.Join(cmp.Or(b.Project, b.Dir), sentName) }

const sentName = "sent.jsonl"

// Add keeps a text that was sent.
func (b Book) Add(text string) error {
	if b.Dir == "" || strings.TrimSpace(text) == "" || len(text) > maxEntry {
		return nil
	}
	line := append(jsonx.Must(entry{sanitize.Mask(text)}), '\n')
	if err := os.MkdirAll(filepath.Dir(b.sent()), 0o700); err != nil {
		return fmt.Errorf("save the input: %w", err)
	}
	if info, err := os.Lstat(b.sent()); err == nil && info.Size() > maxBytes {
		if err := b.shorten(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(b.sent(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("save the input: %w", err)
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// shorten forgets the older half.
func (b Book) shorten() error {
	text, _, err := repofile.OwnHead(b.sent(), 2*maxBytes)
	if err != nil {
		return fmt.Errorf("save the input: %w", err)
	}
	half := text[len(text)/2:]
	half = half[bytes.IndexByte(half, '\n')+1:]
	return atomicfile.Write(b.sent(), half, 0o600)
}

// Sent is what was sent, the newest last, each text once, then what a session was told
// besides, and what was not sent, but for what is being typed in that session.
func (b Book) Sent(session string, told ...string) (all []string) {
	last := make(map[string]int)
	add := func(text string) {
		if i, again := last[text]; again {
			all[i] = ""
		}
		last[text] = len(all)
		all = append(all, text)
	}
	for _, file := range slices.Compact([]string{b.path(sentName), b.sent()}) { // in the folder there may be some of a time when it was no part
		if b.Dir == "" {
			break
		}
		text, _, _ := repofile.OwnHead(file, 2*maxBytes) // there may be none yet
		for line := range bytes.Lines(text) {
			var e entry
			if json.Unmarshal(line, &e) == nil { // else it was torn
				add(e.Text)
			}
		}
	}
	for _, text := range told {
		text = sanitize.Mask(text)
		if _, known := last[text]; !known && len(text) <= maxEntry {
			add(text)
		}
	}
	if b.Dir != "" {
		drafts, _ := fs.Glob(repofile.OwnDir(b.Dir), "*"+draftEnding)
		for _, name := range drafts {
			id := strings.TrimSuffix(name, draftEnding)
			if d := b.read(id); id != session || d.By != os.Getpid() {
				add(d.Whole())
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Unsent is the session, of those that may be unless may is nil, in which something was typed
// last and not sent, and when; "" if there is none.
func (b Book) Unsent(may func(session string) bool) (session string, when time.Time) {
	if b.Dir == "" {
		return "", time.Time{}
	}
	entries, _ := fs.ReadDir(repofile.OwnDir(b.Dir), ".")
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), draftEnding)
		if info, err := e.Info(); ok && err == nil && info.ModTime().After(when) && (may == nil || may(id)) && !b.read(id).elsewhere() {
			session, when = id, info.ModTime()
		}
	}
	return session, when
}

const draftEnding = ".draft"

// Keep keeps the draft of a session in place of the one before. An empty one is
// forgotten.
func (b Book) Keep(session string, d Draft) error {
	switch {
	case b.Dir == "":
		return nil
	case d.Empty():
		err := os.Remove(b.path(session + draftEnding))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	if keyed := slices.IndexFunc(d.Given, func(s string) bool { return sanitize.Mask(s) != s }); keyed >= 0 { // it is asked for again
		d.Given, d.Text, d.Answer = d.Given[:keyed], strings.TrimPrefix(d.Text+"\n"+d.Answer, "\n"), ""
	}
	d.Text, d.Answer, d.Queue, d.Pastes = sanitize.Mask(d.Text), sanitize.Mask(d.Answer), slices.Clone(d.Queue), slices.Clone(d.Pastes)
	for _, texts := range [][]string{d.Queue, d.Pastes} {
		for i, text := range texts {
			texts[i] = sanitize.Mask(text)
		}
	}
	d.By = os.Getpid()
	return atomicfile.Write(b.path(session+draftEnding), jsonx.Must(d), 0o600)
}

// Wanted is which draft is wanted beside a session's own.
type Wanted uint8

const (
	None Wanted = iota // none but its own
	Left               // where it has none, one that was left
	Last               // whichever was typed last
)

// Draft is the draft of a session, or another that is wanted: the newest of those that may be
// taken and nobody is typing, which is then no longer theirs. What it takes the place of is
// found by searching.
func (b Book) Draft(session string, wanted Wanted, may func(session string) bool, now time.Time) Draft {
	if b.Dir == "" {
		return Draft{}
	}
	own, newest, when := b.read(session), "", time.Time{}
	if info, err := os.Lstat(b.path(session + draftEnding)); err == nil && !own.Empty() {
		when = info.ModTime()
	}
	if wanted == None || !own.Empty() && (wanted == Left || own.Question != "") {
		return own
	}
	entries, err := fs.ReadDir(repofile.OwnDir(b.Dir), ".")
	if err != nil {
		return own
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), draftEnding)
		info, err := e.Info()
		switch {
		case !ok || err != nil:
		case id != session && now.Sub(info.ModTime()) > maxAge:
			_ = os.Remove(b.path(e.Name())) // nobody came back for it
		case id != session && info.ModTime().After(when) && may(id) && !b.read(id).elsewhere():
			newest, when = id, info.ModTime()
		}
	}
	if newest == "" {
		return own
	}
	for _, text := range own.Parts() {
		_ = b.Add(text) // it is there again, and not lost
	}
	d := b.read(newest)
	_ = os.Remove(b.path(newest + draftEnding)) // else it is offered again
	text := Draft{Text: d.Text, Answer: d.Answer}
	return Draft{Queue: d.Queue, Text: text.Whole(), Pastes: d.Pastes} // an answer is to no other question
}

// Forget forgets drafts that say text, of those sessions that may be: it has been sent
// elsewhere.
func (b Book) Forget(text string, may func(session string) bool) {
	text = strings.TrimSpace(text)
	if b.Dir == "" || text == "" {
		return
	}
	drafts, _ := fs.Glob(repofile.OwnDir(b.Dir), "*"+draftEnding)
	for _, name := range drafts {
		if id := strings.TrimSuffix(name, draftEnding); may(id) && strings.TrimSpace(b.read(id).Whole()) == text && !b.read(id).elsewhere() {
			_ = os.Remove(b.path(name)) // else it is offered again
		}
	}
}

func (b Book) read(session string) (d Draft) {
	text, err := repofile.Own(b.path(session+draftEnding), maxDraft)
	if err != nil || json.Unmarshal(text, &d) != nil {
		return Draft{}
	}
	return d
}
