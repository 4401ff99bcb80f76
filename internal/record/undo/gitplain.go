package undo

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/host/repofile"
)

// GitFiles are the user's files that git reads in addition to a repository's.
type GitFiles struct {
	Configs    []string // settings
	Attributes []string // attributes of the files in all repositories
}

// maxSettings limits the size of a settings file to examine.
const maxSettings = 256 << 10

// storesUnchanged reports whether git stores all files of a repository unchanged, apart from line ends, as far
// as this is certain without running git. It also returns the conversion of line ends. within are the
// folders with an attributes file.
func (s *scanner) storesUnchanged(r *repo, within map[string]bool) (ends lineEnds, sure bool) {
	own := s.k.o.GitFiles
	if own == nil || slices.ContainsFunc(s.k.ignored,
		func(name string) bool { return path.Base(name) == attributesFile }) {
		return endsUnknown, false
	}
	if ends, sure = r.storesUnchanged(*own); !sure {
		return endsUnknown, false
	}
	for dir, f := range s.next.folders {
		i, found := f.index(attributesFile)
		if !found || !isBelow(dir, r.root) {
			continue
		}
		delete(within, dir)
		if st := f.stamp(i); !st.mode.IsRegular() || st.size > maxSettings {
			return endsUnknown, false
		}
		err := s.k.withContent(path.Join(dir, attributesFile), func(content io.ReadSeeker, _ int64) error {
			text, err := io.ReadAll(content)
			was := ends
			ends, sure = parseLineEnds(text)
			ends = max(ends, was)
			return err
		})
		if err != nil || !sure {
			return endsUnknown, false
		}
	}
	return ends, len(within) == 0 // git reads missing ones from its index
}

// attributesFile is the name of a folder's attributes file.
const attributesFile = ".gitattributes"

// parseLineEnds returns how attributes make git change line ends. sure is false if they may change more of a
// file.
func parseLineEnds(text []byte) (ends lineEnds, sure bool) {
	if containsAnyWord(text, convertAttributes...) {
		return endsUnknown, false
	}
	if containsAnyWord(text, lineEndAttributes...) {
		return endsMayChange, true
	}
	return endsUnchanged, true
}

func containsAnyWord(text []byte, words ...string) bool {
	text = bytes.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

func (r *repo) storesUnchanged(own GitFiles) (ends lineEnds, sure bool) {
	if _, err := r.launcher.Find("git"); err != nil || !isOwned(r.top) || !isOwned(r.git) {
		return endsUnknown, false // git could not read its objects back
	}
	common := r.git
	if text, err := repofile.ReadOwn(filepath.Join(r.git, "commondir"), maxSettings); err == nil {
		if common = strings.TrimSpace(string(text)); !filepath.IsAbs(common) {
			common = filepath.Join(r.git, common)
		}
	}
	configs := append(slices.Clip(own.Configs), filepath.Join(common, "config"), filepath.Join(r.git, "config.worktree"))
	if slices.ContainsFunc(configs, mayConvert) {
		return endsUnknown, false
	}
	named := append(slices.Clip(own.Attributes), filepath.Join(common, "info", "attributes"))
	for dir := "."; dir != strings.TrimSuffix(r.prefix, "/") && r.prefix != ""; { // the folders above the root
		named = append(named, filepath.Join(r.top, dir, attributesFile))
		next, _, _ := strings.Cut(strings.TrimPrefix(r.prefix, dir+"/"), "/")
		dir = path.Join(dir, next)
	}
	ends = endsUnchanged
	for _, name := range named {
		text, err := repofile.ReadOwn(name, maxSettings)
		of, sure := parseLineEnds(text)
		if err != nil && exists(name) || !sure {
			return endsUnknown, false
		}
		ends = max(ends, of)
	}
	return ends, true
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// mayConvert reports whether settings may make git store files in another form.
func mayConvert(name string) bool {
	text, err := repofile.ReadOwn(name, maxSettings)
	if err != nil {
		return exists(name)
	}
	return containsAnyWord(text, "attributesfile", "autocrlf", "include")
}

// isOwned reports whether a folder belongs to the current user. Git reads no others.
func isOwned(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
