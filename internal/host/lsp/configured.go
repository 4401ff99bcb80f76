//go:build unix

package lsp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// configured is a server as a user writes it down.
type configured struct {
	Command     words             `json:"command"`
	Args        []string          `json:"args"`
	Files       map[string]string `json:"files"`
	RootMarkers []string          `json:"root_markers"`
	Init        any               `json:"init"`
	Settings    map[string]any    `json:"settings"`
	Env         map[string]string `json:"env"`
	Disabled    bool              `json:"disabled"`
}

// words is a program, alone or with its arguments.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// Configured makes a Kind of a user's setting. If name is that of a server or a
// language we know ("gopls", "go", "py"), what the setting leaves out is as we
// know it; another one must say which files it is for. The setting is an object
// with any of command (a string or a list), args, files (endings and language
// ids), root_markers, init, settings, env and disabled.
func Configured(name string, raw json.RawMessage) (Kind, error) {
	var c configured
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Kind{}, fmt.Errorf("language server %s: %w", name, err)
	}
	k, _ := knownAs(name)
	if len(c.Command) > 0 {
		k.Name, k.Command, k.Init, k.Settings, k.options = c.Command[0], slices.Clone(c.Command), nil, nil, nil
		k.Install, k.fits, k.ask, k.whole, k.rests, k.beyond = "", nil, nil, false, false, ""
	}
	k.Command = append(k.Command, c.Args...)
	if c.Files != nil {
		k.Files = c.Files
	}
	if c.RootMarkers != nil {
		k.Markers = [][]string{c.RootMarkers}
	}
	if c.Init != nil {
		k.Init, k.options = c.Init, nil
	}
	if c.Settings != nil {
		k.Settings = c.Settings
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		k.Env = append(k.Env, name+"="+c.Env[name])
	}
	if c.Disabled {
		k.Command = nil
	}
	switch {
	case len(k.Files) == 0:
		return Kind{}, fmt.Errorf("language server %s: files must say which files it is for", name)
	case len(k.Command) == 0 && !c.Disabled:
		return Kind{}, fmt.Errorf("language server %s: command is missing", name)
	case len(k.Command) > 0 && k.Command[0] == "":
		return Kind{}, errors.New("language server " + name + ": command is empty")
	}
	return k, nil
}

// knownAs finds the server of that name, or the first for a language of that
// name, id or file ending.
func knownAs(name string) (Kind, bool) {
	at := slices.IndexFunc(known, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		at = slices.IndexFunc(known, func(k Kind) bool {
			_, ending := k.Files["."+name]
			return ending || strings.EqualFold(k.Language, name) || slices.Contains(slices.Collect(maps.Values(k.Files)), name)
		})
	}
	if at < 0 {
		return Kind{Name: name, Language: name}, false
	}
	k := known[at]
	k.Command = slices.Clone(k.Command)
	return k, true
}
