package files

import (
	"bytes"
	_ "embed"
	"errors"
	"strings"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed write.md
var writeDoc string

type writeArgs struct {
	Path    string `json:"path" also:"file_path file filename target_file" doc:"file to write, relative to the workspace; missing directories are made"`
	Content string `json:"content" also:"contents text data file_text" doc:"the whole new content"`
}

// Write is the tool that creates a file or replaces all of it.
func Write(ws *workspace.Workspace, seen *Seen) tool.Tool {
	return changer[writeArgs]{
		Func: tool.Func[writeArgs]{Name: "write", Doc: writeDoc, Aliases: aliases("Write", "writeFile", "create_file", "create")},
		ws:   ws, seen: seen,
		path: func(a writeArgs) string { return a.Path },
		next: func(a writeArgs, old []byte) (o outcome, err error) {
			o.content, err = rewrite(a.Path, old, a.Content)
			return o, err
		},
	}
}

// rewrite is content in the manner of old: with its byte order mark, and with
// its line ends if they are all of one kind. Reading shows neither, so the
// model cannot be expected to write them.
func rewrite(path string, old []byte, content string) ([]byte, error) {
	if strings.ContainsRune(content, 0) {
		return nil, errors.New("content holds a NUL byte; this tool writes text")
	}
	if err := textOnly(path, old); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(old, []byte(bom)) && !strings.HasPrefix(content, bom) {
		content = bom + content
	}
	if ends := endingOf(string(old)); bytes.ContainsAny(old, "\r\n") && ends != mixed {
		content = ends.write(ends.given(content))
	}
	return append([]byte{}, content...), nil
}
