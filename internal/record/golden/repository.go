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

// bare is the state of a repository of its own, without what is this user's alone.
func bare(state []byte) ([]byte, error) {
	return gitstate.Alone(state, jsonx.Must(past.Notes{Repository: true, Seen: past.NotesOf(state).Seen}))
}

// Take takes along the state of a repository in which the workspace is, and its objects, by way
// of a temporary folder. What may hold secrets is left out and named.
func (g *Golden) Take(ctx context.Context, state []byte, workspace, stage string, door program.Door) (left []string, err error) {
	from, ok := gitstate.Find(workspace)
	if !ok {
		return nil, errors.New("the repository that it began in is no longer here")
	}
	if g.Within, err = filepath.Rel(from.Top, workspace); err != nil {
		return nil, err
	}
	if g.State, err = bare(state); err != nil {
		return nil, err
	}
	to, _ := past.Beside(gitstate.Repository{}, stage)
	if err := past.LayOutRepository(ctx, state, to, ".", door, nil, filepath.Join(from.Common, "objects")); err != nil {
		return nil, err
	}
	git, err := worktree.Open(ctx, stage, door)
	if err != nil {
		return nil, err
	}
	g.Pack, left, err = past.Pack(ctx, git)
	return left, err
}

// Top is the top of the repository whose workspace is copied to root, if there is one.
func (g *Golden) Top(root string) string {
	if g.Within == "" || g.Within == "." {
		return root
	}
	return filepath.Join(root, strings.Repeat("../", strings.Count(g.Within, "/")+1))
}

// Unpack makes a repository of a folder in which there is nothing yet, if the golden session has
// one. It holds no configuration but our own and no hooks.
func (g *Golden) Unpack(ctx context.Context, root string, door program.Door) error {
	if g.State == nil {
		return nil
	}
	to, _ := past.Beside(gitstate.Repository{}, g.Top(root))
	state, err := bare(g.State) // a stranger's is as bare as one of ours
	if err != nil {
		return err
	}
	if err := past.Configure(to, map[string][]byte{"config": []byte(configOf(g.Name, g.Address))}); err != nil {
		return err
	}
	return past.LayOutRepository(ctx, state, to, g.Within, door, g.Pack)
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
