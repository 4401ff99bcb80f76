package slash

import (
	"context"
	"strings"

	"coder/internal/authored/frontmatter"
	"coder/internal/authored/outputstyle"
	"coder/internal/core/display"
)

// Styles are the output styles to choose from.
type Styles interface {
	Preferences
	// Styles returns the styles, the name of the one in use, and warnings about skipped files.
	Styles() (all []outputstyle.Style, now string, bad []frontmatter.Warning)
}

// OutputStyle lists the output styles, or changes the style now and for later.
func OutputStyle(s Styles) Command {
	return Command{
		Name: "output-style", Args: "[NAME]", Help: "list the output styles, or use another",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if name := strings.TrimSpace(c.Args); name != "" {
				out, err := changeSetting(s, "ui.output_style", name, false)
				if err == nil {
					_, err = c.ReportSettingsChange(ctx)
				}
				return out, err
			}
			all, now, bad := s.Styles()
			t := display.Table{Header: display.TextCells("", "style", "use", "file")}
			for _, style := range all {
				mark := ""
				if style.Name == now {
					mark = "*"
				}
				about := display.Cell{Text: style.About, Words: style.Path == ""}
				t.Rows = append(t.Rows, []display.Cell{{Text: mark}, {Text: style.Name}, about, {Text: style.Path}})
			}
			blocks := []display.Block{t}
			for _, w := range bad {
				blocks = append(blocks, display.Text(w.String()))
			}
			return show(blocks...)
		},
	}
}
