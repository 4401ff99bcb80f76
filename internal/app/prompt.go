package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// promptLimit is the longest prompt taken. What is longer belongs in a file
// that the model can read in parts.
const promptLimit = 8 << 20

// patience is how long a silent stdin is waited for before a word is said.
const patience = 3 * time.Second

// readPrompt puts the prompt together from the arguments and, where something
// is piped in, from stdin.
func readPrompt(ctx context.Context, env Env, args []string, warn func(string)) (string, error) {
	if len(args) == 1 && args[0] == "-" {
		args = nil // stdin, as elsewhere
	}
	prompt := strings.Join(args, " ")
	if env.Piped() {
		piped, err := readStdin(ctx, env, warn)
		if err != nil {
			return "", err
		}
		switch {
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

// readStdin reads stdin to its end, and says so if that takes long: a run
// must never hang without a word on a stdin nobody closes.
func readStdin(ctx context.Context, env Env, warn func(string)) (string, error) {
	type input struct {
		text []byte
		err  error
	}
	done := make(chan input, 1) // buffered: a read cannot be interrupted, the process may end first
	go func() {
		text, err := io.ReadAll(io.LimitReader(env.Stdin, promptLimit+1))
		done <- input{text, err}
	}()
	slow := time.NewTimer(patience)
	defer slow.Stop()
	for {
		select {
		case in := <-done:
			if in.err != nil {
				return "", fmt.Errorf("read the prompt from stdin: %w", in.err)
			}
			if len(in.text) > promptLimit {
				return "", tooLong()
			}
			return string(in.text), nil
		case <-slow.C:
			warn("waiting for the end of stdin (use < /dev/null if nothing comes there)")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// messageForm shows how a message of a stream-json input looks.
const messageForm = `{"type":"user","message":{"content":"…"}}`

// readMessages yields the prompts of a stream-json input: one JSON object a
// line, {"type":"user","message":{"content":…}}.
func readMessages(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := readLine(in)
			if len(bytes.TrimSpace(line)) > 0 {
				text, bad := parseMessage(line)
				if bad != nil {
					yield("", inputf("stdin, line %d: %v", n, bad))
					return
				}
				if text != "" && !yield(text, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > 2*promptLimit {
			return nil, tooLong()
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
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
	text, err := contentText(in.Message.Content)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the message has no text")
	}
	return text, checkPrompt(text)
}

// contentText is the text of a message whose content is a string or a list of
// text parts.
func contentText(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", errors.New("message.content must be a string or a list of text parts")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return "", fmt.Errorf("content of type %q is not supported", p.Type)
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}
