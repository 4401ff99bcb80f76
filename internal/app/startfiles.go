package app

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/rerun"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/program"
	"coder/internal/record/gitstate"
	"coder/internal/tool/git"
)

// past is what files held: by the undo store, by the workspace where they are
// still the same, and by git.
type past struct {
	contents
	app   *App
	state []byte // of the repository, as it was saved; nil if it was not
}

func (p *past) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	oid, inGit := strings.CutPrefix(s.Hash, "git:")
	if inGit && !s.Lost { // without asking git, if it is still there
		if now, _, err := p.ws.ReadFile(s.Path, limit); err == nil && int64(len(now)) == s.Size && blobName(now) == oid {
			return now, nil
		}
	}
	text, err := p.contents.Content(ctx, s, limit)
	if err != nil && inGit && p.state != nil { // git may have removed it since
		if data, gone := gitstate.Object(p.state, oid); gone == nil && int64(len(data)) == s.Size {
			return data, nil
		}
	}
	if err == nil || s.Lost || inGit || len(s.Hash) != sha256.Size*2 {
		return text, err
	}
	found, _ := git.Past(ctx, git.Options{Workspace: p.ws, Door: p.app.Door()}, s.Path, func(text []byte) bool {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:]) == s.Hash
	})
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

// maxStartFiles bounds the files that are copied where the undo store does not have
// the state of all.
const maxStartFiles = 20_000

// completeStart adds the files that the record of a session does not name, as they are
// now. Those changed since the session began are unsure.
func (a *App) completeStart(ctx context.Context, take *rerun.Take, world *rerun.World, kept *past) error {
	added := 0
	for e := range kept.ws.Walk(ctx, ".", 0) {
		ours := e.Path == ".coder" || e.Path == ".git" || strings.HasPrefix(e.Path, ".coder/") || strings.HasPrefix(e.Path, ".git/")
		if _, known := world.Start[e.Path]; known || ours || e.Err != nil || e.Path == "." {
			continue
		}
		if added++; added > maxStartFiles {
			return inputf("session %s: its initial files are unavailable: the undo store does not have all of them, and there are more than %d", take.ID, maxStartFiles)
		}
		s, since, ok := kept.now(e.Path, take.Start())
		if ok && !(since && s.Hash == "dir") {
			world.Start[e.Path] = s
		}
		if since && s.Hash != "dir" {
			world.Unsure = append(world.Unsure, e.Path)
		}
	}
	return ctx.Err()
}

// now is a file as it is, and whether it was changed since a time.
func (p *past) now(name string, then time.Time) (s event.FileState, since, ok bool) {
	info, err := p.ws.Lstat(name)
	if err != nil {
		return s, false, false
	}
	since = info.ModTime().After(then)
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := p.ws.Readlink(name)
		return event.FileState{Path: name, Hash: "link", Link: to}, since, err == nil
	}
	if info.IsDir() {
		return event.FileState{Path: name, Hash: "dir"}, since, true
	}
	if !info.Mode().IsRegular() {
		return s, false, false
	}
	text, _, err := p.ws.ReadFile(name, maxCopied)
	if err != nil {
		return s, false, false
	}
	sum := sha256.Sum256(text)
	return event.FileState{Path: name, Hash: hex.EncodeToString(sum[:]), Mode: uint32(info.Mode().Perm()), Size: info.Size()}, since, true
}

// copySettings gives a copy what people wrote for this project, and a repository of its
// own if there is one, in the state that was saved.
func (a *App) copySettings(ctx context.Context, state []byte, root string, elsewhere func(was, is string)) error {
	return errors.Join(a.copyAuthored(root), copyTree(a.GoldenDir(), filepath.Join(root, ".coder", "golden")), a.copyRepository(ctx, state, root, elsewhere))
}

// copyAuthored gives a copy what people wrote for this project, but for its golden
// sessions.
func (a *App) copyAuthored(root string) error {
	entries, _ := os.ReadDir(a.data())
	if info, err := os.Stat(a.data()); err == nil {
		if err := os.MkdirAll(filepath.Join(root, ".coder"), info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if !slices.Contains(append([]string{"golden", "tmp", ".gitignore"}, dataFolders...), e.Name()) {
			if err := copyTree(a.Store().Dir(e.Name()), filepath.Join(root, ".coder", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRepository makes a repository for the copy in the state that was saved, or as it
// is now if none was. Objects are read from the one there is and written to the copy's
// own. Elsewhere is told where a repository is that a worktree is linked to.
func (a *App) copyRepository(ctx context.Context, state []byte, root string, elsewhere func(was, is string)) error {
	from, ok := gitstate.Find(a.Root)
	if state != nil && !notesOf(state).Repository {
		return nil // it was made since
	}
	if info, err := os.Lstat(filepath.Join(from.Top, ".git")); !ok || err != nil || !info.IsDir() && !from.Linked() {
		return nil // there is none, or it is a submodule
	}
	rel, err := filepath.Rel(from.Top, a.Root)
	if err != nil {
		return err
	}
	to := gitstate.Repository{Top: strings.TrimSuffix(root, string(filepath.Separator)+rel)}
	to.Common = filepath.Join(to.Top, ".git")
	to.Own = to.Common
	if from.Linked() {
		within, err := filepath.Rel(from.Top, from.Common)
		if err != nil {
			return err
		}
		to.Common = filepath.Join(to.Top, within)
		to.Own = filepath.Join(to.Common, "worktrees", filepath.Base(from.Own))
		if err := link(to); err != nil {
			return err
		}
		elsewhere(from.Common, to.Common)
	}
	if state == nil {
		if state, err = from.Save(jsonx.Must(startNotes{Repository: true, Seen: a.seenByGit(), Configs: configsOf(from)})); err != nil {
			return err
		}
	}
	for name, text := range notesOf(state).Configs {
		file := filepath.Join(to.Common, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644)); err != nil {
			return err
		}
	}
	return errors.Join(layOutRepository(state, to, rel, filepath.Join(from.Common, "objects")), a.checkRepository(ctx, to, rel))
}

// link makes a folder a work tree of a repository elsewhere.
func link(to gitstate.Repository) error {
	write := func(dir, name, text string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)
	}
	return errors.Join(os.MkdirAll(to.Own, 0o755), os.MkdirAll(to.Top, 0o755), write(to.Own, "gitdir", filepath.Join(to.Top, ".git")),
		write(to.Own, "commondir", filepath.Join("..", "..")), write(to.Top, ".git", "gitdir: "+to.Own))
}

// layOutRepository lays a saved state out in a copy, in which git overlooks our data.
func layOutRepository(state []byte, to gitstate.Repository, rel string, objects ...string) error {
	if err := to.Borrow(objects...); err != nil {
		return err
	}
	if err := gitstate.LayOut(state, to); err != nil {
		return err
	}
	return to.Ignore(hideData(rel, notesOf(state).Seen)...)
}

// checkRepository makes sure that the copy has the commit that was checked out, and has git
// overlook the files that lie outside of the workspace: the copy has none of them.
func (a *App) checkRepository(ctx context.Context, to gitstate.Repository, rel string) error {
	disarmed, err := a.Door().Git(ctx, to.Top)
	if errors.Is(err, program.ErrNotFound) {
		return nil // there is no git to show where it stands
	}
	if err != nil {
		return err
	}
	head, unborn := disarmed.Command(ctx, "rev-parse", "--verify", "--quiet", "HEAD").Output()
	if unborn == nil && disarmed.Command(ctx, "cat-file", "-e", strings.TrimSpace(string(head))+"^{tree}").Run() != nil {
		return inputf("the commit that the session began with is no longer in the repository: %s", strings.TrimSpace(string(head)))
	}
	if rel == "." {
		return nil
	}
	outside, err := disarmed.Command(ctx, "ls-files", "-z", "--cached", "--full-name", "--", ":/", ":(exclude,top)"+filepath.ToSlash(rel)).Output()
	if err != nil || len(outside) == 0 {
		return err
	}
	skip := disarmed.Command(ctx, "update-index", "-z", "--skip-worktree", "--stdin")
	skip.Stdin = bytes.NewReader(outside)
	return skip.Run()
}
