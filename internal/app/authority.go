package app

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"coder/internal/host/authkey"
	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// key is what this user's records are sealed with. Where none can be kept there
// is one for this process alone: later ones will not know its seals.
func (s *Store) key() *authkey.Key {
	if s.ephemeral {
		return authkey.Temporary()
	}
	err := errors.New("no home folder found")
	if s.home != "" {
		var kept *authkey.Key
		if kept, err = authkey.Open(s.home); err == nil {
			return kept
		}
	}
	s.warn(fmt.Sprintf("answers and modes apply to this run only: %v", err))
	return authkey.Temporary()
}

// copied reports whether a session was imported, or forked from another one.
func (s *Store) copied(sessionID string) bool {
	report, err := s.Verify(sessionID)
	return err == nil && report.Imported > 0 && !report.Found
}

// doubt says why nothing in the logs of a session counts, whoever sealed it: they
// are not what was left there, belong to somebody else, or come and go with a
// repository.
func (s *Store) doubt(sessionID string) string {
	switch {
	case s.ephemeral:
		return ""
	case s.damaged[sessionID]:
		return "some of its records are missing or were changed"
	}
	dir := s.Dir("log", sessionID)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	names := []string{"."}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range names {
		var stat syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(dir, name), &stat); err != nil || int(stat.Uid) != os.Geteuid() {
			return fmt.Sprintf("%s belongs to another user", filepath.Join(".coder", "log", sessionID, name))
		}
	}
	if file := tracked(dir); file != "" {
		return fmt.Sprintf("%s is tracked by git", file)
	}
	return ""
}

// tracked is a file in dir that git keeps track of, by its name in the
// repository; "" if there is none. An index that cannot be read may name any.
func tracked(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir
	}
	top, git := repofile.Repository(filepath.Dir(real))
	if top == "" {
		return ""
	}
	folder := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(real, top), "/")) + "/"
	files, _ := filepath.Glob(filepath.Join(git, "sharedindex.*"))
	for _, file := range append(files, filepath.Join(git, "index")) {
		data, err := repofile.Below(git).Read(filepath.Base(file), maxGitIndex)
		spelt := len(data) > 8 && binary.BigEndian.Uint32(data[4:]) < 4 // every name in full
		if errors.Is(err, fs.ErrNotExist) || err == nil && spelt && !bytes.Contains(data, []byte(folder)) {
			continue
		}
		found := ""
		parseErr := gitindex.Read(data, gitindex.OIDSize(data), folder, func(e gitindex.Entry) { found = folder + string(e.Name) })
		if err != nil || parseErr != nil {
			return folder
		}
		if found != "" {
			return found
		}
	}
	return ""
}
