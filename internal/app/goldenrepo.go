package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/golden"
)

// maxHistory bounds the history that a golden session takes along.
const maxHistory = 16 << 20

// bareGit is git in a folder of a copy, with no settings but those of the copy.
func (a *App) bareGit(ctx context.Context, dir string) (func(in []byte, args ...string) ([]byte, error), error) {
	env := append(a.ChildEnv(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	git, err := a.door.With(env).Git(ctx, dir)
	return func(in []byte, args ...string) ([]byte, error) {
		cmd := git.Command(ctx, args...)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(errs.Bytes()))
		}
		return out.Bytes(), nil
	}, err
}

// packRepository gives a golden session the state of a repository and the objects of it. What
// may hold secrets is left out and named.
func (a *App) packRepository(ctx context.Context, g *golden.Golden, state []byte) (left []string, err error) {
	stage, err := a.stage()
	if err != nil {
		return nil, err
	}
	defer worktree.RemoveAll(stage)
	from, ok := gitstate.Find(a.Root)
	if !ok {
		return nil, errors.New("the repository that it began in is no longer here")
	}
	if g.Within, err = filepath.Rel(from.Top, a.Root); err != nil {
		return nil, err
	}
	to := gitstate.Repository{Top: stage, Own: filepath.Join(stage, ".git"), Common: filepath.Join(stage, ".git")}
	if err := layOutRepository(state, to, ".", filepath.Join(from.Common, "objects")); err != nil {
		return nil, err
	}
	if g.Pack, left, err = a.packObjects(ctx, stage); err != nil {
		return nil, err
	}
	g.Name, g.Address = a.committer(ctx)
	g.State, err = gitstate.Alone(state, bareNotes(state))
	return left, err
}

// packObjects packs the objects of a repository, but for those that may hold secrets.
func (a *App) packObjects(ctx context.Context, dir string) (pack []byte, left []string, err error) {
	git, err := a.bareGit(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	list, err := git(nil, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects", "--missing=allow-any")
	if err != nil {
		return nil, nil, err
	}
	ids, left := objects(list, nil)
	pack, err = git(ids, "pack-objects", "--stdout", "-q")
	if err == nil && len(pack) > maxHistory {
		err = fmt.Errorf("its repository history takes %d MB, but a golden session allows %d: record it in a smaller repository", len(pack)>>20, maxHistory>>20)
	}
	if err != nil {
		return nil, nil, err
	}
	hidden, err := secretBlobs(git, ids)
	if err == nil && len(hidden) > 0 {
		ids, left = objects(list, hidden)
		pack, err = git(ids, "pack-objects", "--stdout", "-q")
	}
	return pack, left, err
}

// objects are those of a list of git's that may be shown, and the names of the others.
func objects(list []byte, hidden map[string]bool) (ids []byte, left []string) {
	for line := range strings.Lines(string(list)) {
		switch id, name, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case strings.HasPrefix(id, "?"): // it is missing
		case hidden[id] || secret.Is(name):
			if name += " (in git's history)"; !slices.Contains(left, name) {
				left = append(left, name)
			}
		default:
			ids = append(ids, id+"\n"...)
		}
	}
	return ids, left
}

// bareNotes are the notes of a state but for what is this user's alone.
func bareNotes(state []byte) []byte {
	return jsonx.Must(startNotes{Repository: true, Seen: notesOf(state).Seen})
}

// secretBlobs are those of the objects that hold what looks like a key.
func secretBlobs(git func(in []byte, args ...string) ([]byte, error), ids []byte) (map[string]bool, error) {
	out, err := git(ids, "cat-file", "--batch")
	found := make(map[string]bool)
	for err == nil && len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var id, kind string
		var size int
		if _, err = fmt.Sscanf(string(head), "%s %s %d", &id, &kind, &size); err != nil || size+1 > len(rest) {
			return nil, errors.Join(err, errors.New("git listed its objects in an unknown format"))
		}
		if text := string(rest[:size]); kind == "blob" && secret.Shapes().Text(text) != text {
			found[id] = true
		}
		out = rest[size+1:]
	}
	return found, err
}

// unpackRepository makes a repository of a folder in which there is nothing yet, if the golden
// session has one. It holds no configuration but our own and no hooks.
func (a *App) unpackRepository(ctx context.Context, g golden.Golden, root string) error {
	if g.State == nil {
		return nil
	}
	top := root
	for range strings.FieldsFunc(filepath.ToSlash(g.Within), func(r rune) bool { return r == '/' }) {
		if g.Within != "." {
			top = filepath.Dir(top)
		}
	}
	common := filepath.Join(top, ".git")
	to := gitstate.Repository{Top: top, Own: common, Common: common}
	state, err := gitstate.Alone(g.State, bareNotes(g.State)) // a stranger's is as bare as one of ours
	if err == nil {
		err = layOutRepository(state, to, g.Within)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(common, "config"), []byte(configOf(g.Name, g.Address)), 0o644)
	}
	if err != nil {
		return err
	}
	git, err := a.bareGit(ctx, top)
	if errors.Is(err, program.ErrNotFound) {
		return inputf("git is not installed, and this golden session needs it")
	}
	if err == nil {
		_, err = git(g.Pack, "index-pack", "--stdin", "--fix-thin")
	}
	return errors.Join(err, a.checkRepository(ctx, to, g.Within))
}

// committer is who commits in the workspace; empty words if that is not configured.
func (a *App) committer(ctx context.Context) (name, address string) {
	ask := func(key string) string {
		out, _ := a.Door().Query(a.Root).Command(ctx, "config", "--get", key).Output()
		return strings.TrimSpace(string(out))
	}
	return ask("user.name"), ask("user.email")
}

// configOf is the whole configuration of a golden session's repository.
func configOf(name, address string) string {
	value := func(text, without string) string {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, cmp.Or(text, without))
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	const core = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	return core + "[user]\n\tname = " + value(name, "golden") + "\n\temail = " + value(address, "golden@localhost") + "\n"
}
