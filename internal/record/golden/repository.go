package golden

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"unicode"

	"coder/internal/core/jsonx"
	"coder/internal/host/program"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/past"
)

// standaloneState is the state of a repository of its own, without what is this user's alone.
func standaloneState(state []byte) ([]byte, error) {
	return gitstate.MakeStandalone(state, jsonx.MustMarshal(past.Notes{Repository: true,
		Seen: past.ReadNotes(state).Seen}))
}

// SaveRepository takes along the state of a repository in which the workspace is, and its objects, by way
// of a temporary folder. What may hold secrets is left out and named.
func (g *Golden) SaveRepository(ctx context.Context, state []byte, workspace, stage string,
	door program.Launcher) (left []string, err error) {
	from, ok := gitstate.Find(workspace)
	if !ok {
		return nil, errors.New("the repository that it began in is no longer here")
	}
	if g.RepoDir, err = filepath.Rel(from.Top, workspace); err != nil {
		return nil, err
	}
	if g.State, err = standaloneState(state); err != nil {
		return nil, err
	}
	to, _ := past.CopyRepository(gitstate.Repository{}, stage)
	if err := past.RestoreRepository(ctx, state, to, ".", door, nil, filepath.Join(from.Common, "objects")); err != nil {
		return nil, err
	}
	git, err := worktree.Open(ctx, stage, door)
	if err != nil {
		return nil, err
	}
	g.Pack, left, err = past.PackObjects(ctx, git)
	return left, err
}

// RepositoryTop is the top of the repository whose workspace is copied to root, if there is one.
func (g *Golden) RepositoryTop(root string) string {
	if g.RepoDir == "" || g.RepoDir == "." {
		return root
	}
	return filepath.Join(root, strings.Repeat("../", strings.Count(g.RepoDir, "/")+1))
}

// UnpackRepository makes a repository of a folder in which there is nothing yet, if the golden session has
// one. It holds no configuration but our own and no hooks.
func (g *Golden) UnpackRepository(ctx context.Context, root string, door program.Launcher) error {
	if g.State == nil {
		return nil
	}
	to, _ := past.CopyRepository(gitstate.Repository{}, g.RepositoryTop(root))
	state, err := standaloneState(g.State) // a stranger's is as bare as one of ours
	if err != nil {
		return err
	}
	if err := past.WriteConfigs(to, map[string][]byte{"config": []byte(gitConfig(g.AuthorName,
		g.AuthorEmail))}); err != nil {
		return err
	}
	return past.RestoreRepository(ctx, state, to, g.RepoDir, door, g.Pack)
}

// gitConfig is the whole configuration of a golden session's repository.
func gitConfig(name, address string) string {
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
