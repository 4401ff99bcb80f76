package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// Set changes one key in the text of a settings file and leaves the rest of
// it, comments and all, byte for byte as it is. Empty content becomes a file.
func Set(content []byte, key string, value any) ([]byte, error) {
	out, err := set(content, key, value)
	if err != nil {
		return nil, fmt.Errorf("set %s: %w", key, err)
	}
	return out, nil
}

func set(content []byte, key string, value any) ([]byte, error) {
	text, err := encode(value)
	if err != nil {
		return nil, err
	}
	l := newLoader(Options{}) // may a file hold that?
	f, words, ok := l.root.find(key)
	if !ok {
		return nil, errors.New(unknownKey(l.root, f, words, key))
	}
	src, err := parse("value", []byte(text))
	if err != nil {
		return nil, err
	}
	y := layer{loader: l, name: "value"}
	if y.at(key, src.root); len(l.errs) > 0 {
		return nil, errors.Join(l.errs...)
	}
	content, hadBOM := bytes.CutPrefix(content, bom)
	if len(bytes.TrimSpace(content)) == 0 {
		content = []byte("{}\n")
	}
	if src, err = parse("settings", content); err != nil {
		return nil, err
	}
	e := &editor{content: content, newline: "\n", unit: "  "}
	if bytes.Contains(content, []byte("\r\n")) {
		e.newline = "\r\n"
	}
	for line := range bytes.Lines(content) {
		if in := indentation(line); in != "" && line[len(in)] == '"' {
			e.unit = in
			break
		}
	}
	out, err := e.set(src.root, split(key), text)
	if hadBOM && err == nil {
		out = append(bytes.Clone(bom), out...)
	}
	return out, err
}

func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// editor makes changes in the style of the text it changes.
type editor struct {
	content []byte
	newline string
	unit    string // of indentation
}

func indentation(line []byte) string {
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// set gives the value at words, seen from v, the new text.
func (e *editor) set(v hujson.Value, words []string, text string) ([]byte, error) {
	o, err := asObject(v)
	if err != nil {
		return nil, err
	}
	for _, m := range o.Members {
		if memberName(m) != words[0] {
			continue
		}
		if len(words) == 1 {
			return e.splice(m.Value.StartOffset, m.Value.EndOffset, text), nil
		}
		return e.set(m.Value, words[1:], text)
	}
	return e.add(v, o, words, text), nil
}

func (e *editor) splice(from, to int, text string) []byte {
	var b bytes.Buffer
	b.Write(e.content[:from])
	b.WriteString(text)
	b.Write(e.content[to:])
	return b.Bytes()
}

// add puts a new member at the end of o, which is the value of v.
func (e *editor) add(v hujson.Value, o *hujson.Object, words []string, text string) []byte {
	brace := v.EndOffset - 1 // the one that closes o
	outer := e.lineIndent(v.StartOffset)
	if len(o.Members) == 0 {
		inner := outer + e.unit
		body := e.newline + inner + e.member(words, text, inner) + e.newline + outer
		return e.splice(e.trimBack(brace), brace, body)
	}
	last := o.Members[len(o.Members)-1]
	comma := last.Value.EndOffset + len(last.Value.AfterExtra)
	trailing := e.content[comma] == ','
	lead, inner := " ", outer
	if bytes.Contains(last.Name.BeforeExtra, []byte("\n")) || bytes.Contains(o.AfterExtra, []byte("\n")) {
		inner = e.lineIndent(last.Name.StartOffset)
		lead = e.newline + inner
	}
	member := lead + e.member(words, text, inner)
	at := e.trimBack(brace)
	if trailing {
		return e.splice(at, at, member+",")
	}
	out := e.splice(at, at, member)
	return (&editor{content: out}).splice(last.Value.EndOffset, last.Value.EndOffset, ",")
}

// member writes "key": text, within as many objects as words ask for.
func (e *editor) member(words []string, text, indent string) string {
	name := hujson.String(words[0])
	if len(words) == 1 {
		return string(name) + ": " + text
	}
	inner := indent + e.unit
	return string(name) + ": {" + e.newline + inner + e.member(words[1:], text, inner) + e.newline + indent + "}"
}

// lineIndent is the indentation of the line that offset is on.
func (e *editor) lineIndent(offset int) string {
	start := bytes.LastIndexByte(e.content[:offset], '\n') + 1
	return indentation(e.content[start:offset])
}

// trimBack is the offset after the last byte before offset that is not white.
func (e *editor) trimBack(offset int) int {
	return len(bytes.TrimRight(e.content[:offset], " \t\r\n"))
}
