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
	err := errors.New("there is no home folder")
	if s.home != "" {
		var kept *authkey.Key
		if kept, err = authkey.Open(s.home); err == nil {
			return kept
		}
	}
	s.warn(fmt.Sprintf("answers and modes are not remembered beyond this run: %v", err))
	return authkey.Temporary()
}

// doubt says why nothing in the logs of a session counts, whoever sealed it: they
// are not what was left there, belong to somebody else, or come and go with a
// repository.
func (s *Store) doubt(sessionID string) string {
	switch {
	case s.ephemeral:
		return ""
	case s.damaged[sessionID]:
		return "records of it are missing or were changed"
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
		info, err := os.Lstat(filepath.Join(dir, name))
		if stat, ok := infoStat(info); err != nil || !ok || int(stat.Uid) != os.Geteuid() {
			return fmt.Sprintf("%s belongs to another user", filepath.Join(".coder", "log", sessionID, name))
		}
	}
	if file := tracked(dir); file != "" {
		return fmt.Sprintf("%s is tracked by git", file)
	}
	return ""
}

func infoStat(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}

// tracked is a file in dir that git keeps track of, by its name in the
// repository; "" if there is none. Git itself is not asked: a repository may
// bring programs that it would run.
func tracked(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir
	}
	for top := filepath.Dir(real); ; top = filepath.Dir(top) {
		if git, ok := gitDir(top); ok {
			return indexed(git, filepath.ToSlash(strings.TrimPrefix(real, top)[1:])+"/")
		}
		if filepath.Dir(top) == top {
			return ""
		}
	}
}

// maxGitIndex is the largest index that is read.
const maxGitIndex = 1 << 30

// gitDir is where the repository of the work tree top lies.
func gitDir(top string) (string, bool) {
	name := filepath.Join(top, ".git")
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return name, err == nil
	}
	text, err := repofile.Below(top).Read(".git", maxGitIndex)
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !filepath.IsAbs(to) {
		to = filepath.Join(top, to)
	}
	return to, err == nil && ok
}

// indexed is a file below folder that an index of the repository names. An index
// that cannot be read may name any.
func indexed(git, folder string) string {
	files, _ := filepath.Glob(filepath.Join(git, "sharedindex.*"))
	for _, file := range append(files, filepath.Join(git, "index")) {
		data, err := repofile.Below(git).Read(filepath.Base(file), maxGitIndex)
		if errors.Is(err, fs.ErrNotExist) || err == nil && spellsOut(data) && !bytes.Contains(data, []byte(folder)) {
			continue
		}
		size, sizeErr := gitindex.OIDSize(bytes.NewReader(data), int64(len(data)))
		found := ""
		parseErr := gitindex.Read(bytes.NewReader(data), size, folder, func(e gitindex.Entry) { found = folder + string(e.Name) })
		if err != nil || sizeErr != nil || parseErr != nil {
			return folder
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// spellsOut reports whether an index holds every name in full.
func spellsOut(index []byte) bool {
	return len(index) > 8 && binary.BigEndian.Uint32(index[4:]) < 4
}
