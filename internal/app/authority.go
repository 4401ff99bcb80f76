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

// sealKey returns the key that seals this user's records. If it cannot be saved,
// it is for this process only: later processes will not accept its seals.
func (s *Store) sealKey() *authkey.Key {
	if s.ephemeral {
		return authkey.NewTemporary()
	}
	err := errors.New("no home folder found")
	if s.home != "" {
		var kept *authkey.Key
		if kept, err = authkey.Open(s.home); err == nil {
			return kept
		}
	}
	s.warn(fmt.Sprintf("answers and modes apply to this run only: %v", err))
	return authkey.NewTemporary()
}

// isCopied reports whether a session was imported, or forked from another one.
func (s *Store) isCopied(sessionID string) bool {
	report, err := s.Verify(sessionID)
	return err == nil && report.Imported > 0 && !report.Found
}

// doubtReason returns why nothing in a session's logs counts, even if sealed, or
// "": the logs were changed, belong to another user, or are tracked by git.
func (s *Store) doubtReason(sessionID string) string {
	switch {
	case s.ephemeral:
		return ""
	case s.damagedSessions[sessionID]:
		return "some of its records are missing or were changed"
	}
	dir := s.Path("log", sessionID)
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
	if file := trackedFile(dir); file != "" {
		return fmt.Sprintf("%s is tracked by git", file)
	}
	return ""
}

// trackedFile returns the name of a git-tracked file in dir, or "". An unreadable index may contain any file.
func trackedFile(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir
	}
	top, git := repofile.FindRepository(filepath.Dir(real))
	if top == "" {
		return ""
	}
	folder := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(real, top), "/")) + "/"
	files, _ := filepath.Glob(filepath.Join(git, "sharedindex.*"))
	for _, file := range append(files, filepath.Join(git, "index")) {
		data, err := repofile.NewRoot(git).Read(filepath.Base(file), maxGitIndex)
		spelt := len(data) > 8 && binary.BigEndian.Uint32(data[4:]) < 4 // all names in full
		if errors.Is(err, fs.ErrNotExist) || err == nil && spelt && !bytes.Contains(data, []byte(folder)) {
			continue
		}
		found := ""
		parseErr := gitindex.Read(data, gitindex.OIDSize(data), folder,
			func(e gitindex.Entry) { found = folder + string(e.Name) })
		if err != nil || parseErr != nil {
			return folder
		}
		if found != "" {
			return found
		}
	}
	return ""
}
