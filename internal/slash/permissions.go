package slash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/policy/mode"
)

// Permissions shows the rules and grants, applies a preset, or revokes grants: a number of the list, or
// all. revoke may be nil: no grants are saved.
func Permissions(list func() display.Table, revoke func(which string) (string, error)) Command {
	return Command{
		Name: "permissions", ShowsOnly: true, Args: "[PRESET | revoke N | revoke all]",
		Help: "show what is allowed, revoke a permission, or set a preset: " + strings.Join(mode.Presets(), ", "),
		Run: func(ctx context.Context, c call) (outcome, error) {
			if which, ok := strings.CutPrefix(c.Args+" ", "revoke "); ok {
				if which = strings.TrimSpace(which); revoke == nil {
					return usageError("answers are not remembered here")
				} else if which == "" {
					return usageError("use /permissions revoke N, with a number from the list, or /permissions revoke all")
				}
				text, err := revoke(which)
				if err != nil {
					return usageError("%v", err)
				}
				return showText(text)
			}
			if c.Args != "" {
				if !slices.Contains(mode.Presets(), strings.ToLower(c.Args)) {
					return usageError("unknown preset %q; use one of %s; /permissions revoke N removes a permission", c.Args,
						strings.Join(mode.Presets(), ", "))
				}
				if err := c.SetPreset(ctx, c.Args); err != nil {
					return outcome{}, err
				}
			}
			now, preset := c.Mode()
			blocks := []display.Block{display.Text(fmt.Sprintf("mode: %s, permissions: %s", now.Name, preset)), list()}
			if t, _ := blocks[1].(display.Table); slices.ContainsFunc(t.Rows, isNumbered) {
				blocks = append(blocks, display.Text("/permissions revoke N removes the permission with that number"))
			}
			return show(blocks...)
		},
	}
}

// isNumbered reports whether a row begins with a number.
func isNumbered(row []display.Cell) bool {
	return len(row) > 0 && row[0].Text != "" && strings.ContainsRune("0123456789", rune(row[0].Text[0]))
}
