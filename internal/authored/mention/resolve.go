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

// Files is where names are looked up. A [workspace.Workspace] is one.
type Files interface {
	// Locate gives the clean name of a path inside, links followed.
	Locate(path string) (string, error)
	Stat(name string) (fs.FileInfo, error)
}

// Target is what a name stands for. Either it can be read, or Note says why it
// cannot.
type Target struct {
	Ref
	Named   Ref // as it is written in the message
	Dir     bool
	Missing bool // there is no such file, so it may be no name at all
	Note    string
}

// Certain reports whether nothing but a file can be meant, even if there is none.
func (t Target) Certain() bool {
	p := t.Named.Path
	beginning := func(s string) bool { return strings.HasPrefix(p, s) }
	return !t.Missing || t.Named.Quoted || slices.ContainsFunc([]string{"/", "~/", "./", "../"}, beginning) ||
		slices.Contains(shown, strings.ToLower(path.Ext(p)))
}

// shown are the endings of files that are shown to a model rather than read.
var shown = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"}

// tries is how many words are looked up to find Limit names.
const tries = 10 * Limit

// Resolve settles what names stand for, in order. A word that names no file
// and does not look like the name of one is dropped; so are all names after the
// first [Limit], which left counts.
func Resolve(files Files, refs []Ref) (found []Target, left int) {
	for i, r := range refs {
		if len(found) == Limit || i == tries {
			return found, len(refs) - i
		}
		var first error // of the name as it is written
		var t Target
		for i, try := range readings(r) {
			dir, err := lookup(files, try.Path)
			if err == nil {
				t = Target{Ref: try, Named: r, Dir: dir}
				break
			}
			if i == 0 {
				first = err
				t = Target{Ref: r, Named: r, Missing: errors.Is(err, fs.ErrNotExist), Note: explain(err)}
			}
		}
		isThere := errors.Is(first, workspace.ErrOutside) || errors.Is(first, errNotFile) || errors.Is(first, fs.ErrPermission)
		likeFile := r.Quoted || r.From > 0 || strings.ContainsRune(r.Path, '/') || path.Ext(r.Path) != ""
		if t.Note == "" || isThere || likeFile { // else it is a person's name
			found = append(found, t)
		}
	}
	return found, 0
}

func lookup(files Files, path string) (dir bool, err error) {
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

var errNotFile = errors.New("it is neither a file nor a directory")

// readings are the ways to read a name: with its lines, as the name of a file
// that ends like lines, and up to the first letter of another script, as in
// "@a.txt里".
func readings(r Ref) []Ref {
	all := []Ref{r}
	if r.Quoted {
		return all
	}
	if r.From > 0 {
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

func explain(err error) string {
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
