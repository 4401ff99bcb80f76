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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
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

// Origin is where a question comes from.
type Origin struct {
	Root    string `json:"root"` // the workspace
	Session string `json:"session"`
}

// Letter is an answer in transit.
type Letter struct {
	Answer uip.Response
	From   string // the author, for display

	path       string   // without the suffix for its state
	folderLock *os.File // its folder, locked by the writer
}

// Suffixes of a letter's file: a posted letter waits; the other three are outcomes.
const (
	postedSuffix   = ".json"
	acceptedSuffix = ".taken"
	lateSuffix     = ".late"
	refusedSuffix  = ".refused"

	originFile     = "place"
	maxLetterBytes = 1 << 20 // no genuine letter is longer
)

var errInvalidID = errors.New("not an interaction id")

// folder returns the folder for letters about the question id.
func (b Box) folder(id string) (string, error) {
	if id == "" || len(id) > 128 || id[0] == '.' || strings.ContainsAny(id, "/\\\x00") {
		return "", message.Errorf("%q: %w", id, errInvalidID)
	}
	return filepath.Join(b.Dir, id), nil
}

// Slot receives letters for one question. Close it after use.
type Slot struct {
	box        Box
	question   uip.Request
	origin     Origin
	folder     string
	folderLock *os.File // the locked folder
}

// Open starts to accept letters about the question q.
func (b Box) Open(q uip.Request, place Origin) (*Slot, error) {
	folder, err := b.folder(q.ID)
	if err != nil {
		return nil, err
	}
	held, err := lockFolder(folder)
	if err != nil {
		return nil, message.Errorf("wait for answers from elsewhere: %w", err)
	}
	d := &Slot{box: b, question: q, origin: place, folder: folder, folderLock: held}
	if err := atomicfile.WriteCache(filepath.Join(folder, originFile), jsonx.MustMarshal(place), 0o600); err != nil {
		d.Close()
		return nil, message.Errorf("wait for answers from elsewhere: %w", err)
	}
	return d, nil
}

// lockFolder locks a folder, and creates it if necessary.
func lockFolder(folder string) (*os.File, error) {
	for {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		f, err := holdFolder(folder)
		if !errors.Is(err, fs.ErrNotExist) { // not being swept right now
			return f, err
		}
	}
}

// holdFolder prevents Sweep from removing a folder until the file is closed.
func holdFolder(folder string) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	atomicfile.HoldOpenDir(f)
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
	_ = os.Remove(filepath.Join(d.folder, originFile))
	_ = os.Remove(d.folder) // fails if letters are in it
	_ = d.folderLock.Close()
}

// Sweep removes folders that killed processes left over.
func (b Box) Sweep() {
	folders, _ := os.ReadDir(b.Dir)
	for _, f := range folders {
		if f.IsDir() {
			sweepFolder(filepath.Join(b.Dir, f.Name()))
		}
	}
}

func sweepFolder(folder string) {
	f, err := os.OpenFile(folder, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if atomicfile.LockIfUnheld(f) {
		_ = os.RemoveAll(folder)
	}
}

// Accept accepts the next letter, if any, so that no other process can.
// It ignores a letter without this user's seal for this question.
func (d *Slot) Accept() (*Letter, bool) {
	// a pattern that matches itself
	folder := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(d.folder)
	names, _ := filepath.Glob(filepath.Join(folder, "*"+postedSuffix))
	for _, name := range names {
		l := &Letter{path: strings.TrimSuffix(name, postedSuffix)}
		if os.Rename(name, l.path+acceptedSuffix) != nil {
			continue // withdrawn
		}
		if err := d.verifyLetter(l); err != nil {
			l.MarkRefused()
			continue
		}
		return l, true
	}
	return nil, false
}

type sealedLetter struct {
	Answer json.RawMessage `json:"answer"`
	From   string          `json:"from"`
	Seal   string          `json:"seal"`
}

const sealPurpose = "answer"

// sealedParts lists what a letter's seal covers. An answer to a question that was displayed differently is invalid.
func sealedParts(q uip.Request, p Origin, answer []byte, from string) [][]byte {
	return [][]byte{q.Canonical(), []byte(p.Root), []byte(p.Session), answer, []byte(from)}
}

func (d *Slot) verifyLetter(l *Letter) error {
	text, err := readLetterFile(l.path + acceptedSuffix)
	if err != nil {
		return err
	}
	var s sealedLetter
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if !d.box.Key.Verify(s.Seal, sealPurpose, sealedParts(d.question, d.origin, s.Answer, s.From)...) {
		return errors.New("the seal is invalid")
	}
	l.From = s.From
	return json.Unmarshal(s.Answer, &l.Answer)
}

// MarkLate marks the letter as late: the question already had an answer.
func (l *Letter) MarkLate() { l.setState(lateSuffix) }

// MarkRefused marks the letter as no answer to the question.
func (l *Letter) MarkRefused() { l.setState(refusedSuffix) }

// Requeue leaves the letter for the next waiting process.
func (l *Letter) Requeue() { l.setState(postedSuffix) }

// setState changes an accepted letter's state. The writer may already have removed the file.
func (l *Letter) setState(state string) { _ = os.Rename(l.path+acceptedSuffix, l.path+state) }

// FindOrigin returns the origin of the question id, if a process waits for its answer.
func (b Box) FindOrigin(id string) (Origin, bool) {
	folder, err := b.folder(id)
	if err != nil {
		return Origin{}, false
	}
	text, err := readLetterFile(filepath.Join(folder, originFile))
	var p Origin
	return p, err == nil && json.Unmarshal(text, &p) == nil
}

// ListWaiting lists the origins of all questions that wait for an answer in running processes.
func (b Box) ListWaiting() (all []Origin) {
	folders, _ := os.ReadDir(b.Dir)
	for _, f := range folders {
		if p, ok := b.FindOrigin(f.Name()); ok {
			all = append(all, p)
		}
	}
	return all
}

// ErrNotWaiting reports that no process waits for the answer to a question.
var ErrNotWaiting = errors.New("nothing is waiting for this answer")

// Post sends an answer to the process that waits for it. name must differ from every other letter's.
func (b Box) Post(place Origin, q uip.Request, a uip.Response, from, name string) (*Letter, error) {
	folder, err := b.folder(q.ID)
	if err != nil {
		return nil, err
	}
	answer := jsonx.MustMarshal(a)
	s := sealedLetter{Answer: answer, From: from, Seal: b.Key.Sign(sealPurpose, sealedParts(q, place, answer, from)...)}
	l := &Letter{Answer: a, From: from, path: filepath.Join(folder, name)}
	if l.folderLock, err = holdFolder(folder); err == nil {
		if err = atomicfile.Write(l.path+postedSuffix, jsonx.MustMarshal(s), 0o600); err != nil {
			l.folderLock.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotWaiting
	}
	if err != nil {
		return nil, message.Errorf("send the answer: %w", err)
	}
	return l, nil
}

// State is a letter's outcome.
type State int

// The states of a letter.
const (
	StatePending  State = iota
	StateAccepted       // it is the answer, once recorded
	StateLate           // another answer came first
	StateRefused        // it did not fit the question
)

// State returns the state of a posted letter.
func (l *Letter) State() State {
	for s, suffix := range map[State]string{StateAccepted: acceptedSuffix, StateLate: lateSuffix,
		StateRefused: refusedSuffix} {
		if _, err := os.Lstat(l.path + suffix); err == nil {
			return s
		}
	}
	return StatePending
}

// Withdraw removes a posted letter, whatever its state.
func (l *Letter) Withdraw() {
	for _, suffix := range []string{postedSuffix, acceptedSuffix, lateSuffix, refusedSuffix} {
		_ = os.Remove(l.path + suffix)
	}
	_ = os.Remove(filepath.Dir(l.path)) // fails while a process waits there
	_ = l.folderLock.Close()
}

// readLetterFile reads a regular file of limited size without blocking.
func readLetterFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxLetterBytes))
}
