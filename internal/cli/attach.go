package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/authored/mention"
	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/ui/lineedit"
)

// attachDraft is the draft that stands for a file in a prompt: a marker for a picture, its name for
// any other.
func attachDraft(a *app.Workspace, path string) (lineedit.Draft, error) {
	name := mention.Ref{Path: path, Quoted: !mention.IsPlain(path)}.String()
	picture, err := a.ReadImage(path)
	if err != nil {
		return lineedit.Draft{}, message.Errorf("%s: %w", path, err)
	}
	var line lineedit.Editor
	if picture == nil {
		line.SetText(name)
	} else {
		line.InsertPicture(&lineedit.Picture{Image: *picture, Name: name})
	}
	return line.Draft(), nil
}

// imageDraft are the pictures of the command line as the beginning of a prompt.
func (inv *invocation) imageDraft(a *app.Workspace) (all lineedit.Draft, err error) {
	var line lineedit.Editor
	for _, path := range inv.flags.images {
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.Env.Dir, path)
		}
		one, err := attachDraft(a, filepath.Clean(path))
		if err != nil {
			var missing *fs.PathError
			if errors.As(err, &missing) {
				err = missing
			}
			return all, inputErrorf("--image: %v", err)
		}
		line.Insert(one.WithSuffix(" "))
	}
	return line.Draft(), nil
}

// initialDraft is what the command line says to begin with.
func (inv *invocation) initialDraft(a *app.Workspace) (lineedit.Draft, error) {
	d, err := inv.imageDraft(a)
	if err != nil {
		return d, err
	}
	return d.WithSuffix(strings.Join(inv.flags.args, " ")), nil
}

// maxDroppedBytes is how many bytes the paths of files that are dropped may have.
const maxDroppedBytes = 16 << 10

// droppedDraft is what stands in the line for a paste that is nothing but the absolute paths of files.
func (t *terminal) droppedDraft(pasted string) (lineedit.Draft, error) {
	var line lineedit.Editor
	for _, path := range parseDroppedPaths(pasted) {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return lineedit.Draft{}, nil
		}
		one, err := attachDraft(t.app, path)
		if err != nil {
			return lineedit.Draft{}, err
		}
		line.Insert(one.WithSuffix(" "))
	}
	return line.Draft(), nil
}

// parseDroppedPaths are the paths that text is made of, as terminals write those of files that are
// dropped: in quotes, with backslashes, or as file:// addresses. If there is anything else in it
// there are none.
func parseDroppedPaths(text string) (paths []string) {
	text = strings.TrimSpace(text)
	if len(text) > maxDroppedBytes {
		return nil
	}
	if filepath.IsAbs(text) && !strings.ContainsAny(text, "\r\n'\"\\") {
		if _, err := os.Stat(text); err == nil { // with blanks as they are
			return []string{filepath.Clean(text)}
		}
	}
	for text != "" {
		var word string
		if word, text = cutShellWord(text); word == "" {
			return nil
		}
		if at, ok := strings.CutPrefix(word, "file://"); ok {
			u, err := url.Parse(word)
			if err != nil || u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(at, u.Host+"/") {
				return nil
			}
			word = u.Path
		}
		if !filepath.IsAbs(word) {
			return nil
		}
		paths = append(paths, filepath.Clean(word))
		text = strings.TrimSpace(text)
	}
	return paths
}

// cutShellWord is the first word of a shell line, without its quotes and backslashes, and the
// rest; "" if a quote does not end.
func cutShellWord(line string) (word, rest string) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case quote == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			return b.String(), line[i:]
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", ""
	}
	return b.String(), ""
}

// clipboardTimeout is how long the clipboard is waited for.
const clipboardTimeout = 5 * time.Second

// readClipboard is the picture in the clipboard.
func (t *terminal) readClipboard(ctx context.Context) (*lineedit.Picture, error) {
	ctx, stop := context.WithTimeout(ctx, clipboardTimeout)
	defer stop()
	img, err := t.app.ReadClipboard(ctx)
	picture := &lineedit.Picture{Image: img}
	if err == nil {
		picture.Name = savePicture(t.app.Home, img)
	}
	return picture, err
}

// picturePrefix begins the names of files that have pictures from the clipboard.
const picturePrefix = "picture-"

// savePicture saves a picture below home for the saved draft, which names it @path; "" if it cannot be saved.
func savePicture(home string, img chat.Image) string {
	if home == "" {
		return ""
	}
	sum := sha256.Sum256(img.Data)
	_, kind, _ := strings.Cut(img.MediaType, "/")
	path := filepath.Join(home, app.DraftsDir, picturePrefix+hex.EncodeToString(sum[:6])+"."+kind)
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil || atomicfile.Write(path, img.Data, 0o600) != nil {
		return ""
	}
	return mention.Ref{Path: path, Quoted: !mention.IsPlain(path)}.String()
}

// joinWords is the typed beginning of a prompt with what follows it.
func joinWords(d lineedit.Draft, rest chat.UserText) chat.UserText {
	if d.IsEmpty() {
		return rest
	}
	return append(d.Words(), rest...)
}
