package slash

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/policy/mode"
)

// Mode shows the mode, or switches to another.
func Mode() Command {
	return Command{
		Name: "mode", ShowsOnly: true, Args: "[" + strings.Join(mode.Names(), "|") + "]",
		Help: "show the mode, or switch to another",
		Mode: strings.TrimSpace,
		Run: func(ctx context.Context, c call) (outcome, error) {
			if c.Args == "" {
				now, preset := c.Mode()
				return showText(fmt.Sprintf("mode: %s, permissions: %s, checks: %s", now.Name, preset, now.Verify))
			}
			return switchMode(ctx, c, c.Args)
		},
	}
}

// Modes returns the short forms: /plan is /mode plan.
func Modes() (all []Command) {
	for _, name := range mode.Names() {
		all = append(all, Command{
			Name: name, Help: "switch to " + name + " mode", Mode: func(string) string { return name },
			Run: func(ctx context.Context, c call) (outcome, error) { return switchMode(ctx, c, name) },
		})
	}
	return all
}

func switchMode(ctx context.Context, c call, name string) (outcome, error) {
	if err := c.SwitchMode(ctx, strings.TrimSpace(name)); err != nil {
		return outcome{}, err
	}
	now, _ := c.Mode()
	return showText("mode: " + now.Name)
}
