package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"coder/internal/config"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
	"coder/internal/host/repofile"
)

// ForeignEntry is one entry in another agent's settings, with the corresponding setting in coder.
type ForeignEntry struct {
	Kind     string // rule, hook, MCP server, setting
	Original string // in the agent's notation
	Key      string // of our setting; "" if it has no counterpart
	Value    any
	Note     string // why there is none, or a hint
	Widens   bool   // it allows coder more
	State    string // new, there, other: compared with the user's settings
}

// ForeignSettings describes another agent's settings in the user's home.
type ForeignSettings struct {
	Agent      string
	Files      []string // the files read
	Entries    []ForeignEntry
	Unreadable []string // unreadable files
}

// ForeignAgents returns the agents whose settings can be taken over.
func ForeignAgents() []string { return slices.Sorted(maps.Keys(foreignReaders)) }

// foreignReaders maps each agent to the reader of its settings.
var foreignReaders = map[string]func(*foreignReader){"claude": readClaudeSettings, "codex": readCodexSettings}

// foreignReader reads the settings of one agent.
type foreignReader struct {
	home    string
	project string // the workspace
	ForeignSettings
}

// maxForeignFile limits the bytes read of one of their files.
const maxForeignFile = 16 << 20

// ReadForeign reads another agent's settings in the user's home.
func (a *Workspace) ReadForeign(agent string) (ForeignSettings, error) {
	read, ok := foreignReaders[agent]
	if !ok {
		return ForeignSettings{}, inputErrorf("unknown agent %q: use claude or codex", agent)
	}
	home := a.Env.Getenv("HOME")
	if home == "" {
		return ForeignSettings{}, inputErrorf("HOME is not set, so there are no settings to find")
	}
	r := foreignReader{home: home, project: a.Root, ForeignSettings: ForeignSettings{Agent: agent}}
	read(&r)
	r.keepDenials()
	own, err := a.readUserSettings()
	if err != nil {
		return r.ForeignSettings, inputErrorf("%v", err)
	}
	for i := range r.Entries {
		r.Entries[i].setState(own)
	}
	return r.ForeignSettings, nil
}

// readUserSettings returns the user's own settings as written.
func (s *Settings) readUserSettings() (map[string]any, error) {
	text, err := repofile.ReadOwn(filepath.Join(s.Home, "config.json"), maxUserFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return config.ParseWritten(text)
}

// setState sets the state by comparison with the user's settings.
func (f *ForeignEntry) setState(own map[string]any) {
	if f.Key == "" {
		return
	}
	var at any = own
	for _, word := range config.KeyWords(f.Key) {
		m, _ := at.(map[string]any)
		at = m[word]
	}
	var want any
	_ = json.Unmarshal(jsonx.MustMarshal(f.Value), &want) // as in a file
	list, isList := at.([]any)
	provider, _ := own["provider"].(map[string]any)
	switch all, hooks := want.([]any); {
	case at == nil && len(provider) > 0 && strings.HasPrefix(f.Key, "provider."):
		f.State, f.Note = "other", "your settings name another endpoint: unchanged"
	case at == nil:
		f.State = "new"
	case reflect.DeepEqual(at, want):
		f.State = "there"
	case hooks && isList: // existing hooks stay
		more := slices.DeleteFunc(all, func(one any) bool {
			return slices.ContainsFunc(list, func(o any) bool { return reflect.DeepEqual(o, one) })
		})
		if f.State, f.Value = "new", append(list, more...); len(more) == 0 {
			f.State = "there"
		}
	default:
		f.State, f.Note = "other", "your settings say otherwise: unchanged"
	}
}

// NewEntries returns the entries that would be written.
func (f ForeignSettings) NewEntries() (all []ForeignEntry) {
	for _, one := range f.Entries {
		if one.State == "new" {
			all = append(all, one)
		}
	}
	return all
}

// takeoverFile stores the user's settings from before they were taken over.
const takeoverFile = "taken-over.json"

type takeoverRecord struct {
	Before  string `json:"before"`
	Existed bool   `json:"existed"`
	After   string `json:"after"`          // the hash of the written text
	From    string `json:"from,omitempty"` // of the text that it replaced; a kill may have left that
}

// isCurrent reports whether the settings have changed only as recorded.
func (t takeoverRecord) isCurrent(text []byte) bool {
	return slices.Contains([]string{t.After, t.From}, hashText(text))
}

func hashText(text []byte) string { sum := sha256.Sum256(text); return hex.EncodeToString(sum[:]) }

// TakeOver writes the new entries to the user's own settings.
func (a *Workspace) TakeOver(f ForeignSettings) (path string, err error) {
	if a.Options.Ephemeral {
		return "", inputErrorf("--no-session-persistence saves nothing")
	}
	path, err = a.editOwn(func(text []byte) ([]byte, error) {
		now := text
		for _, one := range f.NewEntries() {
			if now, err = config.SetValue(now, one.Key, one.Value); err != nil {
				return nil, err
			}
		}
		note := takeoverRecord{Before: string(text), Existed: text != nil}
		if was, err := a.readTakeover(); err == nil && was.isCurrent(text) {
			note = was // undo both together
		}
		note.From, note.After = hashText(text), hashText(now)
		return now, atomicfile.WriteLocked(filepath.Join(a.Home, takeoverFile), jsonx.MustMarshal(note), 0o600)
	})
	if err != nil {
		return path, inputErrorf("nothing was written: %v", err)
	}
	return path, nil
}

func (a *Workspace) readTakeover() (t takeoverRecord, err error) {
	text, err := repofile.ReadOwn(filepath.Join(a.Home, takeoverFile), maxForeignFile)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// UndoTakeOver restores the user's earlier settings.
func (a *Workspace) UndoTakeOver() (path string, err error) {
	path = filepath.Join(a.Home, "config.json")
	note := filepath.Join(a.Home, takeoverFile)
	err = atomicfile.Update(path, 0o600, func() ([]byte, error) {
		was, err := a.readTakeover()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("no settings were taken over, so there is nothing to undo")
		}
		if err != nil {
			return nil, err
		}
		now, err := repofile.ReadOwn(path, maxUserFile)
		gone := errors.Is(err, fs.ErrNotExist)
		switch {
		case err != nil && !gone:
			return nil, err
		case gone && !was.Existed, !gone && was.Existed && string(now) == was.Before: // a kill left the record
			return nil, nil
		case gone || !was.isCurrent(now):
			return nil, message.Errorf("%s changed since: edit it by hand; the settings from before are in %s", path, note)
		case was.Existed:
			return []byte(was.Before), nil
		}
		return nil, errors.Join(os.Remove(path), disk.SyncDir(a.Home))
	})
	if err != nil {
		return path, inputErrorf("%v", err)
	}
	return path, os.Remove(note)
}

// readFile passes the content of one of the agent's files to into, unless the file is missing.
func (r *foreignReader) readFile(name string, into func([]byte) error) {
	at := filepath.Join(r.home, filepath.FromSlash(name))
	text, err := repofile.ReadOwn(at, maxForeignFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = into(text)
	}
	if err != nil {
		r.Unreadable = append(r.Unreadable, fmt.Sprintf("~/%s: %s", name, singleLine(repofile.Reason(err))))
		return
	}
	r.Files = append(r.Files, "~/"+name)
}

func (r *foreignReader) add(f ForeignEntry) { r.Entries = append(r.Entries, f) }

// addUnmatched adds an entry without a counterpart.
func (r *foreignReader) addUnmatched(kind, what, why string) {
	r.add(ForeignEntry{Kind: kind, Original: what, Note: why})
}

// addSetting adds an entry with a setting in coder.
func (r *foreignReader) addSetting(what, key string, value any, note string) {
	r.add(ForeignEntry{Kind: "setting", Original: what, Key: key, Value: value, Note: note})
}

// keepDenials drops rules that a stricter one binds there: the strictest rule applies there, and the longest here.
func (r *foreignReader) keepDenials() {
	strictness := map[any]int{"deny": 2, "ask": 1}
	all := slices.Clone(r.Entries)
	for i := range r.Entries {
		one := &r.Entries[i]
		if one.Kind != "rule" || one.Key == "" || strings.HasPrefix(one.Original, "enabled_tools ") {
			continue
		}
		words := config.KeyWords(one.Key) // permission, the tool, the pattern
		for _, other := range all {
			if other.Kind != "rule" || other.Key == "" || strictness[other.Value] <= strictness[one.Value] {
				continue
			}
			its := config.KeyWords(other.Key)
			if len(its[1])+len(its[2]) <= len(words[1])+len(words[2]) && patternsOverlap(its[2], words[2]) &&
				(patternsOverlap(its[1], words[1]) || strings.HasPrefix(words[1], its[1]+"__")) {
				one.Key, one.Note = "", "a stricter rule applies: "+other.Original
				break
			}
		}
	}
}

// patternsOverlap reports whether a text may match both patterns, in which a star is any text.
func patternsOverlap(a, b string) bool {
	rest := make([]bool, len(b)+1) // by the position in b: whether what follows overlaps with what follows in a
	for i := len(a); i >= 0; i-- {
		now := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				now[j] = true
			case i < len(a) && a[i] == '*':
				now[j] = rest[j] || j < len(b) && now[j+1]
			case j < len(b) && b[j] == '*':
				now[j] = now[j+1] || i < len(a) && rest[j]
			case i < len(a) && j < len(b):
				now[j] = a[i] == b[j] && rest[j+1]
			}
		}
		rest = now
	}
	return rest[0]
}

// settingKey returns the key of an entry in a setting; the entry's name may be any text.
func settingKey(key, name string) string { return key + "." + strconv.Quote(name) }

// warnForeignSettings warns about other agents' settings that were not taken over, once for each content.
func (a *Workspace) warnForeignSettings() {
	home := a.Env.Getenv("HOME")
	if home == "" || a.Home == "" || a.Options.IgnoreConfig || a.Replay != nil {
		return
	}
	seen := a.factsFile(shownRestrictionsFile)
	for _, agent := range ForeignAgents() {
		hash := ""
		for _, name := range []string{".claude/settings.json", ".codex/config.toml"} {
			if info, err := os.Stat(filepath.Join(home, filepath.FromSlash(name))); err == nil &&
				strings.HasPrefix(name, "."+agent) {
				hash = fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
			}
		}
		if key := "~/." + agent; hash != "" && a.guards.get(seen, key) != hash {
			a.guards.update(seen, key, maxRestrictedProjects, func(shown *string) bool { *shown = hash; return true })
			if f, err := a.ReadForeign(agent); err == nil {
				a.warnForeignEntries(f)
			}
		}
	}
}

// warnForeignEntries describes in one line what was found, denials first.
func (a *Workspace) warnForeignEntries(f ForeignSettings) {
	count := make(map[string]int)
	for _, one := range f.NewEntries() {
		kind := one.Kind
		if kind == "rule" && one.Value != "allow" {
			kind = "guard"
		}
		count[kind]++
	}
	if len(count) == 0 {
		return
	}
	a.warn(fmt.Sprintf("coder does not apply %s (denials: %d, hooks: %d, MCP servers: %d, other: %d); coder setup --from %s shows and imports them",
		strings.Join(f.Files, ", "), count["guard"], count["hook"], count["MCP server"], count["rule"]+count["setting"],
		f.Agent))
}
