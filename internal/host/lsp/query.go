package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// locate asks where something is. The answer is a place, several, or several
// links to places.
func (s *server) locate(ctx context.Context, method string, params any) ([]Location, error) {
	var raw json.RawMessage
	if err := s.request(ctx, requestLimit, method, params, &raw); err != nil {
		return nil, err
	}
	list, err := s.places(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: read the answer to %s: %w", s.kind.Name, method, err)
	}
	return list, nil
}

// place of a thing as servers write it: a location, or a link to one.
type wireLocation struct {
	URI         string `json:"uri"`
	Range       Range  `json:"range"`
	TargetURI   string `json:"targetUri"`
	TargetRange Range  `json:"targetSelectionRange"`
}

// maxPlaces is how many places are taken of an answer.
const maxPlaces = 5000

func (s *server) places(raw json.RawMessage) (list []Location, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	var sent []wireLocation
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	for _, w := range sent[:min(len(sent), maxPlaces)] {
		if w.TargetURI != "" {
			w.URI, w.Range = w.TargetURI, w.TargetRange
		}
		if path := pathOf(w.URI); path != "" {
			list = append(list, Location{nameOf(s.top, path), w.Range})
		}
	}
	return list, nil
}

// hover asks what stands at a place, in words.
func (s *server) hover(ctx context.Context, path string, at Position) (string, error) {
	var reply *struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := s.request(ctx, requestLimit, "textDocument/hover", place(path, at), &reply); err != nil || reply == nil {
		return "", err
	}
	return strings.TrimSpace(prose(reply.Contents)), nil
}

// prose reads text in any of the forms servers write it: a string, an object
// that has it as its value, or a list of these.
func prose(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Language string `json:"language"`
		Value    string `json:"value"`
	}
	if json.Unmarshal(raw, &o) == nil {
		if o.Language != "" {
			return "```" + o.Language + "\n" + o.Value + "\n```"
		}
		return o.Value
	}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // what is none of these says nothing
	var parts []string
	for _, raw := range list {
		if len(raw) > 0 && raw[0] != '[' {
			parts = append(parts, prose(raw))
		}
	}
	return strings.Join(parts, "\n\n")
}
