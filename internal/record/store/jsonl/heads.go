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

// Heads keeps how far sessions go, apart from them and signed, so that a log
// which was cut or written anew is known for it:
//
//	<dir>/<session>-<store>.jsonl   a line whenever something was decided or ended
//	<dir>/<session>-<store>.apart   the session went on in memory
//	<dir>/<session>-<store>.whole   the stamps of logs that held to their ends
//
// What cannot be kept there is no reason to stop. The nil Heads keeps nothing.
type Heads struct {
	Dir string
	// Key signs. It is asked for when there is something to sign; without one
	// nothing is kept.
	Key func() *authkey.Key
	Now func() time.Time
}

// of is the heads of the session whose logs are in dir.
func (h *Heads) of(dir, session string) *headFile {
	if h == nil || h.Dir == "" {
		return &headFile{}
	}
	store := sha256.Sum256([]byte(filepath.Dir(dir)))
	return &headFile{Heads: h, session: session, logs: dir, base: filepath.Join(h.Dir, fmt.Sprintf("%s-%x", session, store[:6]))}
}

// Files are those that tell how far the session goes whose logs are in dir.
func (h *Heads) Files(dir string) []string {
	base := h.of(dir, filepath.Base(dir)).base
	if base == "" {
		return nil
	}
	return []string{base + ".jsonl", base + markFile, base + wholeFile}
}

// headFile is the heads of one session.
type headFile struct {
	*Heads
	session, logs string
	base          string // of its files; "" if nothing is kept
	key           *authkey.Key
	f             *os.File
	newest        uint64 // the record of the last head
	off           bool   // it could not be written
}

// headLine is a head as written.
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

// signed is what the signature of l is of.
func (h *headFile) signed(l headLine) [][]byte {
	l.Sig = ""
	return [][]byte{[]byte(h.logs), []byte(h.session), jsonx.Must(l)}
}

func endOf(e audit.End) headEnd {
	if e.Seq == 0 {
		return headEnd{}
	}
	return headEnd{e.Seq, string(e.Link[:])}
}

func (e headEnd) end() (end audit.End) {
	end.Seq = e.Seq
	copy(end.Link[:], e.Sum)
	return end
}

// add keeps one more head, if that can be done.
func (h *headFile) add(head audit.Head) {
	if h.base == "" || h.off || head.Seq == h.newest && !head.Mended && !head.Imported {
		return
	}
	if err := h.write(head); err != nil {
		h.off = true
		return
	}
	h.newest = head.Seq
}

func (h *headFile) write(head audit.Head) (err error) {
	if h.f == nil {
		if err := errors.Join(h.unlock(), os.MkdirAll(h.Dir, dirMode)); err != nil {
			return err
		}
		h.f, err = os.OpenFile(h.base+".jsonl", os.O_WRONLY|os.O_CREATE|os.O_APPEND|disk.NoFollow, fileMode)
		if err != nil {
			return err
		}
	}
	l := headLine{Seq: head.Seq, Events: endOf(head.Ends[0]), Audit: endOf(head.Ends[1]), Conversation: endOf(head.Ends[2]), Mended: head.Mended, Imported: head.Imported, Found: head.Found}
	if h.Now != nil {
		l.Time = h.Now().UTC().Truncate(time.Second)
	}
	l.Sig = h.key.Sign(headPurpose, h.signed(l)...)
	_, err = h.f.Write(append(jsonx.Must(l), '\n'))
	return err
}

var errNoKey = errors.New("no signing key")

// unlock gets the key.
func (h *headFile) unlock() error {
	if h.key == nil {
		h.key = h.Key()
	}
	if h.key == nil {
		return errNoKey
	}
	return nil
}

// all lists the heads that were signed with our key, oldest first, of the last
// limit bytes of the file; zero for all of it.
func (h *headFile) all(limit int64) ([]audit.Head, error) {
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
	if err := h.unlock(); err != nil {
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
	// A line that is not whole or not ours is none
	var heads []audit.Head

	for line := range bytes.Lines(text) {
		var l headLine
		if json.Unmarshal(line, &l) != nil || !h.key.Verify(l.Sig, headPurpose, h.signed(l)...) {
			continue
		}
		heads = append(heads, audit.Head{
			Seq: l.Seq, Ends: [3]audit.End{l.Events.end(), l.Audit.end(), l.Conversation.end()}, Mended: l.Mended, Imported: l.Imported, Found: l.Found, Time: l.Time,
		})
	}
	return heads, nil
}

const lastHeads = 4 << 10 // holds more than one head

// last is the newest head, the zero one if there is none.
func (h *headFile) last() (head audit.Head) {
	if heads, err := h.all(lastHeads); err == nil && len(heads) > 0 {
		head = heads[len(heads)-1]
		h.newest = head.Seq
	}
	return head
}

// The mark of a session that went on in memory.
const (
	markName = "apart"
	markFile = "." + markName
)

// touch makes an empty file that outlives the machine.
func touch(d disk.Disk, path string) error {
	f, err := d.Open(path, os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), disk.SyncDirs(d, filepath.Dir(path)))
}

// marks names the marks that there are.
func (h *headFile) marks(dir string) (paths []string) {
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
	wholeFile    = ".whole"
	wholePurpose = "logs that hold to their ends"
)

// wholeLogs is what is kept of logs that held to their ends.
type wholeLogs struct {
	Logs stamps `json:"logs"` // none of one that is short, or was just written
	Sig  string `json:"sig"`
}

func (h *headFile) signedWhole(logs stamps) [][]byte {
	return [][]byte{[]byte(h.logs), []byte(h.session), jsonx.Must(logs)}
}

// whole are the stamps that the logs had when they held to their ends, as far as that
// was kept.
func (h *headFile) whole() stamps {
	if h.base == "" {
		return stamps{}
	}
	text, err := os.ReadFile(h.base + wholeFile)
	var w wholeLogs
	if err != nil || json.Unmarshal(text, &w) != nil || h.unlock() != nil || !h.key.Verify(w.Sig, wholePurpose, h.signedWhole(w.Logs)...) {
		return stamps{}
	}
	return w.Logs
}

// keepWhole keeps these stamps, if that can be done. A file that is not whole itself
// says nothing.
func (h *headFile) keepWhole(logs stamps) {
	if h.base == "" || h.unlock() != nil || os.MkdirAll(h.Dir, dirMode) != nil {
		return
	}
	text := jsonx.Must(wholeLogs{logs, h.key.Sign(wholePurpose, h.signedWhole(logs)...)})
	_ = os.WriteFile(h.base+wholeFile, text, fileMode) // the logs are checked again without it
}
