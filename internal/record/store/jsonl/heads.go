package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/host/authkey"
	"coder/internal/host/disk"
	"coder/internal/record/audit"
)

// Heads saves the extent of sessions separately and signed, so that a truncated or rewritten log is
// detected:
//
//	<dir>/<session>-<store>.jsonl   a line whenever something was decided or ended
//	<dir>/<session>-<store>.apart   the session continued in memory
//	<dir>/<session>-<store>.whole   the stamps of completely valid logs
//
// A failure to save there never stops a session. The nil Heads saves nothing.
type Heads struct {
	Dir string
	// Key returns the signing key. It is called on the first signature; without a key nothing is saved.
	Key func() *authkey.Key
	Now func() time.Time
}

// openFile returns the heads of the session in dir.
func (h *Heads) openFile(dir, session string) *headFile {
	if h == nil || h.Dir == "" {
		return &headFile{}
	}
	store := sha256.Sum256([]byte(filepath.Dir(dir)))
	return &headFile{Heads: h, session: session, logs: dir,
		base: filepath.Join(h.Dir, fmt.Sprintf("%s-%x", session, store[:6]))}
}

// Files returns the files with the heads of the session in dir.
func (h *Heads) Files(dir string) []string {
	base := h.openFile(dir, filepath.Base(dir)).base
	if base == "" {
		return nil
	}
	return []string{base + ".jsonl", base + markFile, base + validFile}
}

// headFile holds the heads of one session.
type headFile struct {
	*Heads
	session, logs string
	base          string // of its files; "" if nothing is kept
	key           *authkey.Key
	f             *os.File
	newest        uint64 // record of the last head
	disabled      bool   // writing failed
}

// headLine is an encoded head.
type headLine struct {
	Seq          uint64    `json:"seq"`
	Events       headEnd   `json:"events,omitzero"`
	Audit        headEnd   `json:"audit,omitzero"`
	Conversation headEnd   `json:"conversation,omitzero"`
	Mended       bool      `json:"mended,omitempty"`
	Imported     bool      `json:"imported,omitempty"`
	Found        bool      `json:"found,omitempty"`
	Time         time.Time `json:"time,omitzero"`
	Sig          string    `json:"sig,omitempty"`
}

type headEnd struct {
	Seq uint64 `json:"seq"`
	Sum string `json:"sum"`
}

const headPurpose = "how far a session goes"

// signedData returns the data that l's signature covers.
func (h *headFile) signedData(l headLine) [][]byte {
	l.Sig = ""
	return [][]byte{[]byte(h.logs), []byte(h.session), jsonx.MustMarshal(l)}
}

func newHeadEnd(e audit.End) headEnd {
	if e.Seq == 0 {
		return headEnd{}
	}
	return headEnd{e.Seq, string(e.Link[:])}
}

func (e headEnd) decode() (end audit.End) {
	end.Seq = e.Seq
	copy(end.Link[:], e.Sum)
	return end
}

// add saves one more head, if possible.
func (h *headFile) add(head audit.Head) {
	if h.base == "" || h.disabled || head.Seq == h.newest && !head.Repaired && !head.Imported {
		return
	}
	if err := h.write(head); err != nil {
		h.disabled = true
		return
	}
	h.newest = head.Seq
}

func (h *headFile) write(head audit.Head) (err error) {
	if h.f == nil {
		if err := errors.Join(h.loadKey(), os.MkdirAll(h.Dir, dirMode)); err != nil {
			return err
		}
		h.f, err = os.OpenFile(h.base+".jsonl", os.O_WRONLY|os.O_CREATE|os.O_APPEND|disk.NoFollow, fileMode)
		if err != nil {
			return err
		}
	}
	l := headLine{Seq: head.Seq, Events: newHeadEnd(head.Ends[0]), Audit: newHeadEnd(head.Ends[1]),
		Conversation: newHeadEnd(head.Ends[2]), Mended: head.Repaired, Imported: head.Imported, Found: head.Found}
	if h.Now != nil {
		l.Time = h.Now().UTC().Truncate(time.Second)
	}
	l.Sig = h.key.Sign(headPurpose, h.signedData(l)...)
	_, err = h.f.Write(append(jsonx.MustMarshal(l), '\n'))
	return err
}

var errNoKey = errors.New("no signing key")

// loadKey obtains the key.
func (h *headFile) loadKey() error {
	if h.key == nil {
		h.key = h.Key()
	}
	if h.key == nil {
		return errNoKey
	}
	return nil
}

// readAll returns the heads signed with this user's key, oldest first, from the last limit bytes of the
// file; zero means all of it.
func (h *headFile) readAll(limit int64) ([]audit.Head, error) {
	if h.base == "" {
		return nil, nil
	}
	f, err := os.OpenFile(h.base+".jsonl", os.O_RDONLY|disk.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := h.loadKey(); err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && limit > 0 && info.Size() > limit {
		if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	// Skip incomplete lines and lines of others.
	var heads []audit.Head

	for line := range bytes.Lines(text) {
		var l headLine
		if json.Unmarshal(line, &l) != nil || !h.key.Verify(l.Sig, headPurpose, h.signedData(l)...) {
			continue
		}
		heads = append(heads, audit.Head{
			Seq: l.Seq, Ends: [3]audit.End{l.Events.decode(), l.Audit.decode(), l.Conversation.decode()}, Repaired: l.Mended,
			Imported: l.Imported, Found: l.Found, Time: l.Time,
		})
	}
	return heads, nil
}

const tailSize = 4 << 10 // more than one head's size

// readLast returns the newest head, or the zero one.
func (h *headFile) readLast() (head audit.Head) {
	if heads, err := h.readAll(tailSize); err == nil && len(heads) > 0 {
		head = heads[len(heads)-1]
		h.newest = head.Seq
	}
	return head
}

// The mark of a session that continued in memory.
const (
	markName = "apart"
	markFile = "." + markName
)

// createEmpty creates an empty file that survives a crash of the machine.
func createEmpty(d disk.Disk, path string) error {
	f, err := d.Open(path, os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), disk.SyncDirs(d, filepath.Dir(path)))
}

// existingMarks returns the existing marks.
func (h *headFile) existingMarks(dir string) (paths []string) {
	all := []string{filepath.Join(dir, markName)}
	if h.base != "" {
		all = append(all, h.base+markFile)
	}
	for _, path := range all {
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

const (
	validFile    = ".whole"
	validPurpose = "logs that hold to their ends"
)

// validLogs is the saved record of completely valid logs.
type validLogs struct {
	Logs stamps `json:"logs"` // zero for a log that is short or recent
	Sig  string `json:"sig"`
}

func (h *headFile) signedStamps(logs stamps) [][]byte {
	return [][]byte{[]byte(h.logs), []byte(h.session), jsonx.MustMarshal(logs)}
}

// validStamps returns the saved stamps of the logs when they were completely valid.
func (h *headFile) validStamps() stamps {
	if h.base == "" {
		return stamps{}
	}
	text, err := os.ReadFile(h.base + validFile)
	var w validLogs
	if err != nil || json.Unmarshal(text, &w) != nil || h.loadKey() != nil ||
		!h.key.Verify(w.Sig, validPurpose, h.signedStamps(w.Logs)...) {
		return stamps{}
	}
	return w.Logs
}

// saveValidStamps saves these stamps, if possible. An incomplete file is ignored.
func (h *headFile) saveValidStamps(logs stamps) {
	if h.base == "" || h.loadKey() != nil || os.MkdirAll(h.Dir, dirMode) != nil {
		return
	}
	text := jsonx.MustMarshal(validLogs{logs, h.key.Sign(validPurpose, h.signedStamps(logs)...)})
	_ = os.WriteFile(h.base+validFile, text, fileMode) // without it the logs are checked again
}
