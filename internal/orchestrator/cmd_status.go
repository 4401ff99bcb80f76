package orchestrator

import (
	"context"
	"fmt"

	"coder/internal/show"
)

func statusCommand() command {
	return command{name: "status", help: "show what this session runs with", run: func(ctx context.Context, in invocation) (string, error) {
		set := in.Settings()
		used := in.contextUsed(set)
		t := show.Table{Rows: [][]string{
			{"model", set.Model},
			{"mode", set.Mode},
			{"context", fmt.Sprintf("%d of %d tokens", used, set.ContextLimit)},
		}}
		if in.Profile != nil {
			_, preset := in.Profile.Current()
			t.Rows = append(t.Rows, []string{"permissions", preset})
		}
		if in.Desk.Status != nil {
			t.Rows = append(t.Rows, in.Desk.Status(ctx)...)
		}
		return aligned(t), ctx.Err()
	}}
}
