package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/tool"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These limits apply to the result of a call.
const (
	maxText   = 64 << 10
	maxImage  = 5 << 20
	maxImages = 8
)

// imageTypes are the image types that models support.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// callResult is the result of a call for the model.
type callResult struct {
	OK         bool   `json:"ok"`
	Error      string `json:"error,omitzero"`
	Text       string `json:"text,omitzero"`
	Structured any    `json:"structured,omitempty"`
	Truncated  bool   `json:"truncated,omitzero"`
	Note       string `json:"note,omitzero"`
}

// result returns the result for model and user from a server's
// answer, with a note on what the call left behind.
func (c *remoteCall) result(given *sdk.CallToolResult, left string) tool.Result {
	var (
		a      callResult
		texts  []string
		images []chat.Image
	)
	note := func(format string, args ...any) { a.Note = tool.JoinNotes(a.Note, fmt.Sprintf(format, args...)) }
	for _, part := range given.Content {
		switch part := part.(type) {
		case *sdk.TextContent:
			texts = append(texts, part.Text)
		case *sdk.ImageContent:
			kind := http.DetectContentType(part.Data) // whatever type the server claims
			switch {
			case !slices.Contains(imageTypes, kind) || len(part.Data) > maxImage || len(images) >= maxImages:
				note("there is an image that cannot be shown: %s, %d bytes", oneLine(part.MIMEType), len(part.Data))
			case !c.peer.host.options.Vision:
				note("there is an image, which this model cannot be shown")
			default:
				images = append(images, chat.Image{MediaType: kind, Data: part.Data})
				note("the picture follows")
			}
		case *sdk.AudioContent:
			note("there is a sound that cannot be heard: %s, %d bytes", oneLine(part.MIMEType), len(part.Data))
		case *sdk.ResourceLink:
			texts = append(texts, fmt.Sprintf("resource %s: %s", oneLine(part.Name), oneLine(part.URI)))
		case *sdk.EmbeddedResource:
			texts = append(texts, resourceText(part.Resource))
		}
	}
	text := sanitize.Text(strings.Join(texts, "\n"))
	if strings.TrimSpace(text) == "" && given.StructuredContent != nil {
		a.Structured, text = limitValue(given.StructuredContent)
	}
	if len(text) > maxText {
		text, a.Truncated = clip.Head(text, maxText), true
		note("only the first %d bytes are shown", maxText)
	}
	if a.Structured == nil {
		a.Text = text
	}
	res := tool.Result{Images: images, Summary: resultSummary(text, len(images)),
		Show: display.Text(clip.Truncate(text, 8<<10))}
	if left != "" {
		note("%s", left)
	}
	if a.OK = !given.IsError; given.IsError {
		a.Error, a.Text = a.Text, ""
		if a.Error == "" {
			a.Error = "the tool failed without a word"
		}
		res.Failed, res.Summary = true, sanitize.ForeignText(oneLine(a.Error))
	}
	res.Value = a
	return res
}

// resourceText returns a resource's content if it is text.
func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return ""
	case r.Blob != nil:
		return fmt.Sprintf("resource %s: %s, %d bytes", oneLine(r.URI), oneLine(r.MIMEType), len(r.Blob))
	}
	return fmt.Sprintf("resource %s:\n%s", oneLine(r.URI), r.Text)
}

// limitValue returns a value unchanged, or its text if it is too long.
func limitValue(v any) (as any, text string) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, ""
	}
	if len(raw) > maxText {
		return nil, string(raw)
	}
	return json.RawMessage(raw), string(raw)
}

func resultSummary(text string, images int) string {
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	switch {
	case images > 0:
		return tool.FormatCount(images, "picture", "pictures")
	case strings.TrimSpace(text) == "":
		return "done"
	}
	return tool.FormatCount(lines, "line", "lines")
}
