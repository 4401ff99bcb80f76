// Command baseline is the least an agent can be: it sends the prompt, runs the calls of each reply, all at once, and
// sends their results, with no record, question or sandbox. The bench compares coder with it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"coder/internal/host/program"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func main() {
	messages := []message{{Role: "user", Content: os.Args[2]}}
	for {
		reply, err := ask(os.Args[1], messages)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if messages = append(messages, reply); len(reply.Calls) == 0 {
			fmt.Println(reply.Content)
			return
		}
		results := make([]message, len(reply.Calls))
		var all sync.WaitGroup
		for i, c := range reply.Calls {
			all.Go(func() { results[i] = message{Role: "tool", Content: run(c), CallID: c.ID} })
		}
		all.Wait()
		messages = append(messages, results...)
	}
}

// ask sends a request and returns the streamed reply.
func ask(url string, messages []message) (reply message, err error) {
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "messages": messages})
	if err != nil {
		return reply, err
	}
	resp, err := http.Post(url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	reply.Role = "assistant"
	var text strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Index int
						call
					} `json:"tool_calls"`
				}
			}
		}
		if !isData || json.Unmarshal(data, &chunk) != nil || len(chunk.Choices) == 0 {
			continue
		}
		delta := chunk.Choices[0].Delta
		text.WriteString(delta.Content)
		for _, piece := range delta.Calls {
			if piece.Index == len(reply.Calls) {
				reply.Calls = append(reply.Calls, piece.call)
			} else {
				reply.Calls[piece.Index].Function.Arguments += piece.Function.Arguments
			}
		}
	}
	reply.Content = text.String()
	return reply, nil
}

// run runs one call and returns its result.
func run(c call) string {
	var args struct{ Path, Command string }
	_ = json.Unmarshal([]byte(c.Function.Arguments), &args) // the bench sends only valid ones
	if c.Function.Name == "read" {
		text, _ := os.ReadFile(args.Path)
		return string(text)
	}
	out, _ := program.ConfinedCommand("/bin/bash", "-c", args.Command).CombinedOutput()
	return string(out)
}
