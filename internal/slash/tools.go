package slash

import (
	"context"
	"strings"

	"coder/internal/core/display"
)

// Tools lists the tools the model may call.
func Tools() Command {
	return Command{Name: "tools", Looks: true, Help: "list the tools the model may call", Run: func(_ context.Context, c call) (outcome, error) {
		t := display.Table{First: 16}
		for s := range c.Settings().Tools.Specs() {
			about := display.Cell{Text: aboutTools[s.Name], Words: true}
			if about.Text == "" { // it came from elsewhere
				first, _, _ := strings.Cut(s.Doc, "\n")
				first, _, _ = strings.Cut(first, ". ")
				about = display.Cell{Text: strings.TrimSuffix(first, ".")}
			}
			t.Rows = append(t.Rows, []display.Cell{{Text: s.Name}, about})
		}
		return show(t)
	}}
}

// aboutTools is what the tools do, for people; what they are told to the model by is longer.
var aboutTools = map[string]string{
	"read":           "read a file",
	"list":           "list a folder",
	"glob":           "find files by name",
	"grep":           "search the lines of files with a regular expression",
	"search_code":    "find code by what it is about",
	"bash":           "run a command, confined, asked about by rule and risk",
	"jobs":           "look after commands in the background",
	"git_status":     "show the branch and what changed since the last commit",
	"git_diff":       "show changes as a diff",
	"git_log":        "list commits, the newest first",
	"git_add":        "stage files for the next commit",
	"git_commit":     "commit what is staged",
	"fetch":          "fetch a page or a file from the web",
	"lsp":            "ask a language server about code",
	"todoread":       "read the list of what is to be done",
	"todowrite":      "write the list of what is to be done",
	"skill":          "load instructions for one sort of work",
	"write":          "create a file, or replace all of one",
	"edit":           "replace text in a file",
	"patch":          "change several places or files at once, all or nothing",
	"task":           "hand a piece of work to another agent",
	"question":       "ask you what only you can decide",
	"exit_plan_mode": "hand you the finished plan",
	"tool_search":    "find more tools of MCP servers",
}
