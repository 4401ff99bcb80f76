package cli

import (
	"context"

	"coder/internal/app"
)

func (inv *invocation) runRestore(ctx context.Context, a *app.App) error { return nil }
