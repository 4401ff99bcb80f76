package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"slices"
	"sync"

	"coder/internal/core/message"
	"coder/internal/host/patch"
)

// SeenFiles remembers which content of each file the model knows, so that the model does not overwrite later
// changes. For files that are not large it keeps the content itself, to show what changed. It ignores
// file times, which are unreliable. The zero Seen and a nil Seen know nothing and object to nothing.
type SeenFiles struct {
	mu          sync.Mutex // guards the fields below
	files       map[string]*seenFile
	order       []string // files with content, oldest first
	contentSize int      // bytes of content
}

// seenFile is a file's content as the model knows it.
type seenFile struct {
	hash    string // of the content; "" if unknown
	content []byte // nil if not kept
}

const (
	maxSeenFiles    = 10_000   // remembered files; beyond that, all are forgotten
	maxContent      = 1 << 20  // bytes of a file to keep
	maxTotalContent = 16 << 20 // bytes of all kept content
	maxDiffLines    = 40       // lines of a diff of changes
	maxDiffChars    = 4000     // characters of it
)

// remember remembers the content that the model knows by its hash, and returns it for the record. content,
// nil if it is not to be kept, must not be changed afterwards.
func (s *SeenFiles) remember(at, hash string, content []byte) map[string]string {
	if s == nil {
		return nil
	}
	st := &seenFile{hash: hash}
	if len(content) <= maxContent {
		st.content = content
	}
	s.set(at, st)
	return map[string]string{at: hash}
}

// hashContent returns the SHA-256 of a content, or "" if it cannot be read.
func hashContent(content io.Reader) string {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Restore records that an earlier process showed the model a file, or wrote it for the model, with this
// content hash. With an empty hash the file counts as changed.
func (s *SeenFiles) Restore(at, hash string) { s.set(at, &seenFile{hash: hash}) }

// Forget forgets a file that the model no longer knows.
func (s *SeenFiles) Forget(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropContent(at)
	delete(s.files, at)
}

func (s *SeenFiles) set(at string, st *seenFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || len(s.files) >= maxSeenFiles {
		s.files, s.order, s.contentSize = make(map[string]*seenFile), nil, 0
	}
	s.dropContent(at)
	s.files[at] = st
	if st.content != nil {
		s.order, s.contentSize = append(s.order, at), s.contentSize+len(st.content)
	}
	for s.contentSize > maxTotalContent {
		s.dropContent(s.order[0])
	}
}

// dropContent drops a file's content, but not its hash.
func (s *SeenFiles) dropContent(at string) {
	if i := slices.Index(s.order, at); i >= 0 {
		s.contentSize -= len(s.files[at].content)
		s.files[at].content, s.order = nil, slices.Delete(s.order, i, i+1)
	}
}

// checkUnchanged returns an error if the model knows the file with another content.
func (s *SeenFiles) checkUnchanged(at string, info fs.FileInfo, now []byte) error {
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
	case known.content == nil && known.hash != "" && known.hash == hashContent(bytes.NewReader(now)):
		return nil
	}
	return message.Errorf("%s changed on disk since it was read; re-read it%s", at, describeChange(at, known.content,
		now))
}

// describeChange shows the beginning of a file's change, if both states are known and text.
func describeChange(at string, before, now []byte) string {
	if before == nil || now == nil || patch.ChangedBytes(before, now) > maxChanged || checkText(at, before) != nil ||
		checkText(at, now) != nil {
		return ""
	}
	diff, _, _ := patch.Unified(at, before, now)
	if diff == "" {
		return ""
	}
	text, cut := patch.Truncate(diff, maxDiffLines, maxDiffChars)
	if cut {
		text += "…\n"
	}
	return "\nwhat changed:\n" + text
}
