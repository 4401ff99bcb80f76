package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
	"coder/internal/core/nearest"
)

const (
	maxScanned = 20_000 // entries searched for a name
	maxTypos   = 2      // characters of a name that may differ
	minNameLen = 4      // shortest name for which characters may differ
)

// AddSuggestion adds to an error about a missing name the name that was probably meant.
func (w *Workspace) AddSuggestion(ctx context.Context, name string, err error) error {
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	other := w.suggestName(ctx, name)
	if other == "" {
		return err
	}
	return message.Errorf("%w; did you mean %s?", err, other)
}

// suggestName returns what a missing name may stand for: the name without decoration by people and programs, a
// nearly equal name beside it, or the same name elsewhere. It returns "" if there is none.
func (w *Workspace) suggestName(ctx context.Context, name string) string {
	// Remove quotes, a leading @ or file://, a line number at the end, and foreign separators.
	plain := strings.TrimPrefix(strings.TrimPrefix(strings.Trim(name, "`'\" \t\n"), "@"), "file://")
	plain = strings.ReplaceAll(lineSuffix().ReplaceAllString(plain, ""), `\`, "/")
	if plain != name {
		if _, err := w.Stat(plain); err == nil {
			return plain
		}
		name = plain
	}
	if near := w.similarSibling(name); near != "" {
		return near
	}
	name = strings.TrimPrefix(path.Clean(name), "/")
	left, byBase := maxScanned, ""
	for e := range w.Walk(ctx, ".", 0) {
		if left--; left < 0 {
			break
		}
		switch {
		case e.Err != nil || e.Ignored:
		case strings.HasSuffix(e.Path, "/"+name):
			return e.Path
		case byBase == "" && path.Base(e.Path) == path.Base(name):
			byBase = e.Path
		}
	}
	return byBase
}

var lineSuffix = lazy.Regexp(`(?::\d+(?:-\d+)?(?::\d+)?|#L\d+(?:-L?\d+)?)$`)

// similarSibling returns the most similar name in the same directory.
func (w *Workspace) similarSibling(name string) (found string) {
	list, _, err := w.ReadDir(path.Dir(name), maxScanned)
	if err != nil {
		return ""
	}
	base, best := path.Base(name), maxTypos+1
	if utf8.RuneCountInString(base) < minNameLen {
		best = 1 // only case may differ
	}
	for _, d := range list {
		wrong := nearest.Distance(strings.ToLower(d.Name()), strings.ToLower(base))
		if ext := path.Ext(base); wrong >= best && ext != "" && strings.TrimSuffix(d.Name(), path.Ext(d.Name())) == strings.TrimSuffix(base, ext) {
			wrong = maxTypos // a different extension
		}
		if d.Name() != base && wrong < best {
			found, best = path.Join(path.Dir(name), d.Name()), wrong
		}
	}
	return found
}
