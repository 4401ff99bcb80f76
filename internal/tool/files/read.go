package files

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed read.md
var readDoc string

const (
	defaultLines = 2000
	maxPage      = 64 << 10 // bytes of one result
	maxLineChars = 2000
	// maxCountedFile is the maximum size of a file whose lines are counted.
	maxCountedFile = 16 << 20
)

type readArgs struct {
	Path   string `json:"path" also:"file_path file filename target_file"`
	Offset int    `json:"offset,omitzero" also:"start_line start from line" doc:"first line; -20: the last 20"`
	Limit  int    `json:"limit,omitzero" also:"lines num_lines max_lines"`
}

type readResult struct {
	OK         bool   `json:"ok"`
	Path       string `json:"path"`
	Content    string `json:"content"`
	StartLine  int    `json:"start_line"`
	EndLine    int    `json:"end_line"`
	HasMore    bool   `json:"has_more"`
	TotalLines int    `json:"total_lines,omitzero"`
	Note       string `json:"note,omitzero"`
}

// Read returns the tool that returns lines of a text file, or an image.
func Read(ws *workspace.Workspace, seen *SeenFiles, o Options) tool.Tool {
	return tool.Func[readArgs]{
		Name: "read", Doc: readDoc,
		Aliases: toolAliases("Read", "readFile", "view", "cat_file", "open_file"),
		Plan: func(_ context.Context, a readArgs) (tool.Plan, error) {
			if a.Limit < 0 {
				return tool.Plan{}, message.Errorf("limit must not be negative")
			}
			return readPlan(ws, a.Path)
		},
		Do: func(ctx context.Context, a readArgs, _ io.Writer) (tool.Result, error) {
			return readFile(ctx, ws, seen, o, a)
		},
	}
}

func readFile(ctx context.Context, ws *workspace.Workspace, seen *SeenFiles, o Options, a readArgs) (tool.Result,
	error) {
	name, at, err := locate(ws, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if info, err := ws.Stat(at); err == nil && info.IsDir() {
		return tool.Result{}, message.Errorf("%s is a directory; use list to see its files", name)
	}
	f, info, err := ws.Open(at)
	if err != nil {
		return tool.Result{}, ws.AddSuggestion(ctx, a.Path, err)
	}
	defer f.Close()
	s := source{name: name, file: f, size: info.Size()}
	if shown, err := s.mediaResult(o); shown.Value != nil || err != nil {
		return shown, err
	}
	text, err := s.openText(ctx, o.PDF)
	if err != nil {
		return tool.Result{}, err
	}
	if b, unsaved := o.Buffer.unsavedText(ctx, ws, name, s.content); unsaved {
		text, s.size, s.note = strings.NewReader(b), int64(len(b)),
			"the text in the user's editor, with unsaved changes; it can be edited here once they are saved"
	}
	var saw map[string]string // recorded before it is shown: later changes count
	switch {
	case s.content != nil:
		saw = seen.remember(at, hashContent(bytes.NewReader(s.content)), s.content)
	case seen != nil && info.Size() <= maxFile: // else it is too large to change
		saw = seen.remember(at, hashContent(io.NewSectionReader(f, 0, maxFile)), nil)
	}
	return s.readPage(ctx, text, a, saw)
}

// readPage returns the requested lines of text.
func (s *source) readPage(ctx context.Context, text io.ReaderAt, a readArgs, saw map[string]string) (tool.Result,
	error) {
	p, err := readPage(ctx, text, s.size, a.Offset, cmp.Or(a.Limit, defaultLines))
	if err != nil {
		return tool.Result{}, err
	}
	if p.invalid {
		sample := s.head
		if s.content != nil {
			sample = s.content
		}
		s.note = "the file is not valid UTF-8 and its encoding is not supported; bytes that could not be read are shown as \ufffd. " +
			"It may be " + guessEncoding(sample) + ": iconv -f ENCODING -t UTF-8 shows it as it is"
	}
	r := readResult{
		OK: true, Path: s.name, Content: p.text.String(), StartLine: p.start, EndLine: p.end,
		HasMore: p.hasMore, TotalLines: p.total, Note: s.note,
	}
	// else this is the requested number
	summary := tool.MarkPartial(tool.FormatCount(p.end-p.start+1, "line", "lines"), p.hasMore && a.Limit == 0)
	return tool.Result{Value: r, Summary: summary, SeenFiles: saw}, nil
}

// mediaResult returns the file as an image or a PDF for the model, or an empty result for a file to read as text.
func (s *source) mediaResult(o Options) (tool.Result, error) {
	s.head = make([]byte, sniffLen)
	n, err := s.file.ReadAt(s.head, 0)
	if err != nil && err != io.EOF {
		return tool.Result{}, message.Errorf("read %s: %w", s.name, err)
	}
	s.head = s.head[:n]
	if mediaType := imageType(s.head); mediaType != "" {
		return s.imageResult(mediaType, o)
	}
	if isPDF(s.head) && s.size <= MaxImage && o.checkMedia(chat.PDF) == nil {
		return s.imageResult(chat.PDF, o)
	}
	return tool.Result{}, nil
}

// isPDF reports whether a file with this beginning is a PDF. Its mark
// may follow something else, but not in a text that mentions it.
func isPDF(head []byte) bool {
	const within = 1024
	at := bytes.Index(head[:min(len(head), within)], []byte("%PDF-"))
	return at == 0 || at > 0 && head[at-1] == '\n' && !utf8.Valid(head[:max(len(head)-utf8.UTFMax, 0)])
}

// source is a file that is being read.
type source struct {
	name    string
	file    io.ReaderAt
	size    int64 // of the text
	head    []byte
	content []byte // the whole content, if it is not large
	note    string
}

// openText returns the readable content: the file itself, or text extracted from it.
func (s *source) openText(ctx context.Context, pdf func(context.Context, []byte) (string, error)) (io.ReaderAt, error) {
	switch {
	case isUTF16(s.head):
		return nil, message.Errorf("%s: %w", s.name, errUTF16)
	case isPDF(s.head):
		if pdf == nil {
			pdf = refusePDF
		}
		return s.extractText(ctx, "PDF", pdf, "text taken from a PDF; pictures are lost")
	case bytes.IndexByte(s.head, 0) >= 0: // not text in an ASCII-compatible encoding
		return nil, message.Errorf("%s is a binary file of %d bytes", s.name, s.size)
	case strings.EqualFold(path.Ext(s.name), ".ipynb"):
		if text, err := s.extractText(ctx, "notebook", notebookText,
			"cells of a notebook; outputs are shortened. The file itself is JSON: change cells with notebook_edit"); err == nil {
			return text, nil
		}
	}
	if s.size > maxContent {
		return s.file, nil
	}
	b, err := s.readAll()
	s.content = b
	return bytes.NewReader(b), err
}

// refusePDF is the PDF reader if coder has none.
func refusePDF(context.Context, []byte) (string, error) {
	return "", errors.New("install pdftotext (poppler-utils) to read PDFs")
}

// extractText returns text extracted from the whole file.
func (s *source) extractText(ctx context.Context, kind string, make func(context.Context, []byte) (string, error),
	note string) (io.ReaderAt, error) {
	if s.size > maxChanged {
		return nil, message.Errorf("%s is a %s of %d bytes, too large to read", s.name, kind, s.size)
	}
	b, err := s.readAll()
	if err != nil {
		return nil, err
	}
	text, err := make(ctx, b)
	if err != nil {
		return nil, message.Errorf("%s is a %s of %d bytes: %w", s.name, kind, len(b), err)
	}
	s.size, s.note = int64(len(text)), note
	return strings.NewReader(text), nil
}

// readAll returns the content of a file that is not large.
func (s *source) readAll() ([]byte, error) {
	b := make([]byte, s.size)
	n, err := s.file.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, message.Errorf("read %s: %w", s.name, err)
	}
	s.size = int64(n) // it may have been truncated meanwhile
	return b[:n], nil
}
