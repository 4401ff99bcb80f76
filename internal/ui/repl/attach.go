//go:build unix

package repl

import (
	"context"

	"coder/internal/ui/lineedit"
)

// mostPictures is how many pictures go with one message.
const mostPictures = 20

// paste takes what was pasted. A paste that is nothing but the paths of files stands for them,
// in a prompt: that is how a terminal gives files that are dropped on it.
func (r *REPL) paste(text string) error {
	if r.open != nil || r.Dropped == nil {
		r.line().Paste(text)
		return nil
	}
	dropped, err := r.Dropped(text)
	if full := r.tooMany(dropped); full != "" {
		return r.remark(bad, full)
	}
	if dropped.Empty() {
		r.line().Paste(text)
	} else {
		r.editor.Insert(dropped)
	}
	if err != nil {
		return r.remark(bad, r.Words.Said(err.Error()))
	}
	return nil
}

// tooMany is why no more pictures go into the line.
func (r *REPL) tooMany(more lineedit.Draft) string {
	if n := len(more.Pictures()); n > 0 && len(r.editor.Draft().Pictures())+n > mostPictures {
		return r.Words.T("at most %d images go with a message", mostPictures)
	}
	return ""
}

// copied is what was in the clipboard.
type copied struct {
	picture *lineedit.Picture
	err     error
}

// copyIn puts the picture in the clipboard into the line as soon as it has come.
func (r *REPL) copyIn(ctx context.Context) {
	r.looking.Go(func() {
		picture, err := r.Clipboard(ctx)
		select {
		case r.copied <- copied{picture, err}:
		case <-ctx.Done():
		}
	})
}

func (r *REPL) putCopied(c copied) error {
	if c.err != nil {
		return r.remark(bad, r.Words.Said(c.err.Error()))
	}
	var one lineedit.Editor
	one.PutPicture(c.picture)
	if full := r.tooMany(one.Draft()); full != "" {
		return r.remark(bad, full)
	}
	r.editor.Insert(one.Draft())
	return nil
}
