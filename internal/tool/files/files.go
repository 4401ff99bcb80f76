// Package files holds the tools that read, list, write, edit and patch files of
// the workspace.
//
// What is approved is what is written: a changing call plans against the
// content it finds, shows that diff, and refuses to run if the file is not
// exactly as it was then. Text is never re-encoded: a byte order mark, line ends
// and bytes that are not UTF-8 stay as they are, or the call is refused.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options say what the tools may count on.
type Options struct {
	Vision bool                                                  // the model can be shown pictures
	Shows  func(mediaType string) error                          // why it cannot be shown a picture or a PDF; nil: by Vision
	PDF    func(ctx context.Context, pdf []byte) (string, error) // PDF extracts the text of a PDF; nil refuses PDFs
	Buffer Buffer                                                // what the person has not saved yet; may be nil
}

// With returns every tool of this package, keeping watch together over what the
// model has seen.
func With(ws *workspace.Workspace, o Options) []tool.Tool {
	seen := new(Seen)
	return []tool.Tool{Read(ws, seen, o), List(ws), Write(ws, seen), Edit(ws, seen), Patch(ws, seen)}
}

const (
	// maxFile is how many bytes a file may have that is changed: with all its lines changed
	// that costs some fifteen times as much memory.
	maxFile  = 4 << 20
	sniffLen = 8000 // bytes looked at to tell text from binary
	bom      = "\ufeff"
)

// aliases lists a tool's other names: Sema's, CoAuthor's, and any number that
// are only understood. An empty name stands for none.
func aliases(sema, coauthor string, others ...string) (list []tool.Alias) {
	if sema != "" {
		list = append(list, tool.Alias{Dialect: tool.Sema, Name: sema})
	}
	if coauthor != "" {
		list = append(list, tool.Alias{Dialect: tool.CoAuthor, Name: coauthor})
	}
	for _, name := range others {
		list = append(list, tool.Alias{Name: name})
	}
	return list
}

// locate makes two names of what a model wrote: the one to talk about it, and
// the one of the file it really leads to.
func locate(ws *workspace.Workspace, path string) (name, at string, err error) {
	if name, err = ws.Resolve(path); err == nil {
		at, err = ws.Locate(path)
	}
	return name, at, err
}

// reading is the plan of a call that looks at one path.
func reading(ws *workspace.Workspace, path string) (tool.Plan, error) {
	name, at, err := locate(ws, path)
	return tool.Plan{Title: name, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// load reads a file that is to be changed; nil if there is none.
func load(ws *workspace.Workspace, path string) ([]byte, fs.FileInfo, error) {
	b, info, err := ws.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm()&0o222 == 0 {
		return nil, nil, fmt.Errorf("%s: %w", path, workspace.ErrReadOnly)
	}
	return b, info, nil
}

// maxNames is how many entries of a directory are looked at for a name.
const maxNames = 10_000

// besides is the note on a file made beside one that is called the same but for
// case; "" if there is none. Where the file system does not tell cases apart the
// file does exist.
func besides(ws *workspace.Workspace, at string) string {
	list, _, err := ws.ReadDir(path.Dir(at), maxNames)
	if err != nil {
		return ""
	}
	base := path.Base(at)
	for _, d := range list {
		if d.Name() != base && strings.EqualFold(d.Name(), base) {
			return fmt.Sprintf("there is also %s, whose name differs only in case; is that the file you meant? On some systems the two cannot exist side by side",
				path.Join(path.Dir(at), d.Name()))
		}
	}
	return ""
}
