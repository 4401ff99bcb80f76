package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"coder/internal/host/stdio"
)

// promptLimit is the longest prompt taken. What is longer belongs in a file
// that the model can read in parts.
const promptLimit = 8 << 20

// patience is how long a silent stdin is waited for before a word is said.
const patience = 3 * time.Second

// readPrompt puts the prompt together from the arguments and, where something
// is piped in, from stdin to its end. It says so if that takes long: a run must
// never hang without a word on a stdin nobody closes.
func (inv *invocation) readPrompt(ctx context.Context) (string, error) {
	prompt := strings.Join(inv.flags.args, " ")
	if prompt == "-" {
		prompt = "" // stdin, as elsewhere
	}
	if inv.Piped() {
		slow := time.AfterFunc(patience, func() {
			inv.warn("waiting for the end of stdin (use < /dev/null if nothing comes there)")
		})
		defer slow.Stop()
		piped, err := inv.input.Rest(ctx, promptLimit)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.Is(err, stdio.ErrTooLong):
			return "", tooLong()
		case err != nil:
			return "", fmt.Errorf("read the prompt from stdin: %w", err)
		case strings.TrimSpace(prompt) == "":
			prompt = piped
		case strings.TrimSpace(piped) != "":
			prompt += "\n\n" + piped
		}
	}
	return prompt, checkPrompt(prompt)
}

func checkPrompt(prompt string) error {
	switch {
	case len(prompt) > promptLimit:
		return tooLong()
	case !utf8.ValidString(prompt):
		return inputf("the prompt is not valid UTF-8; save it as a file and name the file in the prompt instead")
	}
	return nil
}

func tooLong() error {
	return inputf("the prompt is longer than %d MiB; save it as a file and name the file in the prompt instead", promptLimit>>20)
}

// messageForm shows how a message of a stream-json input looks.
const messageForm = `{"type":"user","message":{"content":"…"}}`

// readMessages yields the prompts of a stream-json input: one JSON object a
// line, {"type":"user","message":{"content":…}}.
func readMessages(ctx context.Context, in *stdio.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for n := 1; ; n++ {
			line, err := in.Line(ctx, 2*promptLimit)
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, stdio.ErrTooLong):
				yield("", tooLong())
				return
			case err != nil:
				yield("", err)
				return
			case strings.TrimSpace(line) == "":
				continue
			}
			text, err := parseMessage([]byte(line))
			if err != nil {
				yield("", inputf("stdin, line %d: %v", n, err))
				return
			}
			if text != "" && !yield(text, nil) {
				return
			}
		}
	}
}

// parseMessage reads one line of a stream-json input. Lines that are not a
// user's message, such as keep-alives, give "".
func parseMessage(line []byte) (string, error) {
	var in struct {
		Type    string `json:"type"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal(line, &in); err != nil || in.Type == "" {
		return "", errors.New("not a JSON object like " + messageForm)
	}
	if in.Type != "user" {
		return "", nil
	}
	var text string // the content is a string, or a list of text parts
	if json.Unmarshal(in.Message.Content, &text) != nil {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(in.Message.Content, &parts) != nil {
			return "", errors.New("message.content must be a string or a list of text parts")
		}
		for _, p := range parts {
			if p.Type != "text" {
				return "", fmt.Errorf("content of type %q is not supported", p.Type)
			}
			text += p.Text
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the message has no text")
	}
	return text, checkPrompt(text)
}
