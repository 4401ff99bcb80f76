package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/repofile"

	"github.com/tailscale/hujson"
)

// KeysFile is the file with the user's key bindings.
const KeysFile = "keys.json"

// KeyBinding is one key binding in that file.
type KeyBinding struct {
	Key, Action string
	source      *source
	offset      int // its offset in the file
}

// NewError returns an error about the binding.
func (b KeyBinding) NewError(what string) error { return b.source.errorAt(b.offset, b.Key, what) }

// LoadKeys reads a file of key bindings: an object with an action for each key. A missing file has none.
func LoadKeys(path string) (all []KeyBinding, err error) {
	data, err := repofile.ReadOwn(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, message.Errorf("%s: %w", path, err)
	}
	src, err := parseConfig(path, data)
	if err != nil {
		return nil, err
	}
	o, err := toObject(src.root)
	if err != nil {
		return nil, src.errorAt(src.root.StartOffset, "", err.Error())
	}
	seen := make(map[string]bool)
	for _, m := range o.Members {
		b := KeyBinding{Key: strings.ToLower(memberName(m)), source: src, offset: m.Name.StartOffset}
		lit, ok := m.Value.Value.(hujson.Literal)
		switch {
		case b.Key == "$schema":
			continue
		case !ok || lit.Kind() != '"':
			err = errors.Join(err, b.NewError("expected the name of an action, found "+describeFound(m.Value)))
			continue
		case seen[b.Key]:
			err = errors.Join(err, b.NewError(fmt.Sprintf("key %q appears twice", shorten(b.Key))))
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
