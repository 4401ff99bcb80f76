//go:build unix

package repl

import (
	"context"

	"coder/internal/ui/lineedit"
)

// maxPictures is how many pictures go with one message.
const maxPictures = 20

// handlePaste takes what was pasted. A paste that is nothing but the paths of files stands for them,
// in a prompt: that is how a terminal gives files that are dropped on it.
func (r *REPL) handlePaste(text string) error {
	if r.question != nil || r.DraftFromPaths == nil {
		r.activeEditor().Paste(text)
		return nil
	}
	dropped, err := r.DraftFromPaths(text)
	if full := r.pictureLimitText(dropped); full != "" {
		return r.printNote(bad, full)
	}
	if dropped.IsEmpty() {
		r.activeEditor().Paste(text)
	} else {
		r.editor.Insert(dropped)
	}
	if err != nil {
		return r.printNote(bad, r.Translator.TranslateError(err))
	}
	return nil
}

// pictureLimitText is why no more pictures go into the line.
func (r *REPL) pictureLimitText(more lineedit.Draft) string {
	if n := len(more.Pictures()); n > 0 && len(r.editor.Draft().Pictures())+n > maxPictures {
		return r.Translator.T("at most %d images go with a message", maxPictures)
	}
	return ""
}

// clipboardPicture is what was in the clipboard.
type clipboardPicture struct {
	picture *lineedit.Picture
	err     error
}

// pasteClipboard puts the picture in the clipboard into the line as soon as it has come.
func (r *REPL) pasteClipboard(ctx context.Context) {
	r.showCommands.Go(func() {
		picture, err := r.Clipboard(ctx)
		select {
		case r.clipboard <- clipboardPicture{picture, err}:
		case <-ctx.Done():
		}
	})
}

func (r *REPL) insertClipboard(c clipboardPicture) error {
	if c.err != nil {
		return r.printNote(bad, r.Translator.TranslateError(c.err))
	}
	var one lineedit.Editor
	one.InsertPicture(c.picture)
	if full := r.pictureLimitText(one.Draft()); full != "" {
		return r.printNote(bad, full)
	}
	r.editor.Insert(one.Draft())
	return nil
}
