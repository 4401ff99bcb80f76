// Package files has the tools that read, list, write, edit and patch files of the workspace.
//
// What is approved is what is written: a changing call plans against the current content, shows that
// diff, and refuses to run if the file has changed since. Text is never re-encoded: a byte order mark,
// line ends and bytes that are not UTF-8 stay the same, or the call is refused.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unsafe"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options configures the tools.
type Options struct {
	Vision bool // the model supports images
	// why the model cannot see an image or a PDF; nil: by Vision
	CheckMedia func(mediaType string) error
	PDF        func(ctx context.Context, pdf []byte) (string, error) // PDF extracts the text of a PDF; nil refuses PDFs
	Buffer     Buffer                                                // the user's unsaved changes; may be nil
}

// All returns every tool of this package, with a common memory of what the model has seen.
func All(ws *workspace.Workspace, o Options) []tool.Tool {
	seen := new(SeenFiles)
	return []tool.Tool{Read(ws, seen, o), List(ws), Write(ws, seen), Edit(ws, seen), Patch(ws, seen), Notebook(ws, seen)}
}

const (
	maxFile = 16 << 20 // bytes of a file to change
	// maxChanged limits the changed lines of a file, and all of a file that a patch changes or that is
	// converted to text: comparing lines costs some fifteen times as much memory.
	maxChanged = 4 << 20

	sniffLen = 8000 // bytes examined to tell text from binary
	bom      = "\ufeff"
)

// toolAliases returns a tool's other names: Sema's, CoAuthor's, and
// any number that are only accepted. An empty name means none.
func toolAliases(sema, coauthor string, others ...string) (list []tool.Alias) {
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

// locate returns two names for a model's path: one for messages, and the real file's.
func locate(ws *workspace.Workspace, path string) (name, at string, err error) {
	if name, err = ws.Resolve(path); err == nil {
		at, err = ws.Locate(path)
	}
	return name, at, err
}

// readPlan returns the plan of a call that reads one path.
func readPlan(ws *workspace.Workspace, path string) (tool.Plan, error) {
	name, at, err := locate(ws, path)
	return tool.Plan{Title: name, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// loadFile reads a file of at most limit bytes to change, or returns nil if it does not exist.
func loadFile(ws *workspace.Workspace, path string, limit int64) ([]byte, fs.FileInfo, error) {
	b, info, err := ws.ReadFile(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return b, info, checkWritable(path, info)
}

func checkWritable(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 {
		return message.Errorf("%s: %w", path, workspace.ErrReadOnly)
	}
	return nil
}

// viewText returns b as a text without a copy of it. b must not be changed afterwards.
func viewText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viewBytes returns a text without a copy of it. The result must not be changed.
func viewBytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// maxNames limits how many entries of a directory are searched for a name.
const maxNames = 10_000

// caseNote returns a note about a new file whose name differs only in case from an existing one, or "".
// On a case-insensitive file system the file already exists.
func caseNote(ws *workspace.Workspace, at string) string {
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
