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
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/tool/git"
)

// past is what files held: by the undo store, by the workspace where they are
// still the same, and by git.
type past struct {
	contents
	app *App
}

func (p *past) Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error) {
	oid, inGit := strings.CutPrefix(s.Hash, "git:")
	if inGit && !s.Lost { // without asking git, if it is still there
		if now, _, err := p.ws.ReadFile(s.Path, limit); err == nil && int64(len(now)) == s.Size && blobName(now) == oid {
			return now, nil
		}
	}
	text, err := p.contents.Content(ctx, s, limit)
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

// completeStart adds the files that the record of a session does not tell of: as
// they are now, with what later sessions and commits changed taken back.
func (a *App) completeStart(ctx context.Context, take *rerun.Take, world *rerun.World, kept *past) error {
	files, settled := make(map[string]event.FileState), make(map[string]bool)
	for e := range kept.ws.Walk(ctx, ".", 0) {
		if e.Err != nil || e.IsDir() || strings.HasPrefix(e.Path, ".coder/") || strings.HasPrefix(e.Path, ".git/") {
			continue
		}
		if len(files) == maxStartFiles {
			return inputf("session %s: the files that it began with cannot be had: the undo store does not have the state of all, and there are more than %d", take.ID, maxStartFiles)
		}
		s, since, ok := kept.now(e.Path, take.Start())
		if ok {
			files[e.Path] = s
		}
		if since {
			world.Unsure = append(world.Unsure, e.Path)
		}
	}
	o := git.Options{Workspace: kept.ws, Door: a.Door()}
	if commit, err := git.At(ctx, o, take.Start()); err == nil && commit != "" {
		changed, err := git.Since(ctx, o, commit)
		if err != nil {
			return err
		}
		for _, f := range changed {
			files[f.Path], settled[f.Path] = gitState(f), true
		}
	}
	for name, s := range a.changedSince(ctx, take) {
		files[name], settled[name] = s, true
	}
	world.Unsure = slices.DeleteFunc(world.Unsure, func(name string) bool {
		_, known := world.Start[name]
		return known || files[name].Path == "" || settled[name]
	})
	for name, s := range files {
		if _, known := world.Start[name]; !known {
			world.Start[name] = s
		}
	}
	return ctx.Err()
}

// completeFolders adds the folders that were there when a session began and may have been
// empty: those that nothing was put into or taken out of since.
func completeFolders(ctx context.Context, ws *workspace.Workspace, take *rerun.Take, world *rerun.World) {
	for e := range ws.Walk(ctx, ".", 0) {
		if _, known := world.Start[e.Path]; known || e.Err != nil || !e.IsDir() || e.Path == "." || e.Path == ".git" || e.Path == ".coder" || strings.HasPrefix(e.Path, ".git/") || strings.HasPrefix(e.Path, ".coder/") {
			continue
		}
		if info, err := ws.Lstat(e.Path); err == nil && info.ModTime().Before(take.Start()) {
			s := event.FileState{Path: e.Path, Hash: "dir"}
			if mode := info.Mode().Perm(); mode&0o700 == 0o700 { // or nothing could be put into it
				s.Mode = uint32(mode)
			}
			world.Start[e.Path] = s
		}
	}
}

// gitState is a file of a commit.
func gitState(f git.File) event.FileState {
	s := event.FileState{Path: f.Path, Size: f.Size, Mode: 0o644}
	if f.Object != "" {
		s.Hash = "git:" + f.Object
	}
	if f.Mode == "100755" {
		s.Mode = 0o755
	}
	return s
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

// changedSince are files that other sessions changed after this one began, as
// they were before.
func (a *App) changedSince(ctx context.Context, take *rerun.Take) map[string]event.FileState {
	was, when := make(map[string]event.FileState), make(map[string]time.Time)
	for _, id := range a.Store().IDs() {
		if id == take.ID {
			continue
		}
		for r, err := range a.Store().Logs.Read(ctx, id, 0, event.Audit) {
			if err != nil {
				break
			}
			done, ok := r.Event.(event.ToolCallCompleted)
			if !ok || r.Time.Before(take.Start()) {
				continue
			}
			for _, c := range done.Changes {
				if at, known := when[c.Before.Path]; !known || r.Time.Before(at) {
					was[c.Before.Path], when[c.Before.Path] = c.Before, r.Time
				}
			}
		}
	}
	return was
}

// copySettings gives a copy what people wrote for this project, and a repository
// of its own if there is one, as it was when the session began.
func (a *App) copySettings(ctx context.Context, take *rerun.Take, head, root string, elsewhere func(was, is string)) error {
	return errors.Join(a.copyAuthored(root), copyTree(a.GoldenDir(), filepath.Join(root, ".coder", "golden")), a.copyRepository(ctx, take, head, root, elsewhere))
}

// linked is where git keeps what belongs to a worktree alone, and the repository
// that it is linked to; "" if dir is none.
func linked(dir string) (own, repository string) {
	read := func(name string) string {
		text, err := repofile.Own(name, 4096)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	own, ok := strings.CutPrefix(read(filepath.Join(dir, ".git")), "gitdir: ")
	if !ok {
		return "", ""
	}
	if !filepath.IsAbs(own) {
		own = filepath.Join(dir, own)
	}
	common := read(filepath.Join(own, "commondir"))
	if common == "" { // a submodule
		return "", ""
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(own, common)
	}
	return own, common
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

// copyRepository makes a repository with the same history for the copy. Objects
// are read from the one there is and written to the copy's own. Head is git's
// object for the files of the commit that was checked out, if that is known.
// Elsewhere is told where a repository is that a worktree is linked to.
func (a *App) copyRepository(ctx context.Context, take *rerun.Take, head, root string, elsewhere func(was, is string)) error {
	top, to := a.Root, root
	for a.within() != "" && top != filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		top, to = filepath.Dir(top), filepath.Dir(to)
	}
	from := filepath.Join(top, ".git")
	info, err := os.Lstat(from)
	if err != nil {
		return nil // there is none
	}
	into, index := filepath.Join(to, ".git"), ""
	if !info.IsDir() { // a worktree of a repository that lies elsewhere
		if index, from = linked(top); from == "" {
			return nil
		}
		within, err := filepath.Rel(top, from)
		if err != nil {
			return err
		}
		into = filepath.Join(to, within)
		mine := filepath.Join(into, "worktrees", filepath.Base(index))
		if err := copyTree(index, mine); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(filepath.Join(mine, "gitdir"), []byte(filepath.Join(to, ".git")+"\n"), 0o644),
			os.WriteFile(filepath.Join(to, ".git"), []byte("gitdir: "+mine+"\n"), 0o644)); err != nil {
			return err
		}
		elsewhere(from, into)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{"objects", "hooks", "worktrees", "modules", "lfs"}, e.Name()) {
			if err := copyTree(filepath.Join(from, e.Name()), filepath.Join(into, e.Name())); err != nil {
				return err
			}
		}
	}
	objects := filepath.Join(into, "objects", "info")
	if err := os.MkdirAll(objects, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(objects, "alternates"), []byte(filepath.Join(from, "objects")+"\n"), 0o644); err != nil {
		return err
	}
	within, err := filepath.Rel(to, root)
	if err != nil {
		return err
	}
	return a.checkOutThen(ctx, take, head, to, within)
}

// checkOutThen takes a copied repository back to the commit that was checked out
// when the session began. Its files are laid out by themselves.
func (a *App) checkOutThen(ctx context.Context, take *rerun.Take, head, dir, within string) error {
	disarmed, err := a.Door().Git(ctx, dir)
	if errors.Is(err, program.ErrNotFound) {
		return nil // there is no git to show where it stands
	}
	if err != nil {
		return err
	}
	run := func(args ...string) (string, error) {
		cmd := disarmed.Command(ctx, args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		err := cmd.Run()
		return strings.TrimSpace(out.String()), err
	}
	var staged []string
	for _, name := range take.Staged() {
		staged = append(staged, filepath.ToSlash(filepath.Join(within, name)))
	}
	log, err := run("reflog", "show", "--format=%H %gd", "--date=unix", "HEAD")
	if err != nil || log == "" { // no commit yet, or nobody knows when
		if len(staged) > 0 {
			_, _ = run(append([]string{"rm", "-q", "--cached", "--ignore-unmatch", "--"}, staged...)...)
		}
		return nil
	}
	now, _, _ := strings.Cut(log, " ")
	then := git.CommitAt(log, take.Start())
	own, first := take.Commits()
	reached, after := false, false
	for line := range strings.Lines(log) { // what the session committed came after it began
		commit, _, _ := strings.Cut(line, " ")
		if reached = reached || commit == then; after {
			then = commit
		}
		after = reached && slices.ContainsFunc(own, func(id string) bool { return strings.HasPrefix(commit, id) })
	}
	if first {
		head = "" // the files that tell are those after a commit
	}
	for line := range strings.Lines(log) { // within a second only the files tell
		commit, _, _ := strings.Cut(line, " ")
		name := commit + "^{tree}"
		if within != "." {
			name = commit + ":" + filepath.ToSlash(within)
		}
		if head == "" {
			break
		}
		if tree, err := run("rev-parse", "--verify", "--quiet", name); err == nil && tree == head {
			then = commit
			break
		}
	}
	index := then
	if then != "" && then != now {
		if _, err := run("update-ref", "HEAD", then); err != nil {
			return errors.Join(fmt.Errorf("take the copied repository back to %s", then), err)
		}
		if len(own) > 0 { // what others had staged by then is in its first commit
			if parent, err := run("rev-parse", "--verify", "--quiet", own[0]+"^"); err == nil && parent == then {
				index = own[0]
			}
		}
		if _, err := run("read-tree", index); err != nil {
			return err
		}
	}
	if len(staged) > 0 { // what it staged was not
		_, err = run(append([]string{"--literal-pathspecs", "reset", "-q", "--"}, staged...)...)
	}
	return err
}
