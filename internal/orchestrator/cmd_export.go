package orchestrator

import (
	"context"
	"fmt"
	"path"
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
			to, err := readExport(in.args)
			if err != nil {
				return "", err
			}
			path, err := in.Desk.Export(ctx, to)
			if err != nil {
				return "", &CommandError{err.Error()}
			}
			return "written: " + path, nil
		},
	}
}

// readExport reads a format, a path, or one after the other. A word is the
// beginning of a path if it has a separator or an extension.
func readExport(args string) (Export, error) {
	first, rest, _ := strings.Cut(args, " ")
	switch {
	case slices.Contains(formats, first):
		return Export{Format: first, Path: strings.TrimSpace(rest)}, nil
	case first == "" || strings.ContainsAny(first, `/\`) || path.Ext(first) != "":
		return Export{Path: args}, nil
	}
	return Export{}, &CommandError{fmt.Sprintf("there is no form %q; /export takes json, md or html, and then a file", first)}
}
