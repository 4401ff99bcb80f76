package undo

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/host/repofile"
)

// GitFiles are files of the person's own that git reads beside those of a repository.
type GitFiles struct {
	Configs    []string // settings
	Attributes []string // attributes of the files in every repository
}

// maxSettings is how long a file of settings may be that is looked through.
const maxSettings = 256 << 10

// plain reports whether git stores all files of a repository as they are, for all that can be
// told without asking git: nothing names attributes, or changes the ends of lines.
func (s *scanning) plain(r *repo) bool {
	if own := s.k.o.GitFiles; own == nil || !r.plain(*own) {
		return false
	}
	for dir, f := range s.next.folders {
		if _, found := f.index(attributes); found && lies(dir, r.root) {
			return false
		}
	}
	return !slices.ContainsFunc(s.k.ignored, func(name string) bool { return path.Base(name) == attributes })
}

// attributes is the file in which a folder names the attributes of its files.
const attributes = ".gitattributes"

func (r *repo) plain(own GitFiles) bool {
	if _, err := r.door.Find("git"); err != nil || !isOurs(r.top) || !isOurs(r.git) {
		return false // git could not read its objects back
	}
	common := r.git
	if text, err := repofile.Own(filepath.Join(r.git, "commondir"), maxSettings); err == nil {
		if common = strings.TrimSpace(string(text)); !filepath.IsAbs(common) {
			common = filepath.Join(r.git, common)
		}
	}
	named := append(slices.Clip(own.Attributes), filepath.Join(common, "info", "attributes"))
	for dir := "."; dir != strings.TrimSuffix(r.prefix, "/") && r.prefix != ""; { // the folders above the root
		named = append(named, filepath.Join(r.top, dir, attributes))
		next, _, _ := strings.Cut(strings.TrimPrefix(r.prefix, dir+"/"), "/")
		dir = path.Join(dir, next)
	}
	if slices.ContainsFunc(named, exists) {
		return false
	}
	configs := append(slices.Clip(own.Configs), filepath.Join(common, "config"), filepath.Join(r.git, "config.worktree"))
	return !slices.ContainsFunc(configs, mayConvert)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// mayConvert reports whether settings may have git store files in another form.
func mayConvert(name string) bool {
	text, err := repofile.Own(name, maxSettings)
	if err != nil {
		return exists(name)
	}
	text = bytes.ToLower(text)
	return slices.ContainsFunc([]string{"attributesfile", "autocrlf", "include"}, func(word string) bool {
		return bytes.Contains(text, []byte(word))
	})
}

// isOurs reports whether a folder belongs to the user of this process. Git reads no other's.
func isOurs(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
