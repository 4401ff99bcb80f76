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
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Found is one entry in another agent's settings, with the corresponding setting in coder.
type Found struct {
	Kind  string // rule, hook, MCP server, setting
	What  string // in the agent's notation
	Key   string // of our setting; "" if it has no counterpart
	Value any
	Note  string // why there is none, or a hint
	Wider bool   // it allows coder more
	State string // new, there, other: compared with the user's settings
}

// Foreign describes another agent's settings in the user's home.
type Foreign struct {
	Agent string
	Files []string // the files read
	Found []Found
	Bad   []string // unreadable files
}

// ForeignAgents returns the agents whose settings can be taken over.
func ForeignAgents() []string { return slices.Sorted(maps.Keys(foreignAgents)) }

// foreignAgents maps each agent to the reader of its settings.
var foreignAgents = map[string]func(*foreignReader){"claude": readClaude, "codex": readCodex}

// foreignReader reads the settings of one agent.
type foreignReader struct {
	home string
	Foreign
}

// maxForeign limits the bytes read of one of their files.
const maxForeign = 16 << 20

// Foreign reads another agent's settings in the user's home.
func (a *Workspace) Foreign(agent string) (Foreign, error) {
	read, ok := foreignAgents[agent]
	if !ok {
		return Foreign{}, inputf("unknown agent %q: use claude or codex", agent)
	}
	home := a.Env.Getenv("HOME")
	if home == "" {
		return Foreign{}, inputf("HOME is not set, so there are no settings to find")
	}
	r := foreignReader{home: home, Foreign: Foreign{Agent: agent}}
	read(&r)
	own, err := a.writtenSettings()
	if err != nil {
		return r.Foreign, inputf("%v", err)
	}
	for i := range r.Found {
		r.Found[i].compare(own)
	}
	return r.Foreign, nil
}

// writtenSettings returns the user's own settings as written.
func (s *Settings) writtenSettings() (map[string]any, error) {
	text, err := repofile.Own(filepath.Join(s.Home, "config.json"), maxNamedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return config.Written(text)
}

// compare sets the state by comparison with the user's settings.
func (f *Found) compare(own map[string]any) {
	if f.Key == "" {
		return
	}
	var at any = own
	for _, word := range config.Words(f.Key) {
		m, _ := at.(map[string]any)
		at = m[word]
	}
	var want any
	_ = json.Unmarshal(jsonx.Must(f.Value), &want) // as in a file
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

// New returns the entries that would be written.
func (f Foreign) New() (all []Found) {
	for _, one := range f.Found {
		if one.State == "new" {
			all = append(all, one)
		}
	}
	return all
}

// takenFile stores the user's settings from before they were taken over.
const takenFile = "taken-over.json"

type taken struct {
	Before  string `json:"before"`
	Existed bool   `json:"existed"`
	After   string `json:"after"` // the hash of the written text
}

func hashOfText(text []byte) string { sum := sha256.Sum256(text); return hex.EncodeToString(sum[:]) }

// TakeOver writes the new entries to the user's own settings.
func (a *Workspace) TakeOver(f Foreign) (path string, err error) {
	if a.Options.Ephemeral {
		return "", inputf("--no-session-persistence saves nothing")
	}
	path, err = a.editOwn(func(text []byte) ([]byte, error) {
		now := text
		for _, one := range f.New() {
			if now, err = config.Set(now, one.Key, one.Value); err != nil {
				return nil, err
			}
		}
		note := taken{Before: string(text), Existed: text != nil}
		if was, err := a.taken(); err == nil && was.After == hashOfText(text) {
			note = was // undo both together
		}
		note.After = hashOfText(now)
		if err := os.MkdirAll(a.Home, 0o700); err != nil {
			return nil, err
		}
		return now, atomicfile.Write(filepath.Join(a.Home, takenFile), jsonx.Must(note), 0o600)
	})
	if err != nil {
		return path, inputf("nothing was written: %v", err)
	}
	return path, nil
}

func (a *Workspace) taken() (t taken, err error) {
	text, err := repofile.Own(filepath.Join(a.Home, takenFile), maxForeign)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// UndoTakeOver restores the user's earlier settings.
func (a *Workspace) UndoTakeOver() (path string, err error) {
	path = filepath.Join(a.Home, "config.json")
	was, err := a.taken()
	if errors.Is(err, fs.ErrNotExist) {
		return path, inputf("no settings were taken over, so there is nothing to undo")
	}
	if err != nil {
		return path, inputf("%v", err)
	}
	note := filepath.Join(a.Home, takenFile)
	now, err := repofile.Own(path, maxNamedFile)
	switch {
	case err != nil:
		return path, inputf("%v", err)
	case hashOfText(now) != was.After:
		return path, inputf("%s changed since: edit it by hand; the settings from before are in %s", path, note)
	case !was.Existed:
		err = os.Remove(path)
	default:
		err = atomicfile.Write(path, []byte(was.Before), 0o600)
	}
	return path, errors.Join(err, os.Remove(note))
}

// read passes the content of one of the agent's files to into, unless the file is missing.
func (r *foreignReader) read(name string, into func([]byte) error) {
	at := filepath.Join(r.home, filepath.FromSlash(name))
	text, err := repofile.Own(at, maxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = into(text)
	}
	if err != nil {
		r.Bad = append(r.Bad, fmt.Sprintf("~/%s: %s", name, oneLine(repofile.Why(err))))
		return
	}
	r.Files = append(r.Files, "~/"+name)
}

func (r *foreignReader) add(f Found) { r.Found = append(r.Found, f) }

// none adds an entry without a counterpart.
func (r *foreignReader) none(kind, what, why string) { r.add(Found{Kind: kind, What: what, Note: why}) }

// set adds an entry with a setting in coder.
func (r *foreignReader) set(what, key string, value any, note string) {
	r.add(Found{Kind: "setting", What: what, Key: key, Value: value, Note: note})
}

// keyed returns the key of an entry in a setting; the entry's name may be any text.
func keyed(key, name string) string { return key + "." + strconv.Quote(name) }

// tellForeign warns about other agents' settings that were not taken over, once for each content.
func (a *Workspace) tellForeign() {
	home := a.Env.Getenv("HOME")
	if home == "" || a.Home == "" || a.Options.Bare || a.Recorded != nil {
		return
	}
	seen := a.remembers(guardsFile)
	for _, agent := range ForeignAgents() {
		hash := ""
		for _, name := range []string{".claude/settings.json", ".codex/config.toml"} {
			if info, err := os.Stat(filepath.Join(home, filepath.FromSlash(name))); err == nil && strings.HasPrefix(name, "."+agent) {
				hash = fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
			}
		}
		if key := "~/." + agent; hash != "" && a.guards.of(seen, key) != hash {
			a.guards.change(seen, key, mostGuarded, func(shown *string) bool { *shown = hash; return true })
			if f, err := a.Foreign(agent); err == nil {
				a.warnForeign(f)
			}
		}
	}
}

// warnForeign describes in one line what was found, denials first.
func (a *Workspace) warnForeign(f Foreign) {
	count := make(map[string]int)
	for _, one := range f.New() {
		kind := one.Kind
		if kind == "rule" && one.Value != "allow" {
			kind = "guard"
		}
		count[kind]++
	}
	if len(count) == 0 {
		return
	}
	a.warn(fmt.Sprintf("coder does not apply %s (denials: %d, hooks: %d, MCP servers: %d, other: %d); coder setup --from %s shows and takes them over",
		strings.Join(f.Files, ", "), count["guard"], count["hook"], count["MCP server"], count["rule"]+count["setting"], f.Agent))
}
