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

// ownForm reports whether git stores all files of a repository unchanged, apart from line ends, as far
// as this is certain without running git. It also returns the conversion of line ends. within are the
// folders with an attributes file.
func (s *scanning) ownForm(r *repo, within map[string]bool) (ends lineEnds, sure bool) {
	own := s.k.o.GitFiles
	if own == nil || slices.ContainsFunc(s.k.ignored, func(name string) bool { return path.Base(name) == attributes }) {
		return endsUnknown, false
	}
	if ends, sure = r.ownForm(*own); !sure {
		return endsUnknown, false
	}
	for dir, f := range s.next.folders {
		i, found := f.index(attributes)
		if !found || !lies(dir, r.root) {
			continue
		}
		delete(within, dir)
		if st := f.stamp(i); !st.mode.IsRegular() || st.size > maxSettings {
			return endsUnknown, false
		}
		err := s.k.withContent(path.Join(dir, attributes), func(content io.ReadSeeker, _ int64) error {
			text, err := io.ReadAll(content)
			was := ends
			ends, sure = endsBy(text)
			ends = max(ends, was)
			return err
		})
		if err != nil || !sure {
			return endsUnknown, false
		}
	}
	return ends, len(within) == 0 // git reads missing ones from its index
}

// attributes is the name of a folder's attributes file.
const attributes = ".gitattributes"

// endsBy returns how attributes make git change line ends. sure is false if they may change more of a
// file.
func endsBy(text []byte) (ends lineEnds, sure bool) {
	if namesAny(text, converted...) {
		return endsUnknown, false
	}
	if namesAny(text, ending...) {
		return endsMayChange, true
	}
	return endsStay, true
}

func namesAny(text []byte, words ...string) bool {
	text = bytes.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

func (r *repo) ownForm(own GitFiles) (ends lineEnds, sure bool) {
	if _, err := r.door.Find("git"); err != nil || !isOurs(r.top) || !isOurs(r.git) {
		return endsUnknown, false // git could not read its objects back
	}
	common := r.git
	if text, err := repofile.Own(filepath.Join(r.git, "commondir"), maxSettings); err == nil {
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
		named = append(named, filepath.Join(r.top, dir, attributes))
		next, _, _ := strings.Cut(strings.TrimPrefix(r.prefix, dir+"/"), "/")
		dir = path.Join(dir, next)
	}
	ends = endsStay
	for _, name := range named {
		text, err := repofile.Own(name, maxSettings)
		of, sure := endsBy(text)
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
	text, err := repofile.Own(name, maxSettings)
	if err != nil {
		return exists(name)
	}
	return namesAny(text, "attributesfile", "autocrlf", "include")
}

// isOurs reports whether a folder belongs to the current user. Git reads no others.
func isOurs(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
