package display

import (
	"encoding/json"

	"coder/internal/core/jsonx"
)

// Blocks are shown one below another. In JSON each block is an object with its kind.
type Blocks []Block

// wire is the JSON form of a block.
type wire struct {
	Kind    string    `json:"kind"`
	Text    string    `json:"text,omitempty"`
	Lang    string    `json:"lang,omitempty"`
	Added   int       `json:"added,omitempty"`
	Deleted int       `json:"deleted,omitempty"`
	More    int       `json:"more,omitempty"`
	Head    []Cell    `json:"head,omitempty"`
	Rows    [][]Cell  `json:"rows,omitempty"`
	First   int       `json:"first,omitempty"`
	Checks  Checklist `json:"checks,omitempty"`
	Shell   *Shell    `json:"shell,omitempty"`
}

// Wire returns b as it is encoded, or nil if b is nil.
func Wire(b Block) any {
	switch b := b.(type) {
	case Text:
		return wire{Kind: "text", Text: string(b)}
	case Code:
		return wire{Kind: "code", Text: b.Source, Lang: b.Lang}
	case Diff:
		return wire{Kind: "diff", Text: b.Unified, Added: b.Added, Deleted: b.Deleted, More: b.More}
	case Table:
		return wire{Kind: "table", Head: b.Head, Rows: b.Rows, First: b.First}
	case Checklist:
		return wire{Kind: "checklist", Checks: b}
	case Shell:
		return wire{Kind: "shell", Shell: &b}
	}
	return nil
}

// MarshalJSON encodes each block with its kind.
func (bs Blocks) MarshalJSON() ([]byte, error) {
	all := make([]any, len(bs))
	for i, b := range bs {
		all[i] = Wire(b)
	}
	return jsonx.JSON(all)
}

// UnmarshalJSON decodes the output of MarshalJSON. Of an unknown kind it keeps the text.
func (bs *Blocks) UnmarshalJSON(data []byte) error {
	var all []wire
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*bs = nil
	for _, w := range all {
		*bs = append(*bs, w.block())
	}
	return nil
}

func (w wire) block() Block {
	switch w.Kind {
	case "code":
		return Code{Lang: w.Lang, Source: w.Text}
	case "diff":
		return Diff{Unified: w.Text, Added: w.Added, Deleted: w.Deleted, More: w.More}
	case "table":
		return Table{Head: w.Head, Rows: w.Rows, First: w.First}
	case "checklist":
		return w.Checks
	case "shell":
		if w.Shell != nil {
			return *w.Shell
		}
	}
	return Text(w.Text)
}

type wireWords struct {
	Words string `json:"words"`
}

// MarshalJSON encodes data as a string, and words as an object that marks them as words.
func (c Cell) MarshalJSON() ([]byte, error) {
	if c.Words {
		return jsonx.JSON(wireWords{c.Text})
	}
	return jsonx.JSON(c.Text)
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (c *Cell) UnmarshalJSON(data []byte) error {
	var w wireWords
	if json.Unmarshal(data, &w) == nil {
		*c = Cell{w.Words, true}
		return nil
	}
	*c = Cell{}
	return json.Unmarshal(data, &c.Text)
}
