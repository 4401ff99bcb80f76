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

// Seen remembers which content of each file the model knows, so that it does not
// overwrite what somebody else did since. Of files that are not large it keeps
// the content itself, to show what changed. It never goes by times: whose clock
// they are of, and whether it was set back, nobody knows. The zero Seen knows
// nothing and objects to nothing; so does a nil one.
type Seen struct {
	mu    sync.Mutex // guards the fields below
	files map[string]*state
	order []string // whose content is kept, the longest known first
	kept  int      // bytes of content
}

// state is a file as the model knows it.
type state struct {
	hash    string // of the content; "" if nobody knows which that was
	content []byte // nil if it is not kept
}

const (
	maxSeen  = 10_000   // files remembered; a longer memory starts anew
	maxKept  = 1 << 20  // bytes of a file whose content is kept
	allKept  = 16 << 20 // bytes of content kept in all
	newLines = 40       // lines of a diff that says what changed
	newChars = 4000     // characters of it
)

// note remembers that the model knows the file with the content of this hash,
// and says so for the record. The content, nil if it is not to be kept, must not
// be changed afterwards.
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

// hashOf is the SHA-256 of a content; "" if it cannot be read.
func hashOf(content io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Recall takes note that an earlier process showed the model a file, or wrote it
// for the model, with a content of that hash. Without one it counts as changed.
func (s *Seen) Recall(at, hash string) { s.put(at, &state{hash: hash}) }

// Unsee takes note that the model knows nothing of a file any more.
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

// forget lets go of a file's content, not of its hash.
func (s *Seen) forget(at string) {
	if i := slices.Index(s.order, at); i >= 0 {
		s.kept -= len(s.files[at].content)
		s.files[at].content, s.order = nil, slices.Delete(s.order, i, i+1)
	}
}

// check objects if the model knows the file, but not with the content it has now.
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

// whatChanged shows the beginning of what somebody did to a file, if both its
// states are known and text.
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
