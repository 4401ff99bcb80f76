package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/uip"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// OfferedTool is a tool that other agents can use.
type OfferedTool struct {
	Name, Doc string
	Schema    json.RawMessage
	// Run runs the tool. It reports progress to tell.
	Run func(ctx context.Context, args json.RawMessage, tell func(string)) (OfferedResult, error)
}

// OfferedResult is the result of an offered tool.
type OfferedResult struct {
	Text   string
	Failed bool
	Images []chat.Image
}

// Serve offers tools to the agent at the other end of in and out, until in ends. It speaks the protocol
// versions with a greeting, in which a call can ask questions.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string, offers []OfferedTool) error {
	s := sdk.NewServer(&sdk.Implementation{Name: "coder", Version: version}, &sdk.ServerOptions{
		SupportedProtocolVersions: []string{"2024-11-05", "2025-03-26", "2025-06-18", greetingVersion},
		Instructions:              "Tools of the coding agent coder, in its workspace and under its permissions. delegate hands it a whole task.",
	})
	for _, o := range offers {
		s.AddTool(&sdk.Tool{Name: o.Name, Description: o.Doc, InputSchema: o.Schema}, o.handleCall)
	}
	err := s.Run(ctx, newAgentConn(in, out))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// handleCall runs the tool for a call of the other agent, which also gets the call's questions.
func (o OfferedTool) handleCall(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	told := 0
	given, err := o.Run(context.WithValue(ctx, clientKey{}, r.Session), r.Params.Arguments, func(text string) {
		if token := r.Params.GetProgressToken(); token != nil && told < maxProgress {
			told++
			// only for viewers
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(told),
				Message: oneLine(text)})
		}
	})
	if ctx.Err() != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "cancelled"}
	}
	if err != nil {
		given = OfferedResult{Text: err.Error(), Failed: true}
	}
	res := &sdk.CallToolResult{IsError: given.Failed, Content: []sdk.Content{&sdk.TextContent{Text: given.Text}}}
	for _, img := range given.Images {
		res.Content = append(res.Content, &sdk.ImageContent{Data: img.Data, MIMEType: img.MediaType})
	}
	return res, nil
}

type clientKey struct{}

// ClientInteractor is the interactor for the agent whose call runs. If that agent cannot ask its user, nobody answers.
var ClientInteractor uip.Interactor = uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response,
	error) {
	session, ok := ctx.Value(clientKey{}).(*sdk.ServerSession)
	if !ok {
		return uip.NoAnswer(q), nil
	}
	about := session.InitializeParams()
	if about == nil || about.Capabilities == nil || about.Capabilities.Elicitation == nil {
		return uip.NoAnswer(q), nil
	}
	parts := q.Parts
	if len(parts) == 0 || q.Purpose == uip.PurposeConfirmRiskyAction {
		parts = []uip.Request{q} // one answer for all
	}
	got, err := session.Elicit(ctx, &sdk.ElicitParams{Message: questionText(q), RequestedSchema: questionSchema(parts)})
	switch {
	case ctx.Err() != nil:
		return uip.Response{}, ctx.Err()
	case err != nil:
		return uip.NoAnswer(q), nil
	case got.Action == cancelAction && q.Purpose != uip.PurposeConfirmRiskyAction:
		return uip.Response{ID: q.ID, Author: "user", Dismissed: true}, nil
	case got.Action != acceptAction:
		return q.Refusal("user", ""), nil
	}
	a := uip.Response{ID: q.ID, Author: "user"}
	for i, part := range parts {
		one := parseAnswer(part, fmt.Sprint(got.Content[fieldKey(i)]))
		if len(q.Parts) == 0 || q.Purpose == uip.PurposeConfirmRiskyAction {
			a.Option, a.Input = one.Option, one.Input
			break
		}
		a.Parts = append(a.Parts, one)
	}
	return a, nil
})

func fieldKey(i int) string { return fmt.Sprintf("answer%d", i+1) }

// questionText returns a question as text.
func questionText(q uip.Request) string {
	var lines []string
	for _, one := range append([]uip.Request{q}, q.Parts...) {
		lines = append(lines, one.Display.Title)
		if one.Display.Description != "" {
			lines = append(lines, one.Display.Description)
		}
		if one.Display.Content != nil {
			lines = append(lines, (display.Blocks{one.Display.Content}).PlainText())
		}
	}
	return clip.Truncate(strings.Join(lines, "\n"), maxText)
}

// questionSchema returns the form for questions: a field for each. An approval is one field.
func questionSchema(parts []uip.Request) map[string]any {
	fields := make(map[string]any)
	var needed []string
	for i, part := range parts {
		field := map[string]any{"type": "string", "title": clip.Truncate(part.Display.Title, 200)}
		var labels []string
		for _, o := range part.Options {
			if part.Purpose != uip.PurposeConfirmRiskyAction {
				labels = append(labels, o.Label)
			} else if o.ID == uip.OptionApprove || o.ID == uip.OptionReject {
				labels = append(labels, o.ID)
			}
		}
		if len(labels) > 0 {
			field["enum"] = labels
		}
		fields[fieldKey(i)] = field
		needed = append(needed, fieldKey(i))
	}
	return map[string]any{"type": "object", "properties": fields, "required": needed}
}

// parseAnswer returns the answer that a word stands for.
func parseAnswer(q uip.Request, word string) uip.Response {
	for _, o := range q.Options {
		if q.Purpose == uip.PurposeConfirmRiskyAction && word == o.ID &&
			(o.ID == uip.OptionApprove || o.ID == uip.OptionReject) || q.Purpose != uip.PurposeConfirmRiskyAction &&
			word == o.Label {
			return uip.Response{ID: q.ID, Option: o.ID}
		}
	}
	if q.Purpose == uip.PurposeConfirmRiskyAction {
		return uip.Response{ID: q.ID, Option: uip.OptionReject}
	}
	return uip.Response{ID: q.ID, Input: word}
}
