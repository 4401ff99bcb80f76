package slash

import (
	"context"
	"strings"
	"unicode"

	"coder/internal/core/display"
)

// Models are the models there are to choose from.
type Models interface {
	// Switch takes another model, or a profile with its endpoint, at once. One
	// that the endpoint says it does not have is taken only by force. What it says
	// is why the choice will not be remembered, or nothing. With an error
	// everything stays as it is.
	Switch(ctx context.Context, name string, force bool) (notice string, err error)
	// List shows them. With an error the table holds what is known without
	// asking.
	List(ctx context.Context) (display.Table, error)
}

// Model shows the models there are, or switches to another. That a choice cannot
// be remembered is no reason not to use it.
func Model(models Models) Command {
	return Command{
		Name: "model", Looks: true, Args: "[NAME [force]]", Help: "list the models, or switch to another",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "" {
				blocks := []display.Block{display.Text("model: " + c.Settings().Model)}
				table, err := models.List(ctx)
				if len(table.Rows) > 0 {
					blocks = append(blocks, table)
				}
				if err != nil {
					blocks = append(blocks, display.Text("the endpoint does not list its models: "+err.Error()))
				}
				out, _ := show(blocks...)
				return out, ctx.Err()
			}
			name, force := strings.CutSuffix(c.Args, " force")
			if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
				return wrong("a model name is one word")
			}
			notice, err := models.Switch(ctx, name, force)
			if err != nil {
				return wrong("%v", err)
			}
			if notice != "" {
				if err := c.Warn(ctx, notice); err != nil {
					return outcome{}, err
				}
			}
			set, err := c.SettingsChanged(ctx)
			return outcome{Text: "model: " + set.Model}, err
		},
	}
}
