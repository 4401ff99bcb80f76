//go:build !unix

package stdio

import (
	"context"
	"os"
)

// waitReadable does not wait: reading does.
func waitReadable(ctx context.Context, _ *os.File) error { return ctx.Err() }
