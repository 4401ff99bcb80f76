package app

import (
	"cmp"
	"context"
	"fmt"

	"coder/internal/agent/supervisor"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/slash"
	"coder/internal/tool"
)

// since tells what has changed in files since a call began, as far as what it
// would overwrite was kept.
func (a *App) since(t *toolkit, files *slash.Changes) func(context.Context, event.ToolCallRequested) supervisor.Changes {
	return func(ctx context.Context, call event.ToolCallRequested) (s supervisor.Changes) {
		if t.files == nil || len(call.Before) == 0 && call.Tree == "" {
			return s
		}
		keeper := t.files.get()
		changes, err := keeper.Changes(ctx, tool.Kept{Before: call.Before, Tree: call.Tree})
		if err != nil {
			a.warn(fmt.Sprintf("what %s changed could not be determined: %v", call.Tool, err))
		}
		for _, c := range changes {
			name := cmp.Or(c.Before.Path, c.After.Path)
			var old []byte
			if c.Before.Hash != "" {
				if old, err = keeper.Content(ctx, c.Before, slash.MaxCompared); err != nil {
					s.Files = append(s.Files, sanitize.Line(name, 200)+" (changed, and not kept for comparing)")
					continue
				}
				if old == nil {
					old = []byte{}
				}
			}
			diff, line := files.Compare(name, old)
			if line == "" {
				continue
			}
			s.Files = append(s.Files, line)
			s.Diff.Unified += diff
		}
		s.Diff = display.Counted(s.Diff.Unified)
		return s
	}
}
