package files

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"coder/internal/tool"
	"coder/internal/workspace"
)

//go:embed read.md
var readDoc string

const (
	defaultLines = 2000
	maxPage      = 64 << 10 // bytes of one result
	maxLineChars = 2000
	// countable is how large a file may be to have its lines counted.
	countable = 16 << 20
)

type readArgs struct {
	Path   string `json:"path" also:"file_path file filename target_file" doc:"file to read, relative to the workspace"`
	Offset int    `json:"offset,omitzero" also:"start_line start from line" doc:"first line, from 1; negative counts from the end"`
	Limit  int    `json:"limit,omitzero" also:"lines num_lines max_lines" doc:"how many lines, 2000 if not given"`
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

// Read is the tool that returns lines of a text file.
func Read(ws *workspace.Workspace, seen *Seen) tool.Tool {
	return tool.Func[readArgs]{
		Name: "read", Doc: readDoc,
		Aliases: aliases("Read", "readFile", "view", "cat_file", "open_file"),
		Plan: func(_ context.Context, a readArgs) (tool.Plan, error) {
			if a.Limit < 0 {
				return tool.Plan{}, fmt.Errorf("limit must not be negative")
			}
			return reading(ws, a.Path)
		},
		Do: func(ctx context.Context, a readArgs, _ io.Writer) (tool.Result, error) {
			return read(ctx, ws, seen, a)
		},
	}
}

func read(ctx context.Context, ws *workspace.Workspace, seen *Seen, a readArgs) (tool.Result, error) {
	name, at, err := locate(ws, a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := ws.Open(at)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	if err := sniff(f, name, info.Size()); err != nil {
		return tool.Result{}, err
	}
	if a.Limit == 0 {
		a.Limit = defaultLines
	}
	p, err := readPage(ctx, f, info.Size(), a.Offset, a.Limit)
	if err != nil {
		return tool.Result{}, err
	}
	seen.note(at, info)
	return p.result(name), nil
}

// sniff refuses what does not look like text.
func sniff(f *os.File, name string, size int64) error {
	buf := make([]byte, sniffLen)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read %s: %w", name, err)
	}
	switch head := buf[:n]; {
	case n >= 2 && (string(head[:2]) == "\xff\xfe" || string(head[:2]) == "\xfe\xff"):
		return fmt.Errorf("%s is UTF-16 text, which this tool does not read; convert it with iconv", name)
	case isBinary(head):
		return fmt.Errorf("%s is a binary file of %d bytes", name, size)
	}
	return nil
}

func (p *page) result(name string) tool.Result {
	r := readResult{
		OK: true, Path: name, Content: p.text.String(), StartLine: p.start, EndLine: p.end,
		HasMore: p.more, TotalLines: p.total,
	}
	if p.invalid {
		r.Note = "the file is not valid UTF-8; bytes that could not be read are shown as \ufffd"
	}
	return tool.Result{Value: r, Summary: fmt.Sprintf("%d lines", p.end-p.start+1)}
}
