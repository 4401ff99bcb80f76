package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"coder/internal/host/repofile"

	"github.com/tailscale/hujson"
)

// KeysFile is the file with the user's key bindings.
const KeysFile = "keys.json"

// KeyBinding is one key binding in that file.
type KeyBinding struct {
	Key, Action string
	src         *source
	at          int // its offset in the file
}

// Wrong returns an error about the binding.
func (b KeyBinding) Wrong(what string) error { return b.src.error(b.at, b.Key, what) }

// Keys reads a file of key bindings: an object with an action for each key. A missing file has none.
func Keys(path string) (all []KeyBinding, err error) {
	data, err := repofile.Own(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	src, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	o, err := asObject(src.root)
	if err != nil {
		return nil, src.error(src.root.StartOffset, "", err.Error())
	}
	seen := make(map[string]bool)
	for _, m := range o.Members {
		b := KeyBinding{Key: strings.ToLower(memberName(m)), src: src, at: m.Name.StartOffset}
		lit, ok := m.Value.Value.(hujson.Literal)
		switch {
		case b.Key == "$schema":
			continue
		case !ok || lit.Kind() != '"':
			err = errors.Join(err, b.Wrong("expected the name of an action, found "+found(m.Value)))
			continue
		case seen[b.Key]:
			err = errors.Join(err, b.Wrong(fmt.Sprintf("key %q appears twice", brief(b.Key))))
			continue
		}
		b.Action, seen[b.Key] = lit.String(), true
		all = append(all, b)
	}
	return all, err
}

// KeysSchema returns a JSON Schema, draft 2020-12, for such a file with these actions.
func KeysSchema(actions []string) json.RawMessage {
	s := schema{
		Dialect: "https://json-schema.org/draft/2020-12/schema", Title: "coder keys", Type: "object",
		Description: "an action for each key, such as \"ctrl+t\": \"stash\"",
		Properties:  map[string]*schema{"$schema": {Type: "string", Description: "address of this schema, for editors"}},
		More:        &schema{Type: "string", Enum: actions},
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return text
}
