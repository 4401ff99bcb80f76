package files

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Buffer returns the text of a file in the user's editor, by
// its full path, or false if the editor does not report it.
type Buffer func(ctx context.Context, path string) (text string, ok bool)

// unsavedText returns the text of a file in the editor, if it differs from the disk.
func (b Buffer) unsavedText(ctx context.Context, ws *workspace.Workspace, name string, disk []byte) (text string,
	unsaved bool) {
	if b == nil || disk == nil {
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(ws.Root(), name)
	}
	text, ok := b(ctx, name)
	return text, ok && text != string(disk)
}

// RefuseUnsaved makes t refuse to change files with unsaved changes in the
// user's editor: they would be lost, or overwrite what t wrote.
func RefuseUnsaved(t tool.Tool, ws *workspace.Workspace, b Buffer) tool.Tool {
	if b == nil {
		return t
	}
	return unsavedGuard{t, ws, b}
}

type unsavedGuard struct {
	tool.Tool
	ws     *workspace.Workspace
	buffer Buffer
}

// Prepare prepares the tool's call.
func (s unsavedGuard) Prepare(ctx context.Context, args json.RawMessage) (tool.Call, error) {
	c, err := s.Tool.Prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	return guardedCall{c, s}, nil
}

type guardedCall struct {
	tool.Call
	guard unsavedGuard
}

// Run runs the call if no file that it would write is unsaved.
func (c guardedCall) Run(ctx context.Context, out io.Writer) (tool.Result, error) {
	for _, e := range c.Plan().Effects {
		if e.Kind != tool.Write {
			continue
		}
		name, at, err := locate(c.guard.ws, e.Target)
		if err != nil {
			continue // the call reports the error
		}
		f, info, err := c.guard.ws.Open(at)
		if err != nil || info.Size() > maxContent {
			continue // no file yet, or none that an editor would have
		}
		disk, err := io.ReadAll(io.LimitReader(f, maxContent))
		_ = f.Close() // opened only for reading
		if _, unsaved := c.guard.buffer.unsavedText(ctx, c.guard.ws, name, disk); err == nil && unsaved {
			return tool.Result{},
				message.Errorf("%s has unsaved changes in the user's editor; ask the user to save it, then re-read it",
					name)
		}
	}
	return c.Call.Run(ctx, out)
}
