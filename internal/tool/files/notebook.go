package files

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

//go:embed notebook.md
var notebookDoc string

type notebookArgs struct {
	Path   string `json:"path" also:"notebook_path file_path file"`
	Cell   string `json:"cell,omitzero" also:"cell_id id" doc:"for insert: the cell before, or none to insert at the start"`
	Source string `json:"source,omitzero" also:"new_source content"`
	Mode   string `json:"mode,omitzero" also:"edit_mode" enum:"replace|insert|delete" doc:"default replace"`
	Type   string `json:"type,omitzero" also:"cell_type" enum:"code|markdown|raw"`
	Number *int   `json:"cell_number,omitzero" hidden:"yes"` // counts from 0, as other agents do
}

// Notebook returns the tool that changes one cell of a notebook. The rest of the file stays byte for byte the same.
func Notebook(ws *workspace.Workspace, seen *SeenFiles) tool.Tool {
	f := tool.Func[notebookArgs]{Name: "notebook_edit", Doc: notebookDoc,
		Aliases: toolAliases("NotebookEdit", "", "notebookEdit", "edit_notebook")}
	return changeTool(f, ws, seen, func(a notebookArgs) (string, hunkSelection) { return a.Path, nil }, editNotebook)
}

// member is a member of a JSON object, its value as written.
type member struct {
	name  string
	value json.RawMessage
}

// book is a notebook as text, and where its cells are.
type book struct {
	text   []byte
	cells  []span // of whole cells
	list   span   // of the list of cells
	indent string // of one level; empty if the file is one line
	minor  int    // of the format 4
}

type span struct{ from, to int }

// parseBook finds the cells of a notebook.
func parseBook(text []byte) (b book, err error) {
	b.text = text
	var top struct {
		Format int `json:"nbformat"`
		Minor  int `json:"nbformat_minor"`
	}
	if err := json.Unmarshal(text, &top); err != nil {
		return b, message.Errorf("malformed file: %w", err)
	}
	if b.minor = top.Minor; top.Format != 4 {
		return b, message.Errorf("format %d is not supported: convert the file with jupyter nbconvert --to notebook",
			top.Format)
	}
	if line, rest, ok := bytes.Cut(text, []byte("\n")); ok && strings.TrimSpace(string(line)) == "{" {
		b.indent = string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))])
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // the text is an object
	for d.More() {
		key, _ := d.Token()
		if key != "cells" {
			var skip json.RawMessage
			_ = d.Decode(&skip)
			continue
		}
		if open, _ := d.Token(); open != json.Delim('[') {
			break
		}
		b.list.from = int(d.InputOffset())
		for d.More() {
			var raw json.RawMessage
			_ = d.Decode(&raw)
			to := int(d.InputOffset())
			b.cells = append(b.cells, span{to - len(raw), to})
		}
		_, _ = d.Token()
		b.list.to = int(d.InputOffset()) - 1
		return b, nil
	}
	return b, errors.New("no cells")
}

// members returns the members of a cell, in order.
func (b book) members(i int) (all []member) {
	d := json.NewDecoder(bytes.NewReader(b.text[b.cells[i].from:b.cells[i].to]))
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		m := member{}
		m.name, _ = key.(string)
		_ = d.Decode(&m.value)
		all = append(all, m)
	}
	return all
}

// text returns the text of a member, or "".
func textIn(cell []member, name string) (t cellText) {
	if i := indexOf(cell, name); i >= 0 {
		_ = t.UnmarshalJSON(cell[i].value) // never fails
	}
	return t
}

func indexOf(cell []member, name string) int {
	return slices.IndexFunc(cell, func(m member) bool { return m.name == name })
}

// find returns the index of a cell: by its id, its number from 1, or cell-0 for the first without an id.
func (b book) find(a notebookArgs) (int, error) {
	if a.Number != nil && a.Cell == "" {
		a.Cell = strconv.Itoa(*a.Number + 1)
	}
	for i := range b.cells {
		if a.Cell != "" && string(textIn(b.members(i), "id")) == a.Cell {
			return i, nil
		}
	}
	n, err := strconv.Atoi(a.Cell)
	if rest, ok := strings.CutPrefix(a.Cell, "cell-"); ok {
		n, err = strconv.Atoi(rest)
		n++
	}
	if a.Mode == "insert" && (a.Cell == "" || err == nil && n == 0) {
		return -1, nil
	}
	if err != nil || n < 1 || n > len(b.cells) {
		return 0, message.Errorf("unknown cell %q: use an id or 1 to %d; nothing was changed", a.Cell, len(b.cells))
	}
	return n - 1, nil
}

// editNotebook returns the notebook's content after the change of a cell.
func editNotebook(a notebookArgs, old []byte) (o newContent, err error) {
	if old == nil {
		return o, message.Errorf("%s does not exist; write creates a notebook", a.Path)
	}
	b, err := parseBook(old)
	if err != nil {
		return o, message.Errorf("%s is not a notebook that this tool can change: %w", a.Path, err)
	}
	i, err := b.find(a)
	if err != nil {
		return o, message.Errorf("%s: %w", a.Path, err)
	}
	switch a.Mode {
	case "insert":
		cell := b.fresh(a, i)
		o.hunkText = &part{after: []byte(a.Source), where: fmt.Sprintf(" [%d] new", i+2)}
		o.content, o.note = b.insert(i, cell), fmt.Sprintf("it is cell %d now", i+2)
	case "delete":
		o.hunkText = &part{before: []byte(textIn(b.members(i), "source")), where: fmt.Sprintf(" [%d]", i+1)}
		o.content, o.note = b.remove(i), "the cells after it have other numbers now"
	case "", "replace":
		cell := b.members(i)
		o.hunkText = &part{before: []byte(textIn(cell, "source")), after: []byte(a.Source), where: fmt.Sprintf(" [%d]", i+1)}
		o.content = b.splice(b.cells[i], b.write(b.replace(cell, a)))
	default:
		return o, message.Errorf("unknown mode %q: use replace, insert or delete", a.Mode)
	}
	if !json.Valid(o.content) {
		return o, message.Errorf("%s could not be changed without damage; use a command", a.Path)
	}
	return o, nil
}

// replace returns a cell with another source, and another type if one is given.
func (b book) replace(cell []member, a notebookArgs) []member {
	kind, source := string(textIn(cell, "cell_type")), string(textIn(cell, "source"))
	to := cmp.Or(a.Type, kind)
	if source == a.Source && to == kind {
		return cell
	}
	set := func(name string, value json.RawMessage) {
		if i := indexOf(cell, name); i >= 0 {
			cell[i].value = value
		} else {
			cell = append(cell, member{name, value})
		}
	}
	i := indexOf(cell, "source")
	inOne := i >= 0 && bytes.HasPrefix(cell[i].value, []byte(`"`))
	set("source", b.source(a.Source, inOne))
	set("cell_type", quoted(to))
	cell = slices.DeleteFunc(cell, func(m member) bool {
		return to != "code" && (m.name == "outputs" || m.name == "execution_count") || to != kind && m.name == "attachments"
	})
	if to == "code" {
		set("execution_count", json.RawMessage("null"))
		set("outputs", json.RawMessage("[]"))
	}
	return cell
}

// fresh returns a new cell, with an id where the notebook's format has ids. The same
// call makes the same id, so that the approved change is the one that is made.
func (b book) fresh(a notebookArgs, after int) (cell []member) {
	kind := cmp.Or(a.Type, "code")
	cell = append(cell, member{"cell_type", quoted(kind)})
	if kind == "code" {
		cell = append(cell, member{"execution_count", json.RawMessage("null")})
	}
	if b.minor >= 5 {
		sum := sha256.Sum256(fmt.Appendf(slices.Clone(b.text), "%d %s", after, a.Source))
		cell = append(cell, member{"id", quoted(hex.EncodeToString(sum[:4]))})
	}
	cell = append(cell, member{"metadata", json.RawMessage("{}")})
	if kind == "code" {
		cell = append(cell, member{"outputs", json.RawMessage("[]")})
	}
	return append(cell, member{"source", b.source(a.Source, false)})
}

// cellDepth is the depth of a cell's braces in a notebook.
const cellDepth = 2

// source returns a source as JSON: a list of lines, or one text.
func (b book) source(text string, inOne bool) json.RawMessage {
	if inOne {
		return quoted(text)
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, string(quoted(line)))
	}
	return b.block("[", lines, "]", cellDepth+1)
}

// write returns a cell as JSON.
func (b book) write(cell []member) []byte {
	var lines []string
	for _, m := range cell {
		lines = append(lines, string(quoted(m.name))+": "+string(m.value))
	}
	return b.block("{", lines, "}", cellDepth)
}

// block writes items between braces at some depth.
func (b book) block(open string, items []string, shut string, depth int) []byte {
	if b.indent == "" || len(items) == 0 {
		return []byte(open + strings.Join(items, ", ") + shut)
	}
	deep := "\n" + strings.Repeat(b.indent, depth)
	return []byte(open + deep + b.indent + strings.Join(items, ","+deep+b.indent) + deep + shut)
}

// splice returns the notebook with other bytes in a place.
func (b book) splice(at span, with []byte) []byte {
	return slices.Concat(b.text[:at.from], with, b.text[at.to:])
}

// insert returns the notebook with a new cell after cell i, or at the start.
func (b book) insert(i int, cell []member) []byte {
	gap := ""
	if b.indent != "" {
		gap = "\n" + strings.Repeat(b.indent, cellDepth)
	}
	text := b.write(cell)
	switch {
	case len(b.cells) == 0:
		end := strings.TrimSuffix(gap, b.indent)
		return b.splice(b.list, slices.Concat([]byte(gap), text, []byte(end)))
	case i < 0:
		at := b.cells[0].from
		return b.splice(span{at, at}, slices.Concat(text, []byte(","+cmp.Or(gap, " "))))
	}
	at := b.cells[i].to
	return b.splice(span{at, at}, slices.Concat([]byte(","+cmp.Or(gap, " ")), text))
}

// remove returns the notebook without cell i and its comma.
func (b book) remove(i int) []byte {
	switch {
	case len(b.cells) == 1:
		return b.splice(b.list, nil)
	case i == 0:
		return b.splice(span{b.cells[0].from, b.cells[1].from}, nil)
	}
	return b.splice(span{b.cells[i-1].to, b.cells[i].to}, nil)
}

// quoted returns a text as JSON, with letters and signs as they are.
func quoted(text string) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can always be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
