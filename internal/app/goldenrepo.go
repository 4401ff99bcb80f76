package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"coder/internal/core/jsonx"
	"coder/internal/host/program"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/golden"
	"coder/internal/record/past"
)

// bareDoor starts git in a folder of a copy, with no settings but those of the copy.
func (a *App) bareDoor(dir string) program.Door {
	env := append(a.ChildEnv(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	return a.door.With(append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)))
}

// bareState is the state of a repository of its own, without what is this user's alone.
func bareState(state []byte) ([]byte, error) {
	return gitstate.Alone(state, jsonx.Must(past.Notes{Repository: true, Seen: past.NotesOf(state).Seen}))
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
	if g.State, err = bareState(state); err != nil {
		return nil, err
	}
	to, _ := past.Beside(gitstate.Repository{}, stage)
	if err := past.LayOutRepository(ctx, state, to, ".", a.bareDoor(stage), nil, filepath.Join(from.Common, "objects")); err != nil {
		return nil, err
	}
	git, err := worktree.Open(ctx, stage, a.bareDoor(stage))
	if err != nil {
		return nil, err
	}
	g.Name, g.Address = a.committer(ctx)
	g.Pack, left, err = past.Pack(ctx, git)
	return left, err
}

// unpackRepository makes a repository of a folder in which there is nothing yet, if the golden
// session has one. It holds no configuration but our own and no hooks.
func (a *App) unpackRepository(ctx context.Context, g golden.Golden, root string) error {
	if g.State == nil {
		return nil
	}
	top := root
	if g.Within != "." {
		top = filepath.Join(root, strings.Repeat("../", strings.Count(g.Within, "/")+1))
	}
	to, _ := past.Beside(gitstate.Repository{}, top)
	state, err := bareState(g.State) // a stranger's is as bare as one of ours
	if err == nil {
		err = past.Configure(to, map[string][]byte{"config": []byte(configOf(g.Name, g.Address))})
	}
	if err == nil {
		err = past.LayOutRepository(ctx, state, to, g.Within, a.bareDoor(top), g.Pack)
	}
	if errors.Is(err, program.ErrNotFound) {
		return inputf("git is not installed, and this golden session needs it")
	}
	return err
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
