package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/host/clipboard"
	"coder/internal/host/repofile"
	"coder/internal/model/catalogue"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

// attachments returns the reader of files that messages name.
func (a *Session) attachments() *orchestrator.Attachments {
	o := files.Options{Shows: a.shows, PDF: a.pdfReader(a.confiner), Buffer: a.Options.Driver.Buffer}
	tools := []tool.Tool{files.Read(a.kit.project.ws, &a.kit.seen.files, o), files.List(a.kit.project.ws), files.Attach(o)}
	if a.Recorded != nil {
		tools = a.Recorded.with(tools)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		panic(err) // three tools with different names
	}
	return &orchestrator.Attachments{Set: set, Tool: files.AttachTool, Outside: outside{a.Site}, Blind: func() error { return a.shows("image/png") }}
}

// shows returns an error if the model cannot see an attached picture
// or PDF. An unknown model may see it: otherwise its server says so.
func (a *Models) shows(mediaType string) error {
	model := a.ModelName()
	switch {
	case mediaType == chat.PDF && !slices.Contains([]string{"anthropic", "gemini", "responses"}, a.endpoint().Kind):
		return errors.New("this endpoint does not accept PDFs")
	case a.sees() && !a.blind.Is(model):
		return nil
	case catalogue.Known(model), a.blind.Is(model):
		return fmt.Errorf("%s does not accept images (if it does, set provider.vision = true)", oneLine(model))
	}
	return nil
}

// outside finds files that the user names outside the workspace and its additional folders.
type outside struct{ *Site }

var errInside = errors.New("in the workspace")

// Locate returns the absolute path of a file outside.
func (a outside) Locate(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(a.Env.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Root, path)
	}
	path = filepath.Clean(path)
	for _, root := range append([]string{a.Root}, a.Options.AddDirs...) {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return "", errInside
		}
	}
	return path, nil
}

func (a outside) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Picture returns the picture in a file that the user named, or nil if it is none.
func (a *Workspace) Picture(path string) (*chat.Image, error) {
	const begins = 16 // bytes that identify a picture
	head, _, err := repofile.OwnHead(path, begins)
	if err != nil || !files.IsPicture(head) {
		return nil, err
	}
	if err := a.shows("image/png"); err != nil {
		return nil, err
	}
	data, err := repofile.Own(path, files.MaxImage)
	if err != nil {
		return nil, err
	}
	img, err := files.Picture(data)
	return &img, err
}

// Clipboard returns the picture in the clipboard.
func (a *Workspace) Clipboard(ctx context.Context) (chat.Image, error) {
	if err := a.shows("image/png"); err != nil {
		return chat.Image{}, err
	}
	data, err := a.clipboard().Picture(ctx, files.MaxImage+1)
	if err != nil {
		return chat.Image{}, err
	}
	return files.Picture(data)
}

func (a *Site) clipboard() clipboard.System {
	return clipboard.System{Door: a.Door(), Getenv: a.Env.Getenv}
}
