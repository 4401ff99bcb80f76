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

// toolCalls are the calls of a request that wait for their results.
type toolCalls []string

// answer removes a call that has its result now, and reports whether the call waited.
func (c *toolCalls) answer(id string) bool {
	i := slices.Index(*c, id)
	if i >= 0 {
		*c = slices.Delete(*c, i, i+1)
	}
	return i >= 0
}

type (
	cacheMark struct{ Type string }

	// messagesRequest is a request on Anthropic's wire.
	messagesRequest struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Stream    bool
		System    []struct {
			Type, Text string
			Cache      *cacheMark `json:"cache_control"`
		}
		Tools []struct {
			Name, Description string
			Schema            map[string]any `json:"input_schema"`
			Cache             *cacheMark     `json:"cache_control"`
		}
		Messages []struct {
			Role    string
			Content []messagesBlock
		}
	}

	messagesBlock struct {
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
		Cache *cacheMark `json:"cache_control"`
	}
)

// breakpoints counts the places up to which the server is to cache.
func (r messagesRequest) breakpoints() (n int) {
	count := func(c *cacheMark) {
		if c != nil {
			n++
		}
	}
	for _, s := range r.System {
		count(s.Cache)
	}
	for _, tool := range r.Tools {
		count(tool.Cache)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			count(b.Cache)
		}
	}
	return n
}

// CheckMessages refuses what Anthropic's wire would refuse. Signatures are
// those that the server has given out, with the thinking they are for; nil
// means that any is taken.
func CheckMessages(body []byte, signatures map[string]string) error {
	var req messagesRequest
	if err := strictly(body, &req); err != nil {
		return err
	}
	if req.Model == "" || req.MaxTokens <= 0 || len(req.Messages) == 0 {
		return errors.New("model, max_tokens and messages are required")
	}
	for _, s := range req.System {
		if strings.TrimSpace(s.Text) == "" {
			return errors.New("system: text content blocks must be non-empty")
		}
	}
	for _, tool := range req.Tools {
		if !vendorID.MatchString(tool.Name) || tool.Schema["type"] != "object" {
			return fmt.Errorf("tool %q: name or input_schema", tool.Name)
		}
	}
	talk := messagesTalk{signatures: signatures}
	for i, m := range req.Messages {
		if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: role %s, want %s", i, m.Role, want)
		}
		if err := talk.add(m.Role, m.Content); err != nil {
			return fmt.Errorf("messages.%d%w", i, err)
		}
	}
	if n := req.breakpoints(); n > 4 {
		return fmt.Errorf("%d breakpoints, at most 4", n)
	}
	return nil
}

// messagesTalk is a conversation on Anthropic's wire, as far as it was checked.
type messagesTalk struct {
	signatures map[string]string
	waiting    toolCalls // of the last message
}

// add checks the next message.
func (t *messagesTalk) add(role string, blocks []messagesBlock) error {
	if len(blocks) == 0 {
		return errors.New(": content is empty")
	}
	var called toolCalls
	said := false
	for i, b := range blocks {
		var fault string
		switch b.kind(role) {
		case "content":
			said = true
		case "thinking":
			fault = t.thinkingFault(b)
		case "data":
		case "call":
			if slices.Contains(called, b.ID) {
				fault = "tool_use ids must be unique"
			}
			called = append(called, b.ID)
		case "result":
			switch {
			case !t.waiting.answer(b.For):
				fault = "unexpected tool_use_id " + b.For
			case said:
				fault = "tool_result blocks come first"
			}
		default:
			fault = fmt.Sprintf("%s block of %s is not as it should be", b.Type, role)
		}
		if fault != "" {
			return fmt.Errorf(".content.%d: %s", i, fault)
		}
	}
	if len(t.waiting) > 0 && role == "user" {
		return fmt.Errorf(": tool_use ids were found without tool_result blocks immediately after: %v", t.waiting)
	}
	t.waiting = called
	return nil
}

// kind returns what a block is in a message of a role, or "" if the server would refuse the block.
func (b messagesBlock) kind(role string) string {
	user, assistant := role == "user", role == "assistant"
	for _, form := range []struct {
		kind, name string
		ok         bool
	}{
		{"content", "text", b.Text != nil && strings.TrimSpace(*cmp.Or(b.Text, new(string))) != ""},
		{"content", "image", user && b.Source != nil && b.Source.Type == "base64"},
		{"thinking", "thinking", assistant && b.Cache == nil && b.Thinking != nil},
		{"data", "redacted_thinking", assistant && b.Cache == nil && b.Data != ""},
		{"call", "tool_use", assistant && vendorID.MatchString(b.ID) && vendorID.MatchString(b.Name) &&
			bytes.HasPrefix(b.Input, []byte("{"))},
		{"result", "tool_result", user},
	} {
		if form.name == b.Type && form.ok {
			return form.kind
		}
	}
	return ""
}

func (t *messagesTalk) thinkingFault(b messagesBlock) string {
	words, ok := t.signatures[b.Signature]
	if b.Signature == "" || t.signatures != nil && (!ok || words != *b.Thinking) {
		return "invalid signature in thinking block"
	}
	return ""
}

type (
	// responsesRequest is a request on OpenAI's Responses wire.
	responsesRequest struct {
		Model, Instructions string
		Stream, Store       bool
		Include             []string
		MaxOutput           int `json:"max_output_tokens"`
		Tools               []struct {
			Type, Name, Description string
			Strict                  bool
			Parameters              map[string]any
		}
		Input []responsesItem
	}

	responsesItem struct {
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
)

// CheckResponses refuses what OpenAI's Responses wire would refuse. Reasoning
// is that which the server has given out, encrypted; nil means any.
func CheckResponses(body []byte, reasoning map[string]bool) error {
	var req responsesRequest
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
	talk := responsesTalk{reasoning: reasoning}
	for i, item := range req.Input {
		if err := talk.add(item); err != nil {
			return fmt.Errorf("input.%d: %w", i, err)
		}
	}
	if len(talk.waiting) > 0 {
		return fmt.Errorf("no tool output found for function calls %v", talk.waiting)
	}
	return talk.checkFollowed()
}

// responsesTalk is a conversation on the Responses wire, as far as it was checked.
type responsesTalk struct {
	reasoning map[string]bool
	waiting   toolCalls
	pending   string // reasoning that something must follow
}

func (t *responsesTalk) checkFollowed() error {
	if t.pending == "" {
		return nil
	}
	return fmt.Errorf("item %s of type reasoning was provided without its required following item", t.pending)
}

// add checks the next item.
func (t *responsesTalk) add(it responsesItem) error {
	follows := it.Type == "message" && it.Role == "assistant" || it.Type == "function_call" || it.Type == "reasoning"
	if err := t.checkFollowed(); err != nil && !follows {
		return err
	}
	t.pending = ""
	switch it.Type {
	case "message":
		return it.checkContent()
	case "reasoning":
		if it.Encrypted == "" || t.reasoning != nil && !t.reasoning[it.Encrypted] || it.Summary == nil {
			return fmt.Errorf("the encrypted content %s could not be verified", it.Encrypted)
		}
		t.pending = cmp.Or(it.ID, "?")
	case "function_call":
		if it.CallID == "" || len(it.CallID) > 64 || !json.Valid([]byte(it.Arguments)) ||
			!vendorID.MatchString(it.Name) {
			return fmt.Errorf("function_call %q is not as it should be", it.CallID)
		}
		t.waiting = append(t.waiting, it.CallID)
	case "function_call_output":
		if !t.waiting.answer(it.CallID) || it.Output == nil {
			return fmt.Errorf("no tool call found for function call output with call_id %s", it.CallID)
		}
	default:
		return fmt.Errorf("type %q", it.Type)
	}
	return nil
}

// checkContent checks the parts of a message.
func (it responsesItem) checkContent() error {
	want := map[string][]string{"user": {"input_text", "input_image"}, "assistant": {"output_text"}}[it.Role]
	for _, c := range it.Content {
		if !slices.Contains(want, c.Type) {
			return fmt.Errorf("invalid value %q of %s", c.Type, it.Role)
		}
	}
	if len(it.Content) == 0 {
		return errors.New("no content")
	}
	return nil
}

type (
	// geminiRequest is a request on Google's wire.
	geminiRequest struct {
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
		SystemInstruction *struct{ Parts []geminiPart }
		Contents          []struct {
			Role  string
			Parts []geminiPart
		}
	}

	geminiPart struct {
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
)

// CheckGemini refuses what Google's wire would refuse. Signatures are those
// that the server has given out, nil means any; of the calls of a turn the first
// must have one.
func CheckGemini(body []byte, signatures map[string]bool) error {
	var req geminiRequest
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
	talk := geminiTalk{signatures: signatures}
	for i, c := range req.Contents {
		if want := [...]string{"user", "model"}[i%2]; c.Role != want {
			return fmt.Errorf("contents.%d: role %s, want %s", i, c.Role, want)
		}
		if err := talk.add(c.Role, c.Parts); err != nil {
			return fmt.Errorf("contents.%d%w", i, err)
		}
	}
	return nil
}

// geminiTalk is a conversation on Google's wire, as far as it was checked.
type geminiTalk struct {
	signatures map[string]bool
	waiting    []string // the names of the last content's calls
}

// add checks the next content.
func (t *geminiTalk) add(role string, parts []geminiPart) error {
	if len(parts) == 0 {
		return errors.New(": parts must not be empty")
	}
	var called, answered []string
	for i, p := range parts {
		switch {
		case t.signatures != nil && p.Signature != "" && !t.signatures[p.Signature] &&
			p.Signature != "skip_thought_signature_validator":
			return fmt.Errorf(".parts.%d: corrupted thought signature", i)
		case p.Call != nil && role == "model" && vendorID.MatchString(p.Call.Name):
			if len(called) == 0 && p.Signature == "" {
				return fmt.Errorf(".parts.%d: function call %s is missing a thought_signature", i, p.Call.Name)
			}
			called = append(called, p.Call.Name)
		case p.Result != nil && role == "user" && p.Result.Response != nil:
			answered = append(answered, p.Result.Name)
		case p.Text != nil || p.InlineData != nil && role == "user":
		default:
			return fmt.Errorf(".parts.%d: required oneof field 'data' must have one initialized field", i)
		}
	}
	slices.Sort(answered)
	if slices.Sort(t.waiting); role == "user" && !slices.Equal(t.waiting, answered) {
		return fmt.Errorf(": function responses %v for function calls %v", answered, t.waiting)
	}
	t.waiting = called
	return nil
}
