package providertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Vendors refuse requests for reasons that lenient servers let pass. What
// follows refuses for the same reasons.

var vendorID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// strictly decodes data, every member of which must be known.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// check refuses what the vendor of a wire would refuse of any conversation.
func check(wire string, body []byte) error {
	switch wire {
	case "messages":
		return CheckMessages(body, nil)
	case "responses":
		return CheckResponses(body, nil)
	case "gemini":
		return CheckGemini(body, nil)
	}
	return nil
}

// CheckMessages refuses what Anthropic's wire would refuse. Signatures are
// those that the server has given out, with the thinking they are for; nil
// means that any is taken.
func CheckMessages(body []byte, signatures map[string]string) error {
	type cache struct{ Type string }
	var req struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Stream    bool
		System    []struct {
			Type, Text string
			Cache      *cache `json:"cache_control"`
		}
		Tools []struct {
			Name, Description string
			Schema            map[string]any `json:"input_schema"`
			Cache             *cache         `json:"cache_control"`
		}
		Messages []struct {
			Role    string
			Content []struct {
				Type      string
				Text      *string         `json:"text"`
				Thinking  *string         `json:"thinking"`
				Signature string          `json:"signature"`
				Data      string          `json:"data"`
				ID        string          `json:"id"`
				Name      string          `json:"name"`
				Input     json.RawMessage `json:"input"`
				For       string          `json:"tool_use_id"`
				Content   string          `json:"content"`
				IsError   bool            `json:"is_error"`
				Source    *struct {
					Type, Data string
					MediaType  string `json:"media_type"`
				} `json:"source"`
				Cache *cache `json:"cache_control"`
			}
		}
	}
	if err := strictly(body, &req); err != nil {
		return err
	}
	if req.Model == "" || req.MaxTokens <= 0 || len(req.Messages) == 0 {
		return errors.New("model, max_tokens and messages are required")
	}
	breakpoints := 0
	for _, s := range req.System {
		if s.Cache != nil {
			breakpoints++
		}
		if strings.TrimSpace(s.Text) == "" {
			return errors.New("system: text content blocks must be non-empty")
		}
	}
	for _, tool := range req.Tools {
		if tool.Cache != nil {
			breakpoints++
		}
		if !vendorID.MatchString(tool.Name) || tool.Schema["type"] != "object" {
			return fmt.Errorf("tool %q: name or input_schema", tool.Name)
		}
	}
	var waiting []string
	for i, m := range req.Messages {
		if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: role %s, want %s", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: content is empty", i)
		}
		var called []string
		said := false
		for j, c := range m.Content {
			at := fmt.Sprintf("messages.%d.content.%d", i, j)
			if c.Cache != nil {
				breakpoints++
			}
			switch {
			case c.Type == "text" && c.Text != nil && strings.TrimSpace(*c.Text) != "":
				said = true
			case c.Type == "image" && m.Role == "user" && c.Source != nil && c.Source.Type == "base64":
				said = true
			case c.Type == "thinking" && m.Role == "assistant" && c.Cache == nil && c.Thinking != nil:
				if words, ok := signatures[c.Signature]; c.Signature == "" || signatures != nil && (!ok || words != *c.Thinking) {
					return fmt.Errorf("%s: invalid signature in thinking block", at)
				}
			case c.Type == "redacted_thinking" && m.Role == "assistant" && c.Cache == nil && c.Data != "":
			case c.Type == "tool_use" && m.Role == "assistant" && vendorID.MatchString(c.ID) && vendorID.MatchString(c.Name) &&
				bytes.HasPrefix(c.Input, []byte("{")):
				if slices.Contains(called, c.ID) {
					return fmt.Errorf("%s: tool_use ids must be unique", at)
				}
				called = append(called, c.ID)
			case c.Type == "tool_result" && m.Role == "user":
				k := slices.Index(waiting, c.For)
				if k < 0 {
					return fmt.Errorf("%s: unexpected tool_use_id %s", at, c.For)
				}
				if said {
					return fmt.Errorf("%s: tool_result blocks come first", at)
				}
				waiting = slices.Delete(waiting, k, k+1)
			default:
				return fmt.Errorf("%s: %s block of %s is not as it should be", at, c.Type, m.Role)
			}
		}
		if len(waiting) > 0 && m.Role == "user" {
			return fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after: %v", i,
				waiting)
		}
		waiting = called
	}
	if breakpoints > 4 {
		return fmt.Errorf("%d breakpoints, at most 4", breakpoints)
	}
	return nil
}

// CheckResponses refuses what OpenAI's Responses wire would refuse. Reasoning
// is that which the server has given out, encrypted; nil means any.
func CheckResponses(body []byte, reasoning map[string]bool) error {
	var req struct {
		Model, Instructions string
		Stream, Store       bool
		Include             []string
		MaxOutput           int `json:"max_output_tokens"`
		Tools               []struct {
			Type, Name, Description string
			Strict                  bool
			Parameters              map[string]any
		}
		Input []struct {
			Type, Role string
			Content    []struct {
				Type, Text string
				ImageURL   string `json:"image_url"`
			}
			ID        string
			Summary   []json.RawMessage
			Encrypted string `json:"encrypted_content"`
			CallID    string `json:"call_id"`
			Name      string
			Arguments string
			Output    *string
		}
	}
	if err := strictly(body, &req); err != nil {
		return err
	}
	if req.Model == "" || len(req.Input) == 0 {
		return errors.New("model and input are required")
	}
	for _, tool := range req.Tools {
		if tool.Type != "function" || !vendorID.MatchString(tool.Name) || tool.Parameters["type"] != "object" {
			return fmt.Errorf("tool %q is not as it should be", tool.Name)
		}
	}
	var waiting []string
	pending := "" // reasoning that has to lead to something
	for i, it := range req.Input {
		leads := it.Type == "message" && it.Role == "assistant" || it.Type == "function_call" || it.Type == "reasoning"
		if pending != "" && !leads {
			return fmt.Errorf("input.%d: item %s of type reasoning was provided without its required following item", i, pending)
		}
		pending = ""
		switch it.Type {
		case "message":
			want := map[string][]string{"user": {"input_text", "input_image"}, "assistant": {"output_text"}}[it.Role]
			for _, c := range it.Content {
				if !slices.Contains(want, c.Type) {
					return fmt.Errorf("input.%d: invalid value %q of %s", i, c.Type, it.Role)
				}
			}
			if len(it.Content) == 0 {
				return fmt.Errorf("input.%d: no content", i)
			}
		case "reasoning":
			if it.Encrypted == "" || reasoning != nil && !reasoning[it.Encrypted] || it.Summary == nil {
				return fmt.Errorf("input.%d: the encrypted content %s could not be verified", i, it.Encrypted)
			}
			pending = cmp.Or(it.ID, "?")
		case "function_call":
			if it.CallID == "" || len(it.CallID) > 64 || !json.Valid([]byte(it.Arguments)) || !vendorID.MatchString(it.Name) {
				return fmt.Errorf("input.%d: function_call %q is not as it should be", i, it.CallID)
			}
			waiting = append(waiting, it.CallID)
		case "function_call_output":
			k := slices.Index(waiting, it.CallID)
			if k < 0 || it.Output == nil {
				return fmt.Errorf("input.%d: no tool call found for function call output with call_id %s", i, it.CallID)
			}
			waiting = slices.Delete(waiting, k, k+1)
		default:
			return fmt.Errorf("input.%d: type %q", i, it.Type)
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("no tool output found for function calls %v", waiting)
	}
	if pending != "" {
		return fmt.Errorf("item %s of type reasoning was provided without its required following item", pending)
	}
	return nil
}

// CheckGemini refuses what Google's wire would refuse. Signatures are those
// that the server has given out, nil means any; of the calls of a turn the first
// must have one.
func CheckGemini(body []byte, signatures map[string]bool) error {
	type part struct {
		Text       *string
		Signature  string `json:"thoughtSignature"`
		InlineData *struct{ MimeType, Data string }
		Call       *struct {
			Name string
			Args map[string]any
		} `json:"functionCall"`
		Result *struct {
			Name     string
			Response map[string]any
		} `json:"functionResponse"`
	}
	var req struct {
		GenerationConfig struct {
			MaxOutputTokens int
			ThinkingConfig  *struct{ IncludeThoughts bool }
		}
		Tools []struct {
			FunctionDeclarations []struct {
				Name, Description    string
				Parameters           map[string]any
				ParametersJSONSchema map[string]any `json:"parametersJsonSchema"`
			}
		}
		SystemInstruction *struct{ Parts []part }
		Contents          []struct {
			Role  string
			Parts []part
		}
	}
	if err := strictly(body, &req); err != nil {
		return err
	}
	if len(req.Contents) == 0 {
		return errors.New("contents is not specified")
	}
	for _, tools := range req.Tools {
		for _, f := range tools.FunctionDeclarations {
			if !vendorID.MatchString(f.Name) || f.Parameters != nil && f.ParametersJSONSchema != nil {
				return fmt.Errorf("function %q is not as it should be", f.Name)
			}
		}
	}
	var waiting []string
	for i, c := range req.Contents {
		if want := [...]string{"user", "model"}[i%2]; c.Role != want {
			return fmt.Errorf("contents.%d: role %s, want %s", i, c.Role, want)
		}
		if len(c.Parts) == 0 {
			return fmt.Errorf("contents.%d: parts must not be empty", i)
		}
		var called, answered []string
		for j, p := range c.Parts {
			at := fmt.Sprintf("contents.%d.parts.%d", i, j)
			switch {
			case signatures != nil && p.Signature != "" && !signatures[p.Signature] &&
				p.Signature != "skip_thought_signature_validator":
				return fmt.Errorf("%s: corrupted thought signature", at)
			case p.Call != nil && c.Role == "model" && vendorID.MatchString(p.Call.Name):
				if len(called) == 0 && p.Signature == "" {
					return fmt.Errorf("%s: function call %s is missing a thought_signature", at, p.Call.Name)
				}
				called = append(called, p.Call.Name)
			case p.Result != nil && c.Role == "user" && p.Result.Response != nil:
				answered = append(answered, p.Result.Name)
			case p.Text != nil || p.InlineData != nil && c.Role == "user":
			default:
				return fmt.Errorf("%s: required oneof field 'data' must have one initialized field", at)
			}
		}
		slices.Sort(answered)
		if slices.Sort(waiting); c.Role == "user" && !slices.Equal(waiting, answered) {
			return fmt.Errorf("contents.%d: function responses %v for function calls %v", i, answered, waiting)
		}
		waiting = called
	}
	return nil
}
