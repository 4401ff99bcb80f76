// Package plugin reads plugins: folders in which somebody publishes commands, skills, agents, hooks and
// MCP servers together, in the common layout.
//
// It runs nothing and decides nothing. A plugin is read completely or not at all, never through a link out of
// its folder, and is used only as long as the folder has the content that the user agreed to ([Book]).
package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"coder/internal/authored/frontmatter"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/repofile"
)

// Plugin is the content of a plugin folder.
type Plugin struct {
	Name        string // lowercase letters, digits, - and _
	Version     string
	Description string
	Dir         string // absolute, without links

	Commands, Skills, Agents, Styles []frontmatter.Root

	Hooks       []map[string]json.RawMessage // by event
	Servers     [][]byte                     // each the content of an MCP server file
	LSP         [][]byte                     // each the text of a file of language servers
	Unsupported []string                     // unsupported kinds of parts
}

const (
	manifestFile = ".claude-plugin/plugin.json"
	marketFile   = ".claude-plugin/marketplace.json"
	hooksFile    = "hooks/hooks.json"
	serversFile  = ".mcp.json"
	lspFile      = ".lsp.json"

	maxNameLen   = 64
	maxFileBytes = 1 << 20 // of a file that is read at startup
)

// manifest is plugin.json. Other members are ignored.
type manifest struct {
	Name        string           `json:"name"`
	Version     string           `json:"version"`
	Description string           `json:"description"`
	Commands    jsonx.StringList `json:"commands"`
	Skills      jsonx.StringList `json:"skills"`
	Agents      jsonx.StringList `json:"agents"`
	Hooks       json.RawMessage  `json:"hooks"`
	Servers     json.RawMessage  `json:"mcpServers"`

	Styles     jsonx.StringList `json:"outputStyles"`
	LSPServers json.RawMessage  `json:"lspServers"`
}

// Read reads the plugin in a folder. Its error says what is wrong.
func Read(dir string) (Plugin, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Plugin{}, message.Errorf("folder %s does not exist", dir)
	}
	if _, _, err := statStamp(real); err != nil {
		return Plugin{}, err
	}
	return readResolved(real)
}

// readResolved reads the plugin in a folder without links out of it.
func readResolved(real string) (Plugin, error) {
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return Plugin{}, errors.New("not a folder")
	}
	if strings.ContainsFunc(real, unicode.IsControl) || !filepath.IsAbs(real) {
		return Plugin{}, message.Errorf("%q is not a valid path for a plugin", real)
	}
	r := reader{files: repofile.NewRoot(real), plugin: Plugin{Dir: real}}
	if err := r.readAll(); err != nil {
		return Plugin{}, err
	}
	return r.plugin, nil
}

type reader struct {
	files  repofile.Root
	plugin Plugin
}

func (r *reader) readAll() error {
	m, found, err := r.readManifest()
	if err != nil {
		return err
	}
	if r.plugin.Name = strings.ToLower(m.Name); !isValidName(r.plugin.Name) {
		return message.Errorf("%q is not a valid plugin name: use letters, digits, - and _, at most %d", m.Name,
			maxNameLen)
	}
	r.plugin.Version, r.plugin.Description = m.Version, m.Description
	for _, part := range []struct {
		roots  *[]frontmatter.Root
		folder string
		more   jsonx.StringList
	}{{&r.plugin.Commands, "commands", m.Commands}, {&r.plugin.Skills, "skills", m.Skills},
		{&r.plugin.Agents, "agents", m.Agents}, {&r.plugin.Styles, "output-styles", m.Styles}} {
		if err := r.findRoots(part.roots, part.folder, part.more); err != nil {
			return err
		}
	}
	hooks, err := r.readTexts("hooks", hooksFile, m.Hooks)
	if err != nil {
		return err
	}
	for _, text := range hooks {
		by, err := parseHooks(text)
		if err != nil {
			return err
		}
		r.plugin.Hooks = append(r.plugin.Hooks, by)
	}
	if r.plugin.Servers, err = r.readTexts("mcpServers", serversFile, m.Servers); err != nil {
		return err
	}
	if r.plugin.LSP, err = r.readTexts("lspServers", lspFile, m.LSPServers); err != nil {
		return err
	}
	if !found && len(r.plugin.Commands)+len(r.plugin.Skills)+len(r.plugin.Agents)+len(r.plugin.Styles)+len(r.plugin.Hooks)+
		len(r.plugin.Servers)+len(r.plugin.LSP) == 0 {
		if _, err := r.files.Stat(marketFile); err == nil {
			return message.Errorf("a collection of plugins (%s): add one of its folders", marketFile)
		}
		return errors.New("it is not a plugin: it has no " + manifestFile)
	}
	return nil
}

// readManifest reads plugin.json. A plugin without one has the name of its folder.
func (r *reader) readManifest() (m manifest, found bool, err error) {
	text, err := r.files.Read(manifestFile, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{Name: filepath.Base(r.plugin.Dir)}, false, nil
	}
	if err != nil {
		return m, false, message.Errorf("%s: %s", manifestFile, repofile.Reason(err))
	}
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(trimBOM(text), &m), json.Unmarshal(trimBOM(text), &all)); err != nil {
		return m, false, message.Errorf("%s is invalid: %w", manifestFile, err)
	}
	for _, kind := range []string{"channels", "monitors", "settings", "themes", "userConfig"} {
		if _, has := all[kind]; has {
			r.plugin.Unsupported = append(r.plugin.Unsupported, kind)
		}
	}
	return m, true, nil
}

// findRoots finds the folders of one kind: the usual one, and those in
// the manifest, which may also be single files, or skills.
func (r *reader) findRoots(into *[]frontmatter.Root, usual string, more jsonx.StringList) error {
	seen := map[string]bool{}
	for _, name := range slices.Concat([]string{usual}, more) {
		at, err := cleanInside(name)
		if err != nil {
			return message.Errorf("%s: %w", usual, err)
		}
		info, err := r.files.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at == usual:
			continue
		case err != nil:
			return message.Errorf("%s: %s", at, repofile.Reason(err))
		case seen[at]:
			continue
		}
		seen[at] = true
		root := frontmatter.Root{Plugin: r.plugin.Name, PluginDir: r.plugin.Dir}
		if !info.IsDir() || usual == "skills" && at != usual && at != "." && r.isSkillDir(at) {
			root.OnlyNames = []string{path.Base(at)}
			at = path.Dir(at)
		}
		folder := filepath.Join(r.plugin.Dir, at)
		root.Path, root.Files = filepath.ToSlash(folder), repofile.OwnDir(folder) // no link leads out of it
		*into = append(*into, root)
	}
	return nil
}

// isSkillDir reports whether a folder is one skill.
func (r *reader) isSkillDir(at string) bool {
	_, err := r.files.Stat(path.Join(at, "SKILL.md"))
	return err == nil
}

// readTexts returns the content of the usual file, and of the
// manifest's entry: the content itself, or files that have it.
func (r *reader) readTexts(key, usual string, given json.RawMessage) (texts [][]byte, err error) {
	names := jsonx.StringList{}
	switch text := bytes.TrimSpace(given); {
	case len(text) == 0 || string(text) == "null":
	case text[0] == '{':
		texts = append(texts, text)
	case names.UnmarshalJSON(text) != nil:
		return nil, message.Errorf("%s: %s is neither a path nor an object", manifestFile, key)
	}
	for i, name := range slices.Concat([]string{usual}, names) {
		at, err := cleanInside(name)
		if err != nil {
			return nil, message.Errorf("%s: %w", key, err)
		}
		if i > 0 && at == usual {
			continue
		}
		text, err := r.files.Read(at, maxFileBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i == 0:
			continue
		case err != nil:
			return nil, message.Errorf("%s: %s", at, repofile.Reason(err))
		}
		texts = append(texts, trimBOM(text))
	}
	return texts, nil
}

// cleanInside returns a path of the manifest if the pin covers it.
func cleanInside(name string) (string, error) {
	at := path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(at) || slices.Contains(strings.Split(at, "/"), unpinnedDir) {
		return "", message.Errorf("%q leads outside the folder", name)
	}
	return at, nil
}

// parseHooks parses hooks: an object of events, alone or under hooks.
func parseHooks(text []byte) (by map[string]json.RawMessage, err error) {
	var file struct {
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	if err = json.Unmarshal(text, &file); err == nil && file.Hooks != nil {
		return file.Hooks, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &by)
		delete(by, "description")
		delete(by, "$schema")
	}
	if err != nil {
		return nil, message.Errorf("%s is invalid: %w", hooksFile, err)
	}
	return by, nil
}

func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }

// isValidName reports whether a plugin may have this name, which becomes part of command and tool names.
func isValidName(name string) bool {
	const letters, others = "abcdefghijklmnopqrstuvwxyz0123456789", "-_"
	return name != "" && len(name) <= maxNameLen && strings.Trim(name, letters+others) == "" &&
		!strings.ContainsAny(name[:1], others)
}
