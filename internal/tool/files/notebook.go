package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coder/internal/host/patch"
)

// Bounds of what a cell printed.
const (
	outputLines = 20
	outputChars = 2000
)

// notebook is what we read of a Jupyter notebook.
type notebook struct {
	Cells []struct {
		Type    string `json:"cell_type"`
		Source  texts  `json:"source"`
		Outputs []struct {
			Type      string           `json:"output_type"`
			Text      texts            `json:"text"`
			Data      map[string]texts `json:"data"`
			Error     string           `json:"ename"`
			Value     string           `json:"evalue"`
			Traceback texts            `json:"traceback"`
		} `json:"outputs"`
	} `json:"cells"`
}

// texts is a text, or a list of its lines.
type texts string

// UnmarshalJSON takes either form; what is neither is left out.
func (t *texts) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*t = texts(strings.Join(lines, ""))
		return nil
	}
	var s string
	_ = json.Unmarshal(b, &s)
	*t = texts(s)
	return nil
}

// notebookText is a notebook as plain text: its cells with their outputs.
func notebookText(_ context.Context, b []byte) (string, error) {
	var nb notebook
	if err := json.Unmarshal(b, &nb); err != nil || nb.Cells == nil {
		return "", errors.New("it is not well formed")
	}
	var out strings.Builder
	for i, c := range nb.Cells {
		fmt.Fprintf(&out, "[%d] %s\n%s", i+1, c.Type, ended(string(c.Source)))
		for _, o := range c.Outputs {
			text := string(o.Text)
			for _, kind := range []string{"text/plain", "text/markdown"} {
				if text == "" {
					text = string(o.Data[kind])
				}
			}
			if o.Error != "" {
				text = o.Error + ": " + o.Value
			}
			if text == "" && len(o.Data) > 0 {
				text = "(not text)"
			}
			short, cut := patch.Cut(text, outputLines, outputChars)
			if cut {
				short = ended(short) + "…"
			}
			fmt.Fprintf(&out, "[%d] output\n%s", i+1, ended(short))
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}

// ended is text with a line end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
