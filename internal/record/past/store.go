package past

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/record/gitstate"
	"coder/internal/record/undo"
	"coder/internal/tool/git"
)

// CurrentStore is what the undo store has of files, and the workspace where they are still as they were.
type CurrentStore struct {
	*undo.Keeper
	Workspace *workspace.Workspace
}

// Content is what a file held.
func (n CurrentStore) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	text, err := n.Keeper.Content(ctx, s, limit)
	if err == nil || s.ContentLost {
		return text, err
	}
	if now, _, missing := n.Workspace.ReadFile(s.Path, limit); missing == nil && ContentHash(now) == s.Hash {
		return now, nil
	}
	return nil, err
}

// CurrentFiles yields the files that there are now from a folder on, but for those that are left out, and
// when they were changed last.
func (n CurrentStore) CurrentFiles(ctx context.Context, from string,
	leave func(workspace.Entry) bool) iter.Seq2[event.FileState, time.Time] {
	return func(yield func(event.FileState, time.Time) bool) {
		for e := range n.Workspace.Walk(ctx, from, 0) {
			if e.Err != nil || e.Path == "." || leave(e) {
				continue
			}
			info, gone := n.Workspace.Lstat(e.Path)
			if gone != nil || info.Mode()&fs.ModeType&^(fs.ModeDir|fs.ModeSymlink) != 0 {
				continue
			}
			if s, err := n.Current(e.Path); err == nil && !yield(s, info.ModTime()) {
				return
			}
		}
	}
}

// Store is what files held by the undo store, by the workspace, and by git.
type Store struct {
	CurrentStore
	Launcher  program.Launcher
	RepoState []byte // the state of the repository, as it was saved; nil if it was not
}

// Content is what a file held.
func (p *Store) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	oid, inGit := strings.CutPrefix(s.Hash, "git:")
	if inGit && !s.ContentLost { // without asking git, if it is still there
		if now, _, err := p.Workspace.ReadFile(s.Path, limit); err == nil && int64(len(now)) == s.Size &&
			blobName(now) == oid {
			return now, nil
		}
	}
	text, err := p.CurrentStore.Content(ctx, s, limit)
	if err != nil && inGit && p.RepoState != nil { // git may have removed it since
		if data, gone := gitstate.Object(p.RepoState, oid); gone == nil && int64(len(data)) == s.Size {
			return data, nil
		}
	}
	if err == nil || s.ContentLost || inGit || len(s.Hash) != len(ContentHash(nil)) {
		return text, err
	}
	found, _ := git.PastContent(ctx, git.Options{Workspace: p.Workspace, Launcher: p.Launcher}, s.Path,
		func(text []byte) bool { return ContentHash(text) == s.Hash })
	if found != nil {
		return found, nil
	}
	return nil, err
}

// blobName is the name that git gives a content.
func blobName(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// maxPresent bounds the files that a world is completed with.
const maxPresent = 20_000

// Complete adds to what a session began with the files that its record does not name, as they
// are now. Those changed since then are unsure.
func (p *Store) Complete(ctx context.Context, w *FileHistory, begun time.Time) error {
	known := func(e workspace.Entry) bool {
		_, known := w.Start[e.Path]
		first, _, _ := strings.Cut(e.Path, "/")
		return known || first == ".coder" || first == dotGit
	}
	added := 0
	for s, changed := range p.CurrentFiles(ctx, ".", known) {
		if added++; added > maxPresent {
			return message.Errorf("the initial files are unavailable: the undo store does not have all of them, and there are more than %d", maxPresent)
		}
		since, dir := changed.After(begun), s.Hash == "dir"
		if !s.ContentLost && !(since && dir) {
			w.Start[s.Path] = s
		}
		if since && !dir {
			w.Uncertain = append(w.Uncertain, s.Path)
		}
	}
	return ctx.Err()
}
