package orchestrator

import (
	"context"
	"slices"
	"strings"
)

// formats are the forms a session can be written in.
var formats = []string{"json", "md", "html"}

func exportCommand() command {
	return command{
		name: "export", args: "[FORMAT] [FILE]", help: "write this session down as json, md or html",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.Desk.Export == nil {
				return "", notHere("export")
			}
			path, err := in.Desk.Export(ctx, readExport(in.args))
			if err != nil {
				return "", &CommandError{err.Error()}
			}
			return "written: " + path, nil
		},
	}
}

// readExport reads a format, a path, or one after the other.
func readExport(args string) Export {
	first, rest, _ := strings.Cut(args, " ")
	if slices.Contains(formats, first) {
		return Export{Format: first, Path: strings.TrimSpace(rest)}
	}
	return Export{Path: args}
}
