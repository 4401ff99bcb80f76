package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"coder/internal/patch"
)

// Seen remembers which state of each file the model knows, so that it does not
// overwrite what somebody else did since. Of files that are not large it keeps
// the content, to tell whether it is still the same and to show what changed.
// The zero Seen knows nothing and objects to nothing; so does a nil one.
type Seen struct {
	mu    sync.Mutex // guards the fields below
	files map[string]*state
	order []string // whose content is kept, the longest known first
	kept  int      // bytes of content
}

// state is a file as the model knows it.
type state struct {
	size    int64
	mod     time.Time
	content []byte // nil if it is not kept

	recalled time.Time // set if all we know is when the model last knew the file
}

const (
	maxSeen  = 10_000   // files remembered; a longer memory starts anew
	maxKept  = 1 << 20  // bytes of a file whose content is kept
	allKept  = 16 << 20 // bytes of content kept in all
	newLines = 40       // lines of a diff that says what changed
	newChars = 4000     // characters of it
)

// note remembers that the model knows the file at this state. content, if
// given, must not be changed afterwards.
func (s *Seen) note(at string, info fs.FileInfo, content []byte) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || len(s.files) >= maxSeen {
		s.files, s.order, s.kept = make(map[string]*state), nil, 0
	}
	s.forget(at)
	st := &state{size: info.Size(), mod: info.ModTime()}
	if content != nil && len(content) <= maxKept {
		st.content = content
		s.order, s.kept = append(s.order, at), s.kept+len(content)
	}
	s.files[at] = st
	for s.kept > allKept {
		s.forget(s.order[0])
	}
}

// Recall takes note that an earlier process showed the model a file, or wrote it
// for the model, at that time. Of such a file only the time is known: it counts
// as changed if it was written to since.
func (s *Seen) Recall(at string, when time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || len(s.files) >= maxSeen {
		s.files, s.order, s.kept = make(map[string]*state), nil, 0
	}
	s.forget(at)
	s.files[at] = &state{recalled: when}
}

// forget lets go of a file's content, not of its state.
func (s *Seen) forget(at string) {
	if i := slices.Index(s.order, at); i >= 0 {
		s.kept -= len(s.files[at].content)
		s.files[at].content, s.order = nil, slices.Delete(s.order, i, i+1)
	}
}

// check objects if the model knows the file, but not at this state.
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
	case !known.recalled.IsZero() && !info.ModTime().After(known.recalled):
		return nil
	case known.content != nil && bytes.Equal(known.content, now):
		return nil
	case known.recalled.IsZero() && known.content == nil && known.size == info.Size() && known.mod.Equal(info.ModTime()):
		return nil
	}
	return fmt.Errorf("%s changed on disk since it was read; read it again%s", at, whatChanged(at, known.content, now))
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
