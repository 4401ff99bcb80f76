package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
)

// Notes are what is noted beside the state of a repository.
type Notes struct {
	Repository bool              `json:"repository"` // there was one
	Seen       []string          `json:"seen"`       // names in the data folder that git does not ignore
	Ignored    []event.FileState `json:"ignored"`    // files that it ignores
	// Configs are those of the repository, by name. They count for this user alone: git runs
	// what they name.
	Configs map[string][]byte `json:"configs,omitempty"`
}

// ReadNotes reads them; there are none of a state that was not saved.
func ReadNotes(state []byte) (n Notes) {
	if text, err := gitstate.Notes(state); err == nil {
		_ = json.Unmarshal(text, &n) // of a damaged state it will be said
	}
	return n
}

// maxConfig is how long a configuration may be that is saved.
const maxConfig = 1 << 20

// ReadConfigs are the configurations of a repository, and what else tells git how to treat files.
func ReadConfigs(r gitstate.Repository) map[string][]byte {
	all := make(map[string][]byte)
	if r.Common == "" {
		return all
	}
	for _, name := range []string{"config", "config.worktree", "info/attributes", "info/sparse-checkout"} {
		if text, err := repofile.ReadOwn(filepath.Join(r.Common, filepath.FromSlash(name)), maxConfig); err == nil {
			all[name] = text
		}
	}
	return all
}

// CopyRepository is the repository of a copy whose work tree is at top: linked to one elsewhere as the
// work tree of from is.
func CopyRepository(from gitstate.Repository, top string) (to gitstate.Repository, err error) {
	git := filepath.Join(top, ".git")
	if !from.IsLinked() {
		return gitstate.Repository{Top: top, GitDir: git, Common: git}, nil
	}
	within, err := filepath.Rel(from.Top, from.Common)
	if err != nil {
		return to, err
	}
	to = gitstate.Repository{Top: top, Common: filepath.Join(top, within)}
	to.GitDir = filepath.Join(to.Common, "worktrees", filepath.Base(from.GitDir))
	return to, errors.Join(writeFile(to.GitDir, "gitdir", git+"\n"),
		writeFile(to.GitDir, "commondir", filepath.Join("..", "..")+"\n"),
		writeFile(top, ".git", "gitdir: "+to.GitDir+"\n"))
}

// WriteConfigs gives a repository its configurations, by name.
func WriteConfigs(to gitstate.Repository, configs map[string][]byte) (err error) {
	for name, text := range configs {
		err = errors.Join(err, writeFile(to.Common, name, string(text)))
	}
	return err
}

// writeFile writes a file into a folder of a copy.
func writeFile(dir, name, text string) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
}

// CommitError reports that a copy lacks the commit that was checked out.
type CommitError struct{ Commit string }

func (e *CommitError) Error() string {
	return "the commit that the session began with is no longer in the repository: " + e.Commit
}

// RestoreRepository lays a saved state out in a copy whose workspace is at a place in its work
// tree. Git overlooks the data folder there, but for what it saw then. Objects are borrowed from
// folders, or come in a pack.
func RestoreRepository(ctx context.Context, state []byte, to gitstate.Repository, at string, door program.Launcher,
	pack []byte, objects ...string) error {
	notes, data := ReadNotes(state), "/"+path.Join(filepath.ToSlash(at), ".coder")+"/"
	patterns := []string{data + "*"}
	for _, name := range notes.Seen {
		patterns = append(patterns, "!"+data+name)
	}
	if err := to.ShareObjects(objects...); err != nil {
		return err
	}
	if err := gitstate.Restore(state, to); err != nil {
		return err
	}
	if err := to.Ignore(patterns...); err != nil {
		return err
	}
	git, err := worktree.Open(ctx, to.Top, door)
	if errors.Is(err, program.ErrNotFound) && pack == nil {
		return nil // there is no git to show where it stands
	}
	if err == nil && pack != nil {
		_, err = git.GitWithInput(ctx, nil, strings.NewReader(string(pack)), "index-pack", "--stdin", "--fix-thin")
	}
	if err != nil {
		return err
	}
	return checkCommit(ctx, git, at)
}

// checkCommit makes sure that a copy has the commit that was checked out, and has git overlook the
// files that lie outside of the workspace: the copy has none of them.
func checkCommit(ctx context.Context, git *worktree.Tree, at string) error {
	if head, unborn := git.Git(ctx, nil, "rev-parse", "--verify", "--quiet", "HEAD"); unborn == nil {
		if _, err := git.Git(ctx, nil, "cat-file", "-e", head+"^{tree}"); err != nil {
			return &CommitError{head}
		}
	}
	if at == "." {
		return nil
	}
	outside, err := git.Git(ctx, nil, "ls-files", "-z", "--cached", "--full-name", "--", ":/",
		":(exclude,top)"+filepath.ToSlash(at))
	if err != nil || outside == "" {
		return err
	}
	_, err = git.GitWithInput(ctx, nil, strings.NewReader(outside), "update-index", "-z", "--skip-worktree", "--stdin")
	return err
}

// maxPack bounds the history that is packed.
const maxPack = 16 << 20

// PackObjects packs the objects of a repository, but for those that may hold secrets, which are named.
func PackObjects(ctx context.Context, git *worktree.Tree) (pack []byte, left []string, err error) {
	list, err := git.Git(ctx, nil, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects",
		"--missing=allow-any")
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]bool(nil)
	for range 2 { // what holds a key is found out in what would be packed
		ids, without := visibleObjects(list, hidden)
		text, err := git.GitRaw(ctx, nil, strings.NewReader(ids), "pack-objects", "--stdout", "-q")
		if err == nil && len(text) > maxPack {
			err = message.Errorf("the repository history takes %d MB, but a golden session allows %d: record in a smaller repository", len(text)>>20, maxPack>>20)
		}
		if err != nil {
			return nil, nil, err
		}
		pack, left = []byte(text), without
		if hidden == nil {
			hidden, err = secretBlobs(ctx, git, ids)
		}
		if err != nil || len(hidden) == 0 {
			return pack, left, err
		}
	}
	return pack, left, nil
}

// visibleObjects are those of a list of git's that may be shown, and the names of the others.
func visibleObjects(list string, hidden map[string]bool) (ids string, left []string) {
	var shown strings.Builder
	for line := range strings.Lines(list) {
		switch id, name, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case strings.HasPrefix(id, "?"): // it is missing
		case hidden[id] || secret.IsSecretFile(name):
			if name += " (in git's history)"; !slices.Contains(left, name) {
				left = append(left, name)
			}
		default:
			shown.WriteString(id + "\n")
		}
	}
	return shown.String(), left
}

// secretBlobs are those of the objects that hold what looks like a key.
func secretBlobs(ctx context.Context, git *worktree.Tree, ids string) (map[string]bool, error) {
	out, err := git.GitRaw(ctx, nil, strings.NewReader(ids), "cat-file", "--batch")
	found := make(map[string]bool)
	for err == nil && len(out) > 0 {
		head, rest, _ := strings.Cut(out, "\n")
		var id, kind string
		var size int
		if _, err = fmt.Sscanf(head, "%s %s %d", &id, &kind, &size); err != nil || size+1 > len(rest) {
			return nil, errors.Join(err, errors.New("git listed its objects in an unknown format"))
		}
		if text := rest[:size]; kind == "blob" && secret.ShapeConcealer().Text(text) != text {
			found[id] = true
		}
		out = rest[size+1:]
	}
	return found, err
}
