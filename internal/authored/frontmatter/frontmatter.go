// Package frontmatter reads Markdown files with a header between two lines of three dashes: the form in
// which users write skills, commands and agents.
//
// Parsing is lenient and covers the part of YAML that such files use: plain
// and quoted text, folded and literal blocks, lists, and one level of map.
// Anything else becomes a reported problem, and the rest is still read.
package frontmatter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"coder/internal/core/message"
)

// File is a parsed Markdown file.
type File struct {
	Fields   map[string]Value
	Body     string   // the text after the header, as written
	Problems []string // unreadable lines of the header
}

// Value is the value of a field. A list or a map has no Text.
type Value struct {
	Text string
	List []string
	Map  map[string]string
}

// Items returns the value as a list: its items, or its text split at commas.
func (v Value) Items() []string {
	if v.List != nil || v.Text == "" {
		return v.List
	}
	return splitUnquoted(v.Text, ',')
}

// Text returns the text of a field, or "".
func (f File) Text(name string) string { return f.Fields[name].Text }

// maxHeaderBytes is the maximum size of a header in bytes.
const maxHeaderBytes = 64 << 10

// ErrUnclosed means that the header has no end.
var ErrUnclosed = errors.New("the header has no closing ---")

// Parse parses text. A text without a header is all body.
func Parse(text string) (File, error) {
	header, body, err := splitHeader(text)
	if err != nil {
		return File{Body: text}, err
	}
	p := parser{lines: strings.Split(header, "\n"), fields: map[string]Value{}}
	if header != "" {
		for p.next < len(p.lines) {
			at, line := p.next, p.lines[p.next]
			p.next++
			if isBlank(line) {
				continue
			}
			key, rest, ok := splitKey(line)
			switch {
			case indentWidth(line) > 0:
				p.addProblem(at, "this line belongs to nothing above it")
			case !ok:
				p.addProblem(at, "not of the form name: value")
			default:
				v := p.parseValue(at, rest)
				if _, twice := p.fields[key]; twice {
					p.addProblem(at, "%s appears twice; the first one applies", key)
					continue
				}
				p.fields[key] = v
			}
		}
	}
	if more := len(p.problems) - maxProblems; more > 0 {
		p.problems = append(p.problems[:maxProblems], fmt.Sprintf("%d more lines of the header cannot be read", more))
	}
	return File{Fields: p.fields, Body: body, Problems: p.problems}, nil
}

// maxProblems limits the reported problems of one header.
const maxProblems = 3

// splitHeader separates the header from the body.
func splitHeader(text string) (header, body string, err error) {
	rest := strings.TrimPrefix(text, "\ufeff")
	first, after, _ := strings.Cut(rest, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", rest, nil
	}
	for at := 0; at <= len(after) && at <= maxHeaderBytes; {
		line, _, more := strings.Cut(after[at:], "\n")
		switch strings.TrimRight(line, " \t\r") {
		case "---", "...":
			end := min(len(after), at+len(line)+1)
			return strings.ReplaceAll(after[:at], "\r\n", "\n"), after[end:], nil
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return "", "", ErrUnclosed
}

// ErrNotRegular means that a name is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// ReadFile returns the first limit bytes of a file; cut reports whether there are more.
func ReadFile(files fs.FS, name string, limit int64) (text string, cut bool, err error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() {
		return "", false, message.Errorf("read %s: %w", name, ErrNotRegular)
	}
	f, err := files.Open(name)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", false, message.Errorf("read %s: %w", name, err)
	}
	if cut = int64(len(data)) > limit; cut {
		data = data[:limit]
	}
	return strings.ToValidUTF8(string(data), "\ufffd"), cut, nil
}
