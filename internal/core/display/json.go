package display

import (
	"encoding/json"

	"coder/internal/core/jsonx"
)

// Blocks are shown one below another. In JSON each block is an object with its kind.
type Blocks []Block

// wireBlock is the JSON form of a block.
type wireBlock struct {
	Kind         string    `json:"kind"`
	Text         string    `json:"text,omitempty"`
	Lang         string    `json:"lang,omitempty"`
	Added        int       `json:"added,omitempty"`
	Deleted      int       `json:"deleted,omitempty"`
	OmittedLines int       `json:"more,omitempty"`
	Head         []Cell    `json:"head,omitempty"`
	Rows         [][]Cell  `json:"rows,omitempty"`
	FirstWidth   int       `json:"first,omitempty"`
	Checks       Checklist `json:"checks,omitempty"`
	Shell        *Shell    `json:"shell,omitempty"`
}

// ToWire returns b as it is encoded, or nil if b is nil.
func ToWire(b Block) any {
	switch b := b.(type) {
	case Text:
		return wireBlock{Kind: "text", Text: string(b)}
	case Code:
		return wireBlock{Kind: "code", Text: b.Source, Lang: b.Lang}
	case Diff:
		return wireBlock{Kind: "diff", Text: b.Unified, Added: b.Added, Deleted: b.Deleted, OmittedLines: b.OmittedLines}
	case Table:
		return wireBlock{Kind: "table", Head: b.Header, Rows: b.Rows, FirstWidth: b.FirstWidth}
	case Checklist:
		return wireBlock{Kind: "checklist", Checks: b}
	case Shell:
		return wireBlock{Kind: "shell", Shell: &b}
	}
	return nil
}

// MarshalJSON encodes each block with its kind.
func (bs Blocks) MarshalJSON() ([]byte, error) {
	all := make([]any, len(bs))
	for i, b := range bs {
		all[i] = ToWire(b)
	}
	return jsonx.Marshal(all)
}

// UnmarshalJSON decodes the output of MarshalJSON. Of an unknown kind it keeps the text.
func (bs *Blocks) UnmarshalJSON(data []byte) error {
	var all []wireBlock
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*bs = nil
	for _, w := range all {
		*bs = append(*bs, w.toBlock())
	}
	return nil
}

func (w wireBlock) toBlock() Block {
	switch w.Kind {
	case "code":
		return Code{Lang: w.Lang, Source: w.Text}
	case "diff":
		return Diff{Unified: w.Text, Added: w.Added, Deleted: w.Deleted, OmittedLines: w.OmittedLines}
	case "table":
		return Table{Header: w.Head, Rows: w.Rows, FirstWidth: w.FirstWidth}
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
		return jsonx.Marshal(wireWords{c.Text})
	}
	return jsonx.Marshal(c.Text)
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
