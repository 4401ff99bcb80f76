package mention

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/host/workspace"
)

// FileResolver resolves names. A [workspace.Workspace] implements it.
type FileResolver interface {
	// Locate returns the clean name of a path inside, with links resolved.
	Locate(path string) (string, error)
	Stat(name string) (fs.FileInfo, error)
}

// Target is a resolved name. Either it is readable, or Note says why not.
type Target struct {
	Ref
	Original  Ref // as it is written in the message
	Dir       bool
	IsMissing bool // there is no such file, so it may be no name at all
	Note      string
}

// IsCertain reports whether the name can only mean a file, even if that does not exist.
func (t Target) IsCertain() bool {
	p := t.Original.Path
	beginning := func(s string) bool { return strings.HasPrefix(p, s) }
	return !t.IsMissing || t.Original.Quoted || slices.ContainsFunc([]string{"/", "~/", "./", "../"}, beginning) ||
		slices.Contains(mediaExtensions, strings.ToLower(path.Ext(p)))
}

// mediaExtensions are the extensions of files that a model sees as they are, rather than as text.
var mediaExtensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"}

// maxLookups limits how many words are looked up to find Limit names.
const maxLookups = 10 * MaxRefs

// Resolve resolves names, in order. It drops words that name no file and do not look like a file name,
// and all names after the first [MaxRefs]; left is the number of the latter.
func Resolve(files FileResolver, refs []Ref) (found []Target, left int) {
	for i, r := range refs {
		if len(found) == MaxRefs || i == maxLookups {
			return found, len(refs) - i
		}
		var first error // error for the name as written
		var t Target
		for i, try := range interpretations(r) {
			dir, err := lookup(files, try.Path)
			if err == nil {
				t = Target{Ref: try, Original: r, Dir: dir}
				break
			}
			if i == 0 {
				first = err
				t = Target{Ref: r, Original: r, IsMissing: errors.Is(err, fs.ErrNotExist), Note: errorText(err)}
			}
		}
		isThere := errors.Is(first, workspace.ErrOutside) || errors.Is(first, errNotFile) ||
			errors.Is(first, fs.ErrPermission)
		likeFile := r.Quoted || r.FirstLine > 0 || strings.ContainsRune(r.Path, '/') || path.Ext(r.Path) != ""
		if t.Note == "" || isThere || likeFile { // else it is a user name
			found = append(found, t)
		}
	}
	return found, 0
}

func lookup(files FileResolver, path string) (dir bool, err error) {
	at, err := files.Locate(path)
	if err != nil {
		return false, err
	}
	info, err := files.Stat(at)
	if err != nil {
		return false, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return false, errNotFile
	}
	return info.IsDir(), nil
}

var errNotFile = errors.New("neither a file nor a directory")

// interpretations returns the possible meanings of a name: with its lines, as a file name that ends like line
// numbers, and up to the first letter of another script, as in "@a.txt里".
func interpretations(r Ref) []Ref {
	all := []Ref{r}
	if r.Quoted {
		return all
	}
	if r.FirstLine > 0 {
		all = append(all, Ref{Path: strings.TrimPrefix(r.String(), "@")})
	}
	for i, c := range r.Path {
		if i > 0 && c >= utf8.RuneSelf && r.Path[i-1] < utf8.RuneSelf {
			all = append(all, Parse(strings.TrimRight(r.Path[:i], ".:!?*")))
			break
		}
	}
	return all
}

func errorText(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file in the workspace"
	case errors.Is(err, workspace.ErrOutside):
		return "not read: outside the workspace"
	case errors.Is(err, fs.ErrPermission):
		return "not read: permission denied"
	}
	return "not read: " + err.Error()
}
