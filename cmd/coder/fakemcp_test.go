package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeMCP is an MCP server for scripts: with one tool or, if it is told a number,
// with so many.
func fakeMCP() {
	s := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	type words struct {
		Text string `json:"text" jsonschema:"what to say"`
	}
	doc := "says what it is told"
	if os.Getenv("FAKEMCP_DOC") != "" {
		doc = os.Getenv("FAKEMCP_DOC")
	}
	add := func(name string) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: doc, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *sdk.CallToolRequest, w words) (*sdk.CallToolResult, any, error) {
			if file, ok := strings.CutPrefix(w.Text, "write "); ok {
				if err := os.WriteFile(file, []byte("from the server\n"), 0o600); err != nil {
					return nil, nil, err
				}
			}
			if w.Text == "env" {
				w.Text = strings.Join(os.Environ(), "\n")
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: w.Text}}}, nil, nil
		})
	}
	add("echo")
	if len(os.Args) > 1 {
		n := 0
		_, _ = fmt.Sscan(os.Args[1], &n)
		for i := range n {
			add(fmt.Sprintf("item_%d", i))
		}
	}
	s.AddPrompt(&sdk.Prompt{Name: "review", Description: "asks for a review", Arguments: []*sdk.PromptArgument{{Name: "file", Required: true}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "please review " + r.Params.Arguments["file"]}}}}, nil
		})
	s.AddResource(&sdk.Resource{URI: "memo://today", Name: "today"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "memo://today", Text: "buy milk"}}}, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
