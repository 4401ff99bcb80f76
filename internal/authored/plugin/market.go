package plugin

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Origin is where a plugin was fetched from; zero for a folder of the person's own.
type Origin struct {
	Source string `json:"source,omitempty"` // address of a repository
	Ref    string `json:"ref,omitempty"`    // branch, tag or commit that was asked for
	Commit string `json:"commit,omitempty"` // the commit of the plugin
	Sub    string `json:"sub,omitempty"`    // folder in it
}

// Offer is a plugin that a marketplace lists.
type Offer struct {
	Name, Description, Version string
	From                       Origin // without a source it is in the marketplace itself
	UnsupportedKind            string // the kind of source, if it is none of ours
	// Manifest is the marketplace's entry, which is the manifest of a plugin without one.
	Manifest json.RawMessage
}

// ReadMarket reads the marketplace in a folder: its name, and what it lists.
func ReadMarket(dir string) (name string, offers []Offer, err error) {
	text, err := repofile.NewRoot(dir).Read(marketFile, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, message.Errorf("%s is not a marketplace: it has no %s", filepath.Base(dir), marketFile)
	}
	if err != nil {
		return "", nil, message.Errorf("%s: %s", marketFile, repofile.Reason(err))
	}
	var m struct {
		Name     string
		Metadata struct{ PluginRoot string }
		Plugins  []json.RawMessage
	}
	if err := json.Unmarshal(trimBOM(text), &m); err != nil {
		return "", nil, message.Errorf("%s is invalid: %w", marketFile, err)
	}
	if name = strings.ToLower(m.Name); !isValidName(name) {
		return "", nil, message.Errorf("%q is not a valid name of a marketplace", m.Name)
	}
	for _, entry := range m.Plugins {
		var p struct {
			Name, Description, Version string
			Source                     json.RawMessage
		}
		err := json.Unmarshal(entry, &p)
		o := Offer{Name: strings.ToLower(p.Name), Description: p.Description, Version: p.Version, Manifest: entry}
		if err != nil || !isValidName(o.Name) {
			continue
		}
		o.parseSource(p.Source, m.Metadata.PluginRoot)
		offers = append(offers, o)
	}
	return name, offers, nil
}

// parseSource reads the source of a plugin.
func (o *Offer) parseSource(source json.RawMessage, root string) {
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
		o.UnsupportedKind = s.Source
		if s.Source == "" {
			o.UnsupportedKind = "an unknown source"
		}
	}
}

// HasManifest reports whether the plugin in a folder can be used as it is.
func (o Offer) HasManifest(dir string) bool {
	_, err := repofile.NewRoot(dir).Stat(manifestFile)
	return err == nil || o.Manifest == nil
}

// Furnish writes a copy of the plugin's folder with the marketplace's entry as its manifest.
func (o Offer) Furnish(dir, to string) error {
	files := repofile.NewRoot(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := files.Read(name, maxBytes)
		if err != nil {
			return err
		}
		return put(filepath.Join(to, name), text, info.Mode().Perm()|0o600)
	})
	return errors.Join(err, put(filepath.Join(to, manifestFile), o.Manifest, 0o600))
}

// put writes a file and the folders above it.
func put(at string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(at, text, mode)
}
