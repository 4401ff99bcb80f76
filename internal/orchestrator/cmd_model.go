package orchestrator

import (
	"context"
	"strings"
	"unicode"

	"coder/internal/event"
)

func modelCommand() command {
	return command{
		name: "model", args: "[NAME]", help: "show the models there are, or switch to another",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.args == "" {
				return in.listModels(ctx)
			}
			return in.switchModel(ctx, in.args)
		},
	}
}

// switchModel takes another model. That it cannot be remembered is no reason
// not to use it.
func (in invocation) switchModel(ctx context.Context, name string) (string, error) {
	if in.Desk.SwitchModel == nil {
		return "", notHere("model")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return "", &CommandError{"the name of a model is one word"}
	}
	if notice := in.Desk.SwitchModel(ctx, name); notice != "" {
		if err := in.emit(ctx, in.st, ActorAgent, event.Notice{Level: event.Warn, Text: notice}); err != nil {
			return "", err
		}
	}
	in.settle(in.st)
	return "model: " + in.st.set.Model, in.tellUsage(ctx, in.st)
}

func (in invocation) listModels(ctx context.Context) (string, error) {
	text := "model: " + in.Settings().Model
	if in.Desk.Models == nil {
		return text, nil
	}
	table, err := in.Desk.Models(ctx)
	if len(table.Rows) > 0 {
		text += "\n" + aligned(table)
	}
	if err != nil {
		text += "\nthe endpoint does not say which models it has: " + err.Error()
	}
	return text, ctx.Err()
}
