package orchestrator

import (
	"context"
	"slices"
	"strings"
)

func configCommand() command {
	return command{
		name: "config", args: "[KEY]", help: "show the settings and where each comes from",
		run: func(_ context.Context, in invocation) (string, error) {
			if in.Desk.Config == nil {
				return "", notHere("config")
			}
			table := in.Desk.Config()
			table.Rows = slices.DeleteFunc(table.Rows, func(row []string) bool { return !strings.Contains(row[0], in.args) })
			if len(table.Rows) == 0 {
				return "", &CommandError{"there is no setting " + in.args}
			}
			return aligned(table), nil
		},
	}
}
