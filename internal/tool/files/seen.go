package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"coder/internal/host/patch"
)

// Seen remembers which content of each file the model knows, so that the model does not overwrite later
// changes. For files that are not large it keeps the content itself, to show what changed. It ignores
// file times, which are unreliable. The zero Seen and a nil Seen know nothing and object to nothing.
type Seen struct {
	mu    sync.Mutex // guards the fields below
	files map[string]*state
	order []string // files with content, oldest first
	kept  int      // bytes of content
}

// state is a file's content as the model knows it.
type state struct {
	hash    string // of the content; "" if unknown
	content []byte // nil if not kept
}

const (
	maxSeen  = 10_000   // remembered files; beyond that, all are forgotten
	maxKept  = 1 << 20  // bytes of a file to keep
	allKept  = 16 << 20 // bytes of all kept content
	newLines = 40       // lines of a diff of changes
	newChars = 4000     // characters of it
)

// note remembers the content that the model knows by its hash, and returns it for the record. content,
// nil if it is not to be kept, must not be changed afterwards.
func (s *Seen) note(at, hash string, content []byte) map[string]string {
	if s == nil {
		return nil
	}
	st := &state{hash: hash}
	if len(content) <= maxKept {
		st.content = content
	}
	s.put(at, st)
	return map[string]string{at: hash}
}

// hashOf returns the SHA-256 of a content, or "" if it cannot be read.
func hashOf(content io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Recall records that an earlier process showed the model a file, or wrote it for the model, with this
// content hash. With an empty hash the file counts as changed.
func (s *Seen) Recall(at, hash string) { s.put(at, &state{hash: hash}) }

// Unsee forgets a file that the model no longer knows.
func (s *Seen) Unsee(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(at)
	delete(s.files, at)
}

func (s *Seen) put(at string, st *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || len(s.files) >= maxSeen {
		s.files, s.order, s.kept = make(map[string]*state), nil, 0
	}
	s.forget(at)
	s.files[at] = st
	if st.content != nil {
		s.order, s.kept = append(s.order, at), s.kept+len(st.content)
	}
	for s.kept > allKept {
		s.forget(s.order[0])
	}
}

// forget drops a file's content, but not its hash.
func (s *Seen) forget(at string) {
	if i := slices.Index(s.order, at); i >= 0 {
		s.kept -= len(s.files[at].content)
		s.files[at].content, s.order = nil, slices.Delete(s.order, i, i+1)
	}
}

// check returns an error if the model knows the file with another content.
func (s *Seen) check(at string, info fs.FileInfo, now []byte) error {
	if s == nil || info == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.files[at]
	switch {
	case !ok:
		return nil
	case known.content != nil && bytes.Equal(known.content, now):
		return nil
	case known.content == nil && known.hash != "" && known.hash == hashOf(bytes.NewReader(now)):
		return nil
	}
	return fmt.Errorf("%s changed on disk since it was read; re-read it%s", at, whatChanged(at, known.content, now))
}

// whatChanged shows the beginning of a file's change, if both states are known and text.
func whatChanged(at string, before, now []byte) string {
	if before == nil || now == nil || textOnly(at, before) != nil || textOnly(at, now) != nil {
		return ""
	}
	diff, _, _ := patch.Unified(at, before, now)
	if diff == "" {
		return ""
	}
	text, cut := patch.Cut(diff, newLines, newChars)
	if cut {
		text += "…\n"
	}
	return "\nwhat changed:\n" + text
}
