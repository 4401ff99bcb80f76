package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/host/stdio"
)

// maxPromptBytes is the longest prompt accepted. Longer text belongs in a file that the model can read in
// parts.
const maxPromptBytes = 8 << 20

// stdinNoteDelay is how long to wait for a silent stdin before printing a note.
const stdinNoteDelay = 3 * time.Second

// readPrompt builds the prompt from the arguments and, if something is piped in, from all of stdin. It
// prints a note if that takes long: a run must never hang silently on a stdin that is never closed.
func (inv *invocation) readPrompt(ctx context.Context) (chat.UserText, error) {
	prompt := chat.NewUserText(chat.OriginTyped, strings.Join(inv.flags.args, " "))
	if prompt.Text() == "-" {
		prompt = nil // stdin, by convention
	}
	if inv.IsPiped() {
		slow := time.AfterFunc(stdinNoteDelay, func() {
			inv.warn("waiting for the end of stdin (use < /dev/null if there is no input)")
		})
		defer slow.Stop()
		piped, err := inv.stdin.ReadRest(ctx, maxPromptBytes)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, stdio.ErrTooLong):
			return nil, promptTooLongError()
		case err != nil:
			return nil, message.Errorf("read the prompt from stdin: %w", err)
		case strings.TrimSpace(prompt.Text()) == "":
			prompt = chat.NewUserText(chat.OriginStdin, piped)
		case strings.TrimSpace(piped) != "":
			prompt = append(prompt, chat.TextPiece{Origin: chat.OriginStdin, Text: "\n\n" + piped})
		}
	}
	return prompt, checkPrompt(prompt.Text())
}

func checkPrompt(prompt string) error {
	switch {
	case len(prompt) > maxPromptBytes:
		return promptTooLongError()
	case !utf8.ValidString(prompt):
		return inputErrorf("the prompt is not valid UTF-8; save it as a file and name the file in the prompt instead")
	}
	return nil
}

func promptTooLongError() error {
	return inputErrorf("the prompt is longer than %d MiB; save it as a file and name the file in the prompt instead",
		maxPromptBytes>>20)
}

// messageExample is an example of a stream-json message.
const messageExample = `{"type":"user","message":{"content":"…"}}`

// readMessages yields the prompts of a stream-json input: one JSON object a line,
// {"type":"user","message":{"content":…}}.
func readMessages(ctx context.Context, in *stdio.Reader) iter.Seq2[chat.UserText, error] {
	return func(yield func(chat.UserText, error) bool) {
		for n := 1; ; n++ {
			line, err := in.ReadLine(ctx, 2*maxPromptBytes)
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, stdio.ErrTooLong):
				yield(nil, promptTooLongError())
				return
			case err != nil:
				yield(nil, err)
				return
			case strings.TrimSpace(line) == "":
				continue
			}
			words, err := parseMessage([]byte(line))
			if err != nil {
				yield(nil, inputErrorf("stdin, line %d: %v", n, err))
				return
			}
			if words != nil && !yield(words, nil) {
				return
			}
		}
	}
}

// parseMessage parses one line of a stream-json input. It returns none for lines that are not a user's
// message, such as keep-alives.
func parseMessage(line []byte) (chat.UserText, error) {
	var in struct {
		Type     string `json:"type"`
		Composed bool   `json:"client_composed"`
		Message  struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal(line, &in); err != nil || in.Type == "" {
		return nil, errors.New("not a JSON object like " + messageExample)
	}
	if in.Type != "user" {
		return nil, nil
	}
	var text string // the content is a string, or a list of text parts
	if json.Unmarshal(in.Message.Content, &text) != nil {
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(in.Message.Content, &parts) != nil {
			return nil, errors.New("message.content must be a string or a list of text parts")
		}
		for _, p := range parts {
			if p.Type != "text" {
				return nil, message.Errorf("content of type %q is not supported", p.Type)
			}
			text += p.Text
		}
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the message has no text")
	}
	whose := chat.OriginTyped
	if in.Composed {
		whose = chat.OriginComposed
	}
	return chat.NewUserText(whose, text), checkPrompt(text)
}
