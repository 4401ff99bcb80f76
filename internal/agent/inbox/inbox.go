// Package inbox carries an answer from the process that received it to the process that waits for it.
//
// The waiting process keeps a folder for its question, inside a folder that only this user can access. The
// answering process puts a letter there: a file with the answer, sealed with the user's key. The waiting
// process accepts the letter by renaming it, which succeeds only once, so both sides agree on whether an
// answer counts. There is no listener, no cleanup before a question can be asked again, and a sandboxed
// command, which cannot see the folder, can neither read nor write a letter. Both sides lock the folder
// while they use it; a folder without a lock is left over from a killed process, and Sweep removes it.
package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/host/atomicfile"
	"coder/internal/host/authkey"

	"golang.org/x/sys/unix"
)

// Box is the folder with all open questions.
type Box struct {
	Dir string // private to this user
	Key *authkey.Key
}

// Place is where a question comes from.
type Place struct {
	Root    string `json:"root"` // the workspace
	Session string `json:"session"`
}

// Letter is an answer in transit.
type Letter struct {
	Answer uip.Response
	From   string // the author, for display

	path string   // without the suffix for its state
	held *os.File // its folder, locked by the writer
}

// Suffixes of a letter's file: a posted letter waits; the other three are outcomes.
const (
	posted  = ".json"
	taken   = ".taken"
	late    = ".late"
	refused = ".refused"

	placeName = "place"
	maxSize   = 1 << 20 // no genuine letter is longer
)

var errID = errors.New("not an interaction id")

// folder returns the folder for letters about the question id.
func (b Box) folder(id string) (string, error) {
	if id == "" || len(id) > 128 || id[0] == '.' || strings.ContainsAny(id, "/\\\x00") {
		return "", fmt.Errorf("%q: %w", id, errID)
	}
	return filepath.Join(b.Dir, id), nil
}

// Slot receives letters for one question. Close it after use.
type Slot struct {
	box      Box
	question uip.Request
	place    Place
	folder   string
	held     *os.File // the locked folder
}

// Open starts to accept letters about the question q.
func (b Box) Open(q uip.Request, place Place) (*Slot, error) {
	folder, err := b.folder(q.ID)
	if err != nil {
		return nil, err
	}
	held, err := enter(folder)
	if err != nil {
		return nil, fmt.Errorf("wait for answers from elsewhere: %w", err)
	}
	d := &Slot{box: b, question: q, place: place, folder: folder, held: held}
	if err := atomicfile.Cache(filepath.Join(folder, placeName), jsonx.Must(place), 0o600); err != nil {
		d.Close()
		return nil, fmt.Errorf("wait for answers from elsewhere: %w", err)
	}
	return d, nil
}

// enter locks a folder, and creates it if necessary.
func enter(folder string) (*os.File, error) {
	for {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		f, err := hold(folder)
		if !errors.Is(err, fs.ErrNotExist) { // not being swept right now
			return f, err
		}
	}
}

// hold prevents Sweep from removing a folder until the file is closed.
func hold(folder string) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	atomicfile.HoldOpen(f)
	held, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(folder); err == nil && !os.SameFile(held, there) {
			err = fs.ErrNotExist // it was swept and recreated
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close stops accepting letters. Letters that arrived stay for their writers.
func (d *Slot) Close() {
	_ = os.Remove(filepath.Join(d.folder, placeName))
	_ = os.Remove(d.folder) // fails if letters are in it
	_ = d.held.Close()
}

// Sweep removes folders that killed processes left over.
func (b Box) Sweep() {
	folders, _ := os.ReadDir(b.Dir)
	for _, f := range folders {
		if f.IsDir() {
			sweep(filepath.Join(b.Dir, f.Name()))
		}
	}
}

func sweep(folder string) {
	f, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if atomicfile.Unheld(f) {
		_ = os.RemoveAll(folder)
	}
}

// Next accepts the next letter, if any, so that no other process can.
// It ignores a letter without this user's seal for this question.
func (d *Slot) Next() (*Letter, bool) {
	folder := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(d.folder) // a pattern that matches itself
	names, _ := filepath.Glob(filepath.Join(folder, "*"+posted))
	for _, name := range names {
		l := &Letter{path: strings.TrimSuffix(name, posted)}
		if os.Rename(name, l.path+taken) != nil {
			continue // withdrawn
		}
		if err := d.read(l); err != nil {
			l.Refuse()
			continue
		}
		return l, true
	}
	return nil, false
}

type sealed struct {
	Answer json.RawMessage `json:"answer"`
	From   string          `json:"from"`
	Seal   string          `json:"seal"`
}

const purpose = "answer"

// parts lists what a letter's seal covers. An answer to a question that was displayed differently is invalid.
func parts(q uip.Request, p Place, answer []byte, from string) [][]byte {
	return [][]byte{q.Canonical(), []byte(p.Root), []byte(p.Session), answer, []byte(from)}
}

func (d *Slot) read(l *Letter) error {
	text, err := readFile(l.path + taken)
	if err != nil {
		return err
	}
	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if !d.box.Key.Verify(s.Seal, purpose, parts(d.question, d.place, s.Answer, s.From)...) {
		return errors.New("the seal is invalid")
	}
	l.From = s.From
	return json.Unmarshal(s.Answer, &l.Answer)
}

// Late marks the letter as late: the question already had an answer.
func (l *Letter) Late() { l.becomes(late) }

// Refuse marks the letter as no answer to the question.
func (l *Letter) Refuse() { l.becomes(refused) }

// PutBack leaves the letter for the next waiting process.
func (l *Letter) PutBack() { l.becomes(posted) }

// becomes changes an accepted letter's state. The writer may already have removed the file.
func (l *Letter) becomes(state string) { _ = os.Rename(l.path+taken, l.path+state) }

// Where returns the origin of the question id, if a process waits for its answer.
func (b Box) Where(id string) (Place, bool) {
	folder, err := b.folder(id)
	if err != nil {
		return Place{}, false
	}
	text, err := readFile(filepath.Join(folder, placeName))
	var p Place
	return p, err == nil && json.Unmarshal(text, &p) == nil
}

// Waiting lists the origins of all questions that wait for an answer in running processes.
func (b Box) Waiting() (all []Place) {
	folders, _ := os.ReadDir(b.Dir)
	for _, f := range folders {
		if p, ok := b.Where(f.Name()); ok {
			all = append(all, p)
		}
	}
	return all
}

// ErrNobodyWaits reports that no process waits for the answer to a question.
var ErrNobodyWaits = errors.New("nothing is waiting for this answer")

// Post sends an answer to the process that waits for it. name must differ from every other letter's.
func (b Box) Post(place Place, q uip.Request, a uip.Response, from, name string) (*Letter, error) {
	folder, err := b.folder(q.ID)
	if err != nil {
		return nil, err
	}
	answer := jsonx.Must(a)
	s := sealed{Answer: answer, From: from, Seal: b.Key.Sign(purpose, parts(q, place, answer, from)...)}
	l := &Letter{Answer: a, From: from, path: filepath.Join(folder, name)}
	if l.held, err = hold(folder); err == nil {
		if err = atomicfile.Write(l.path+posted, jsonx.Must(s), 0o600); err != nil {
			l.held.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNobodyWaits
	}
	if err != nil {
		return nil, fmt.Errorf("send the answer: %w", err)
	}
	return l, nil
}

// State is a letter's outcome.
type State int

// The states of a letter.
const (
	Pending State = iota
	Taken         // it is the answer, once recorded
	Late          // another answer came first
	Refused       // it did not fit the question
)

// State returns the state of a posted letter.
func (l *Letter) State() State {
	for s, suffix := range map[State]string{Taken: taken, Late: late, Refused: refused} {
		if _, err := os.Lstat(l.path + suffix); err == nil {
			return s
		}
	}
	return Pending
}

// Withdraw removes a posted letter, whatever its state.
func (l *Letter) Withdraw() {
	for _, suffix := range []string{posted, taken, late, refused} {
		_ = os.Remove(l.path + suffix)
	}
	_ = os.Remove(filepath.Dir(l.path)) // fails while a process waits there
	_ = l.held.Close()
}

// readFile reads a regular file of limited size without blocking.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSize))
}
