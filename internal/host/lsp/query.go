package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// locate asks where the thing at a place is. The answer is a place, several, or
// several links to places.
func (p *Pool) locate(ctx context.Context, method, name string, text []byte, at Position) (list []Location, err error) {
	err = p.asking(ctx, name, text, func(s *server, path string) error {
		ask := about(path)
		ask["position"] = at
		if method == "textDocument/references" {
			ask["context"] = map[string]any{"includeDeclaration": true}
		}
		var raw json.RawMessage
		if err := s.request(ctx, requestLimit, method, ask, &raw); err != nil {
			return err
		}
		if list, err = s.places(raw); err != nil {
			err = fmt.Errorf("%s: read the answer to %s: %w", s.kind.Name, method, err)
		}
		return err
	})
	return list, err
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
