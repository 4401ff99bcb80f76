package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"coder/internal/host/repofile"
)

// Origin is where a plugin was fetched from; zero for a folder of the person's own.
type Origin struct {
	Source string `json:"source,omitempty"` // address of a repository
	Ref    string `json:"ref,omitempty"`    // branch, tag or commit that was asked for
	Commit string `json:"commit,omitempty"` // that it is
	Sub    string `json:"sub,omitempty"`    // folder in it
}

// Offer is a plugin that a marketplace lists.
type Offer struct {
	Name, Description, Version string
	From                       Origin // without a source it is in the marketplace itself
	Unsupported                string // the kind of source, if it is none of ours
}

// ReadMarket reads the marketplace in a folder: its name, and what it lists.
func ReadMarket(dir string) (name string, offers []Offer, err error) {
	text, err := repofile.Below(dir).Read(marketFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%s is not a marketplace: it has no %s", filepath.Base(dir), marketFile)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %s", marketFile, repofile.Why(err))
	}
	var m struct {
		Name     string
		Metadata struct{ PluginRoot string }
		Plugins  []struct {
			Name, Description, Version string
			Source                     json.RawMessage
		}
	}
	if err := json.Unmarshal(trimBOM(text), &m); err != nil {
		return "", nil, fmt.Errorf("%s is invalid: %w", marketFile, err)
	}
	if name = strings.ToLower(m.Name); !validName(name) {
		return "", nil, fmt.Errorf("%q is not a valid name of a marketplace", m.Name)
	}
	for _, p := range m.Plugins {
		o := Offer{Name: strings.ToLower(p.Name), Description: p.Description, Version: p.Version}
		if !validName(o.Name) {
			continue
		}
		o.from(p.Source, m.Metadata.PluginRoot)
		offers = append(offers, o)
	}
	return name, offers, nil
}

// from reads the source of a plugin.
func (o *Offer) from(source json.RawMessage, root string) {
	var s struct{ Source, Repo, URL, Ref, SHA, Path string }
	if json.Unmarshal(source, &s.Path) == nil {
		o.From.Sub = filepath.Clean(s.Path)
		if !strings.HasPrefix(s.Path, "./") {
			o.From.Sub = filepath.Join(root, s.Path)
		}
		return
	}
	_ = json.Unmarshal(source, &s) // one of another form is unsupported
	o.From = Origin{Source: s.Repo, Ref: s.Ref, Sub: s.Path}
	if s.SHA != "" {
		o.From.Ref = s.SHA
	}
	if s.Source != "github" {
		o.From.Source = s.URL
	}
	if o.From.Source == "" {
		o.Unsupported = s.Source
		if s.Source == "" {
			o.Unsupported = "an unknown source"
		}
	}
}
