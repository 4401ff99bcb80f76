package files

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"coder/internal/core/message"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// apply makes every change, if all files are still unchanged since the plan.
func (s *changeSet) apply(ctx context.Context, _ io.Writer) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if !s.dryRun {
		if err := s.checkUnchanged(); err != nil {
			return tool.Result{}, err
		}
		if err := s.applyChanges(); err != nil {
			return tool.Result{}, err
		}
	}
	diff, cut := patch.Truncate(s.diff.String(), patch.MaxLines, patch.MaxChars)
	r := patchResult{OK: true, Applied: !s.dryRun, Files: s.files, Additions: s.added, Deletions: s.deleted, Diff: diff,
		DiffTruncated: cut}
	if r.Files == nil {
		r.Files = []patchedFile{}
	}
	done := "patched"
	if s.dryRun {
		done = "would patch"
	}
	summary := fmt.Sprintf("%s %s, +%d -%d", done, tool.FormatCount(len(s.files), "file", "files"), s.added, s.deleted)
	if s.hunkText != "" {
		summary += ", " + s.hunkText
	}
	return tool.Result{Value: r, Summary: summary, Show: diffPreview(s.diff.String(), s.added, s.deleted),
		SeenFiles: s.writtenHashes}, nil
}

// checkUnchanged checks that every file is unchanged since the plan. A name
// that is changed twice is checked once, in its first state.
func (s *changeSet) checkUnchanged() error {
	looked := make(map[string]bool)
	for _, c := range s.changes {
		was := map[string][]byte{c.Path: c.Old}
		if c.From != "" {
			was = map[string][]byte{c.From: c.Old, c.Path: nil}
		}
		for name, then := range was {
			if looked[name] {
				continue
			}
			looked[name] = true
			at, _, err := resolveFolder(s.ws, name)
			if err != nil {
				return err
			}
			now, info, err := loadOrLink(s.ws, name)
			if err != nil {
				return err
			}
			sameKind := info == nil || info.Mode().Type() == s.modes[name].Type()
			if at != name || (now == nil) != (then == nil) || !bytes.Equal(now, then) || !sameKind {
				return staleError(name, then, now)
			}
		}
	}
	return nil
}

// applyChanges makes the changes in order. If one fails, it undoes those before.
func (s *changeSet) applyChanges() error {
	var undo []func() error
	for _, c := range s.changes {
		back, err := s.applyChange(c)
		undo = append(undo, back...)
		if err == nil {
			continue
		}
		for i := len(undo) - 1; i >= 0; i-- {
			if also := undo[i](); also != nil {
				err = errors.Join(err, message.Errorf("restore what was changed: %w", also))
			}
		}
		return message.Errorf("nothing was changed: %w", err)
	}
	s.writtenHashes = make(map[string]string)
	for _, c := range s.changes {
		if c.New != nil {
			maps.Copy(s.writtenHashes, s.seen.remember(c.Path, hashContent(bytes.NewReader(c.New)), c.New))
		}
	}
	return nil
}

// applyChange makes one change and returns functions to undo it.
func (s *changeSet) applyChange(c patch.Change) (undo []func() error, err error) {
	left := workspace.Accept(workspace.AcceptNothing)
	switch {
	case c.New == nil:
		err = s.ws.Remove(c.Path, workspace.AcceptContent(c.Old))
	case c.Old != nil && c.From == "":
		left = workspace.AcceptContent(c.New)
		err = s.ws.Swap(c.Path, c.Old, c.New)
	default:
		return s.createFile(c)
	}
	if err != nil {
		return nil, s.explainFailure(c.Path, c.Old, err) // the file is unchanged
	}
	back := []func() error{func() error { return s.restoreContent(c.Path, c.Old, left) }}
	return back, s.setMode(c)
}

// setMode sets a changed file's mode from the patch.
func (s *changeSet) setMode(c patch.Change) error {
	if c.New == nil || c.Mode == patch.ModeUnspecified {
		return nil
	}
	info, err := s.ws.Stat(c.Path)
	if err != nil {
		return err
	}
	if perm := withExecute(info.Mode().Perm(), c.Mode); perm != info.Mode().Perm() {
		return s.ws.Chmod(c.Path, perm)
	}
	return nil
}

// createFile creates a file under a new name, from another file if it moves.
func (s *changeSet) createFile(c patch.Change) (undo []func() error, err error) {
	// create missing folders, which undo removes again
	for dir := path.Dir(c.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, err := s.ws.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		undo = slices.Insert(undo, 0, func() error {
			if err := s.ws.Delete(dir); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
	}
	if c.From == "" {
		err = s.ws.Swap(c.Path, nil, c.New)
	} else {
		err = s.ws.WriteFileMode(c.Path, c.New, s.modes[c.From], workspace.AcceptNothing)
	}
	if err != nil {
		return undo, s.explainFailure(c.Path, nil, err)
	}
	undo = append(undo, func() error { return s.ws.Remove(c.Path, workspace.AcceptContent(c.New)) })
	if err := s.setMode(c); err != nil || c.From == "" {
		return undo, err
	}
	if err := s.ws.Remove(c.From, workspace.AcceptContent(c.Old)); err != nil {
		return undo, s.explainFailure(c.From, c.Old, err)
	}
	return append(undo, func() error { return s.restoreContent(c.From, c.Old, workspace.AcceptNothing) }), nil
}

// restoreContent restores a file's content.
func (s *changeSet) restoreContent(name string, b []byte, accept workspace.Accept) error {
	if s.modes[name]&fs.ModeSymlink != 0 {
		return s.ws.RestoreLink(name, string(b), accept)
	}
	return s.ws.WriteFileMode(name, b, s.modes[name], accept)
}

// explainFailure explains why a change was not made.
func (s *changeSet) explainFailure(name string, then []byte, err error) error {
	if errors.Is(err, workspace.ErrChanged) {
		now, _, _ := loadOrLink(s.ws, name) // only needed for the explanation
		return staleError(name, then, now)
	}
	return err
}
