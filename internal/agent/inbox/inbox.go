// Package inbox carries an answer from the process it was given to, to the one
// that waits for it.
//
// Who waits keeps a folder for its question, below one that only this user can
// use. Who answers puts a letter there: a file with the answer, sealed with the
// user's key. Who waits takes it by renaming it, which only one can do once, so
// an answer counts or does not, and both sides know which. Nothing is listened
// on, nothing has to be cleaned up before a question can be asked again, and a
// command in the sandbox, which cannot see the folder, can neither read nor
// write a letter. Both sides hold the folder while they use it; one that nobody
// holds is what killed processes left, and is swept.
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

// Box is where questions wait for letters.
type Box struct {
	Dir string // of this user alone
	Key *authkey.Key
}

// Place says whose question it is.
type Place struct {
	Root    string `json:"root"` // the workspace
	Session string `json:"session"`
}

// Letter is an answer on its way.
type Letter struct {
	Answer uip.Response
	From   string // who gave it, for people

	path string   // without what its state adds
	held *os.File // its folder, for who wrote it
}

// What a letter's file ends with: posted, it waits; the other three are what
// became of it.
const (
	posted  = ".json"
	taken   = ".taken"
	late    = ".late"
	refused = ".refused"

	placeName = "place"
	maxSize   = 1 << 20 // no honest letter is longer
)

var errID = errors.New("not an interaction id")

// folder is where letters about the question id go.
func (b Box) folder(id string) (string, error) {
	if id == "" || len(id) > 128 || id[0] == '.' || strings.ContainsAny(id, "/\\\x00") {
		return "", fmt.Errorf("%q: %w", id, errID)
	}
	return filepath.Join(b.Dir, id), nil
}

// Slot is where one question waits. Close it.
type Slot struct {
	box      Box
	question uip.Request
	place    Place
	folder   string
	held     *os.File // the folder
}

// Open lets letters about the question q come in.
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

// enter holds a folder, and makes it where there is none.
func enter(folder string) (*os.File, error) {
	for {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		f, err := hold(folder)
		if !errors.Is(err, fs.ErrNotExist) { // not swept just now
			return f, err
		}
	}
}

// hold keeps a folder from being swept until it is closed.
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
			err = fs.ErrNotExist // it was swept, and made anew
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close lets no more letters come in. Those that came are left to who wrote
// them.
func (d *Slot) Close() {
	_ = os.Remove(filepath.Join(d.folder, placeName))
	_ = os.Remove(d.folder) // unless letters are in it
	_ = d.held.Close()
}

// Sweep removes the folders that nobody uses: killed processes left them.
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

// Next takes the next letter, if there is one: nobody else will. What is not
// sealed by this user for this question is no letter.
func (d *Slot) Next() (*Letter, bool) {
	folder := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(d.folder) // a pattern that finds itself
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

// parts are what a letter's seal is of. An answer to a question that was shown
// otherwise than it is asked is none.
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

// Late says that the question was answered before the letter came.
func (l *Letter) Late() { l.becomes(late) }

// Refuse says that the letter is no answer to the question.
func (l *Letter) Refuse() { l.becomes(refused) }

// PutBack leaves the letter for the next who waits.
func (l *Letter) PutBack() { l.becomes(posted) }

// becomes changes what became of a letter that was taken. Who wrote it may have
// gone, with it.
func (l *Letter) becomes(state string) { _ = os.Rename(l.path+taken, l.path+state) }

// Where tells whose question id is, if somebody waits for its answer.
func (b Box) Where(id string) (Place, bool) {
	folder, err := b.folder(id)
	if err != nil {
		return Place{}, false
	}
	text, err := readFile(filepath.Join(folder, placeName))
	var p Place
	return p, err == nil && json.Unmarshal(text, &p) == nil
}

// Waiting lists whose questions wait for an answer in running processes.
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

// Post sends the answer to q to who waits for it. Name is unlike that of any
// other letter.
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

// State is what became of a letter.
type State int

// The states of a letter.
const (
	Pending State = iota
	Taken         // it is the answer, once one is on record
	Late          // another was there first
	Refused       // it did not fit the question
)

// State tells what became of a letter that was posted.
func (l *Letter) State() State {
	for s, suffix := range map[State]string{Taken: taken, Late: late, Refused: refused} {
		if _, err := os.Lstat(l.path + suffix); err == nil {
			return s
		}
	}
	return Pending
}

// Withdraw takes back a letter that was posted, or clears up what became of it.
func (l *Letter) Withdraw() {
	for _, suffix := range []string{posted, taken, late, refused} {
		_ = os.Remove(l.path + suffix)
	}
	_ = os.Remove(filepath.Dir(l.path)) // unless somebody waits there
	_ = l.held.Close()
}

// readFile reads a plain file of reasonable size and waits for nobody.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSize))
}
