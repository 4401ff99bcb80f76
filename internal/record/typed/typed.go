// Package typed saves what a user types in a project: sent input, for search, and unsent drafts, so that
// they survive the end of the program. Keys are masked before saving.
package typed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Limits on what is saved.
const (
	maxBytes = 2 << 20  // of sent input
	maxEntry = 64 << 10 // of one sent text; longer ones are not for search
	maxDraft = 8 << 20
	maxAge   = 60 * 24 * time.Hour // of a draft
)

// InputStore is where input is saved: the folder of one workspace, and that of the project it belongs to,
// which holds the sent input of all its workspaces. The zero Book saves nothing.
type InputStore struct{ Dir, Project string }

// Draft is input that was typed but not sent.
type Draft struct {
	Queue  []string `json:"queue,omitempty"` // sent during a turn but not yet delivered
	Text   string   `json:"text,omitempty"`
	Pastes []string `json:"pastes,omitempty"` // pasted texts that count as one unit
	Answer string   `json:"answer,omitempty"` // answer to an open question
	// Question is the id of that question, Given are the answers to its first parts, and Mode is the mode
	// chosen in it, effective from the next step.
	Question string   `json:"question,omitempty"`
	Answers  []string `json:"given,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	PID      int      `json:"by,omitempty"` // process it was typed in
}

// isElsewhere reports whether it is being typed in another process.
func (d Draft) isElsewhere() bool {
	return d.PID > 0 && d.PID != os.Getpid() && !errors.Is(syscall.Kill(d.PID, 0), syscall.ESRCH)
}

// IsEmpty reports whether the draft is empty.
func (d Draft) IsEmpty() bool {
	return strings.TrimSpace(d.FullText()) == "" && d.Mode == "" && len(d.Answers) == 0
}

// FullText returns the draft as one text.
func (d Draft) FullText() string { return strings.Join(d.Parts(), "\n") }

// Parts returns the texts of the draft.
func (d Draft) Parts() []string {
	all := append(slices.Clone(d.Queue), d.Text, d.Answer)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

type entry struct {
	Text string `json:"text"`
}

func (b InputStore) path(name string) string { return filepath.Join(b.Dir, name) }

// sentFile returns the file of sent input.
func (b InputStore) sentFile() string { return filepath.Join(cmp.Or(b.Project, b.Dir), sentFileName) }

const sentFileName = "sent.jsonl"

// AddSent saves a sent text.
func (b InputStore) AddSent(text string) error {
	if b.Dir == "" || strings.TrimSpace(text) == "" || len(text) > maxEntry {
		return nil
	}
	line := append(jsonx.MustMarshal(entry{sanitize.Mask(text)}), '\n')
	if err := os.MkdirAll(filepath.Dir(b.sentFile()), 0o700); err != nil {
		return message.Errorf("save the input: %w", err)
	}
	if info, err := os.Lstat(b.sentFile()); err == nil && info.Size() > maxBytes {
		if err := b.trimSent(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(b.sentFile(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return message.Errorf("save the input: %w", err)
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// trimSent removes the older half.
func (b InputStore) trimSent() error {
	text, _, err := repofile.ReadOwnHead(b.sentFile(), 2*maxBytes)
	if err != nil {
		return message.Errorf("save the input: %w", err)
	}
	half := text[len(text)/2:]
	half = half[bytes.IndexByte(half, '\n')+1:]
	return atomicfile.Write(b.sentFile(), half, 0o600)
}

// Sent returns the sent texts without duplicates, newest last, then the texts in told, and unsent drafts
// except the one being typed in that session.
func (b InputStore) Sent(session string, told ...string) (all []string) {
	last := make(map[string]int)
	add := func(text string) {
		if i, again := last[text]; again {
			all[i] = ""
		}
		last[text] = len(all)
		all = append(all, text)
	}
	// the workspace's folder may have some from before it belonged to the project
	for _, file := range slices.Compact([]string{b.path(sentFileName), b.sentFile()}) {
		if b.Dir == "" {
			break
		}
		text, _, _ := repofile.ReadOwnHead(file, 2*maxBytes) // the file may not exist yet
		for line := range bytes.Lines(text) {
			var e entry
			if json.Unmarshal(line, &e) == nil { // otherwise the line is torn
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
		drafts, _ := fs.Glob(repofile.OwnDir(b.Dir), "*"+draftSuffix)
		for _, name := range drafts {
			id := strings.TrimSuffix(name, draftSuffix)
			if d := b.readDraft(id); id != session || d.PID != os.Getpid() {
				add(d.FullText())
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// NewestDraft returns the session with the newest unsent draft, among those that may accepts (nil accepts
// all), and when it was typed; "" if there is none.
func (b InputStore) NewestDraft(may func(session string) bool) (session string, when time.Time) {
	if b.Dir == "" {
		return "", time.Time{}
	}
	entries, _ := fs.ReadDir(repofile.OwnDir(b.Dir), ".")
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), draftSuffix)
		if info, err := e.Info(); ok && err == nil && info.ModTime().After(when) && (may == nil || may(id)) &&
			!b.readDraft(id).isElsewhere() {
			session, when = id, info.ModTime()
		}
	}
	return session, when
}

const draftSuffix = ".draft"

// SaveDraft saves the draft of a session, replacing the previous one. An empty one is removed.
func (b InputStore) SaveDraft(session string, d Draft) error {
	switch {
	case b.Dir == "":
		return nil
	case d.IsEmpty():
		err := os.Remove(b.path(session + draftSuffix))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return message.Errorf("save the draft: %w", err)
	}
	// its question is asked again
	if keyed := slices.IndexFunc(d.Answers, func(s string) bool { return sanitize.Mask(s) != s }); keyed >= 0 {
		d.Answers, d.Text, d.Answer = d.Answers[:keyed], strings.TrimPrefix(d.Text+"\n"+d.Answer, "\n"), ""
	}
	d.Text, d.Answer, d.Queue, d.Pastes = sanitize.Mask(d.Text), sanitize.Mask(d.Answer), slices.Clone(d.Queue),
		slices.Clone(d.Pastes)
	for _, texts := range [][]string{d.Queue, d.Pastes} {
		for i, text := range texts {
			texts[i] = sanitize.Mask(text)
		}
	}
	d.PID = os.Getpid()
	return atomicfile.Write(b.path(session+draftSuffix), jsonx.MustMarshal(d), 0o600)
}

// DraftChoice selects which draft to use besides a session's own.
type DraftChoice uint8

const (
	DraftOwn       DraftChoice = iota // only its own
	DraftAbandoned                    // without its own, an abandoned one
	DraftNewest                       // the newest one
)

// Draft returns the draft of a session, or another wanted one: the newest that may accepts and nobody is
// typing, which is then removed from its session. The draft that it replaces can be found by search.
func (b InputStore) Draft(session string, wanted DraftChoice, may func(session string) bool, now time.Time) Draft {
	if b.Dir == "" {
		return Draft{}
	}
	own, newest, when := b.readDraft(session), "", time.Time{}
	if info, err := os.Lstat(b.path(session + draftSuffix)); err == nil && !own.IsEmpty() {
		when = info.ModTime()
	}
	if wanted == DraftOwn || !own.IsEmpty() && (wanted == DraftAbandoned || own.Question != "") {
		return own
	}
	entries, err := fs.ReadDir(repofile.OwnDir(b.Dir), ".")
	if err != nil {
		return own
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), draftSuffix)
		info, err := e.Info()
		switch {
		case !ok || err != nil:
		case id != session && now.Sub(info.ModTime()) > maxAge:
			_ = os.Remove(b.path(e.Name())) // abandoned too long ago
		case id != session && info.ModTime().After(when) && may(id) && !b.readDraft(id).isElsewhere():
			newest, when = id, info.ModTime()
		}
	}
	if newest == "" {
		return own
	}
	for _, text := range own.Parts() {
		_ = b.AddSent(text) // still found by search, so not lost
	}
	d := b.readDraft(newest)
	_ = os.Remove(b.path(newest + draftSuffix)) // else it is offered again
	text := Draft{Text: d.Text, Answer: d.Answer}
	return Draft{Queue: d.Queue, Text: text.FullText(), Pastes: d.Pastes} // an answer fits no other question
}

// RemoveDrafts removes drafts equal to text, of sessions that may accepts: the text was sent elsewhere.
func (b InputStore) RemoveDrafts(text string, may func(session string) bool) {
	text = strings.TrimSpace(text)
	if b.Dir == "" || text == "" {
		return
	}
	drafts, _ := fs.Glob(repofile.OwnDir(b.Dir), "*"+draftSuffix)
	for _, name := range drafts {
		if id := strings.TrimSuffix(name, draftSuffix); may(id) && strings.TrimSpace(b.readDraft(id).FullText()) == text &&
			!b.readDraft(id).isElsewhere() {
			_ = os.Remove(b.path(name)) // else it is offered again
		}
	}
}

func (b InputStore) readDraft(session string) (d Draft) {
	text, err := repofile.ReadOwn(b.path(session+draftSuffix), maxDraft)
	if err != nil || json.Unmarshal(text, &d) != nil {
		return Draft{}
	}
	return d
}
