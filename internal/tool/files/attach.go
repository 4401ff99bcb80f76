package files

import (
	"bytes"
	"context"
	"io"
	"path/filepath"

	"coder/internal/core/message"
	"coder/internal/host/repofile"
	"coder/internal/tool"
)

// AttachTool is the name of the tool that reads a file which the user named outside the workspace.
const AttachTool = "attach"

// maxAttached is the maximum size of such a file.
const maxAttached = 16 << 20

// Attach returns the tool that reads a file which the user named outside the workspace. The model does
// not have the tool, and the name gives no other tool access to the file.
func Attach(o Options) tool.Tool {
	return tool.Func[readArgs]{
		Name: AttachTool, Doc: "reads a file that a message names",
		PlanRun: func(_ context.Context, a readArgs) (tool.Plan, tool.Run, error) {
			if !filepath.IsAbs(a.Path) {
				return tool.Plan{}, nil, message.Errorf("%s is not an absolute path", a.Path)
			}
			plan, real := tool.Plan{Title: a.Path, Effects: []tool.Effect{{Kind: tool.Read, Target: a.Path}}}, a.Path
			if led, err := filepath.EvalSymlinks(a.Path); err == nil && led != real {
				real = led
				plan.Effects = append(plan.Effects, tool.Effect{Kind: tool.Read, Target: real})
			}
			return plan, func(ctx context.Context, _ io.Writer) (tool.Result, error) { return attach(ctx, o, a, real) }, nil
		},
	}
}

// attach reads the file at real, the link target of its name.
func attach(ctx context.Context, o Options, a readArgs, real string) (tool.Result, error) {
	data, err := repofile.ReadOwn(real, maxAttached)
	if err != nil {
		return tool.Result{}, err
	}
	s := source{name: a.Path, file: bytes.NewReader(data), size: int64(len(data))}
	if shown, err := s.mediaResult(o); shown.Value != nil || err != nil {
		return shown, err
	}
	text, err := s.openText(ctx, o.PDF)
	if err != nil {
		return tool.Result{}, err
	}
	return s.readPage(ctx, text, a, nil)
}
