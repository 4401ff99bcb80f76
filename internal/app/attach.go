package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/host/clipboard"
	"coder/internal/host/repofile"
	"coder/internal/model/catalogue"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

// newAttachments returns the reader of files that messages name.
func (a *Session) newAttachments() *orchestrator.Attachments {
	o := files.Options{CheckMedia: a.checkViewable, PDF: a.pdfReader(a.confiner), Buffer: a.Options.Driver.Buffer}
	tools := []tool.Tool{files.Read(a.kit.project.ws, &a.kit.recollection.files, o), files.List(a.kit.project.ws),
		files.Attach(o)}
	if a.Replay != nil {
		tools = a.Replay.withReplacements(tools)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		panic(err) // three tools with different names
	}
	return &orchestrator.Attachments{Tools: set, OutsideTool: files.AttachTool, Outside: outsideFiles{a.Site},
		ImageSupportError: func() error { return a.checkViewable("image/png") }}
}

// checkViewable returns an error if the model cannot see an attached picture
// or PDF. An unknown model may see it: otherwise its server says so.
func (a *Models) checkViewable(mediaType string) error {
	model := a.ModelName()
	switch {
	case mediaType == chat.PDF && !slices.Contains([]string{"anthropic", "gemini", "responses"}, a.endpoint().Kind):
		return errors.New("this endpoint does not accept PDFs")
	case a.acceptsImages() && !a.imageRejecters.HasRefused(model):
		return nil
	case catalogue.HasModel(model), a.imageRejecters.HasRefused(model):
		return message.Errorf("%s does not accept images (if it does, set provider.vision = true)", singleLine(model))
	}
	return nil
}

// outsideFiles finds files that the user names outside the workspace and its additional folders.
type outsideFiles struct{ *Site }

var errInsideWorkspace = errors.New("in the workspace")

// Locate returns the absolute path of a file outside.
func (a outsideFiles) Locate(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(a.Env.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Root, path)
	}
	path = filepath.Clean(path)
	for _, root := range append([]string{a.Root}, a.Options.AddDirs...) {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return "", errInsideWorkspace
		}
	}
	return path, nil
}

func (a outsideFiles) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// ReadImage returns the picture in a file that the user named, or nil if it is none.
func (a *Workspace) ReadImage(path string) (*chat.Image, error) {
	const begins = 16 // bytes that identify a picture
	head, _, err := repofile.ReadOwnHead(path, begins)
	if err != nil || !files.IsImage(head) {
		return nil, err
	}
	if err := a.checkViewable("image/png"); err != nil {
		return nil, err
	}
	data, err := repofile.ReadOwn(path, files.MaxImage)
	if err != nil {
		return nil, err
	}
	img, err := files.ParseImage(data)
	return &img, err
}

// ReadClipboard returns the picture in the clipboard.
func (a *Workspace) ReadClipboard(ctx context.Context) (chat.Image, error) {
	if err := a.checkViewable("image/png"); err != nil {
		return chat.Image{}, err
	}
	data, err := a.clipboard().Picture(ctx, files.MaxImage+1)
	if err != nil {
		return chat.Image{}, err
	}
	return files.ParseImage(data)
}

func (a *Site) clipboard() clipboard.System {
	return clipboard.System{Door: a.Launcher(), Getenv: a.Env.Getenv}
}
