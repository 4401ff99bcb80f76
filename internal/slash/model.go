package slash

import (
	"context"
	"strings"
	"unicode"

	"coder/internal/core/display"
)

// Models are the models to choose from.
type Models interface {
	// Switch switches immediately to another model, or to a profile with its endpoint. It uses a model
	// unknown to the endpoint only with force. notice says why the choice will not be saved, or is empty. On
	// error nothing changes.
	Switch(ctx context.Context, name string, force bool) (notice string, err error)
	// List returns the models. On error the table has what is known without asking.
	List(ctx context.Context) (display.Table, error)
}

// Model lists the models, or switches to another. A choice that cannot be saved is used anyway.
func Model(models Models) Command {
	return Command{
		Name: "model", ShowsOnly: true, Args: "[NAME [force]]", Help: "list the models, or switch to another",
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
				return usageError("a model name is one word")
			}
			notice, err := models.Switch(ctx, name, force)
			if err != nil {
				return usageError("%v", err)
			}
			if notice != "" {
				if err := c.Warn(ctx, notice); err != nil {
					return outcome{}, err
				}
			}
			set, err := c.ReportSettingsChange(ctx)
			return outcome{Text: "model: " + set.Model}, err
		},
	}
}
