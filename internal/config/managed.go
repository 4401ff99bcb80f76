package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/repofile"

	"github.com/tailscale/hujson"
)

// ManagedDir is the folder for an administrator's settings of
// a machine: managed.json, and files in managed.d.
const ManagedDir = "/etc/coder"

// ManagedLimits are the limits that only managed settings can set, in one file. All files apply: a file
// can only tighten the others' limits. A nil list means no limit; an empty one allows nothing.
type ManagedLimits struct {
	Modes     []string `json:"modes" order:"only these" doc:"modes that may be used"`
	Endpoints []string `json:"endpoints" order:"only these" doc:"hosts of model endpoints, such as llm.example.org, *.example.org or 127.0.0.1:8080"`
	Models    []string `json:"models" order:"only these" doc:"models, as patterns such as qwen3-*"`
	Deny      []string `json:"deny" order:"more" doc:"calls that no rule, approval or mode allows, such as fetch, bash(git push *) or write(/etc/**)"`
	MCP       []string `json:"mcp" order:"only these" doc:"MCP servers, as patterns of their address or of their command with its arguments"`
	Plugins   *bool    `json:"plugins" order:"false before true" doc:"false: no plugins"`
	Telemetry *bool    `json:"telemetry" order:"false before true" doc:"false: nothing is sent to a collector"`
	KeepDays  int      `json:"keep_days" order:"more" doc:"days before a session may be deleted; runs that save nothing are refused"`
	DayUSD    float64  `json:"day_usd" order:"less" doc:"dollars for all sessions of a user on one day"`
	DayTokens int      `json:"day_tokens" order:"less" doc:"tokens of requests and replies, likewise"`
	Origin    Origin   `json:"-"`
}

// managedLimit is a limit on a setting from managed settings.
type managedLimit struct {
	field  *field
	limit  reflect.Value
	origin Origin
}

// managedFiles returns the managed files in dir. Each file, and each folder on its path, must
// belong to root and be writable by nobody else. Another owner is accepted only in a test's folder.
func managedFiles(dir string) (names []string, err error) {
	owner, top := 0, "/"
	if dir != ManagedDir {
		owner, top = os.Geteuid(), dir
	}
	look := []string{filepath.Join(dir, "managed.json")}
	drop := filepath.Join(dir, "managed.d")
	entries, err := fs.ReadDir(repofile.OwnDir(drop), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries { // sorted by name
		if strings.HasSuffix(e.Name(), ".json") {
			look = append(look, filepath.Join(drop, e.Name()))
		}
	}
	if _, err := os.Lstat(look[0]); errors.Is(err, fs.ErrNotExist) {
		look = look[1:]
	}
	for _, name := range append([]string{drop}, look...) {
		real, err := filepath.EvalSymlinks(name)
		if name == drop && errors.Is(err, fs.ErrNotExist) {
			if real, err = filepath.EvalSymlinks(dir); errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
		}
		err = cmp.Or(err, checkOwner(real, owner, top), checkOwner(filepath.Dir(name), owner, top))
		if err != nil {
			return nil, err
		}
	}
	return look, nil
}

// checkOwner returns an error unless path, and the folders on its
// path from top, belong to owner and are writable by nobody else.
func checkOwner(path string, owner int, top string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != owner {
			return message.Errorf("%s does not belong to root", at)
		}
		if info.Mode().Perm()&0o022 != 0 {
			return message.Errorf("%s can be written by others than root", at)
		}
		if at == top || at == filepath.Dir(at) {
			return nil
		}
	}
}

// applyManaged tightens the settings to the managed files' limits. An
// unusable file is an error: an unreadable policy allows nothing.
func (l *loader) applyManaged(dir string) {
	names, err := managedFiles(dir)
	if err != nil {
		l.addError(message.Errorf("managed settings: %w", err))
	}
	for _, name := range names {
		data, err := repofile.ReadOwn(name, maxFileBytes)
		if err != nil {
			l.addError(message.Errorf("managed settings: %w", err))
			continue
		}
		src, err := parseConfig(name, data)
		if err == nil {
			err = src.checkFormat()
		}
		if err != nil {
			l.addError(err)
			continue
		}
		l.report.Files = append(l.report.Files, name)
		y := layer{loader: l, name: name, source: src, untrusted: true} // no variables: users set them
		y.tightenBlock(l.root, src.root)
	}
}

// tightenBlock tightens the settings in a block.
func (y *layer) tightenBlock(f *field, v hujson.Value) {
	y.eachMember(f.path, v, func(name string, m hujson.ObjectMember) {
		path, kid := EntryKey(f.path, name), f.childByName[name]
		switch {
		case f.path == "" && name == "managed":
			y.readLimits(m.Value)
		case f.path == "" && (name == "$schema" || name == formatKey || name == writerKey):
		case kid == nil && f.catchAll == nil:
			y.addErrorAt(m.Name.StartOffset, path, fmt.Sprintf("unknown key %q%s", shorten(path), y.root.suggestKey(f, name)))
		case kid != nil && kid.kind == kindObject:
			y.tightenBlock(kid, m.Value)
		case kid == nil || kid.tightenOrder() == "":
			err := errors.New("managed settings can only tighten, and this setting has no order")
			if kid == nil {
				err = message.Errorf("%w; managed.deny denies calls", err)
			}
			y.addValueError(m.Value, path, err)
		default:
			y.limitField(kid, m.Value)
		}
	})
}

// limitField limits one setting.
func (y *layer) limitField(f *field, v hujson.Value) {
	limit, err := y.decodeValue(f, v)
	if err == nil && f.tightenOrder() == "least" && limit.IsZero() {
		err = errors.New("0 is no limit")
	}
	if err != nil {
		y.addValueError(v, f.path, err)
		return
	}
	if old, twice := y.report.locks[f.path]; twice {
		limit, _ = f.applyLimit(old.limit, limit)
	}
	y.report.locks[f.path] = managedLimit{f, limit, y.originAt(v.StartOffset)}
	place := f.valueIn(&y.cfg)
	now, changed := f.applyLimit(place, limit)
	place.Set(now)
	if !changed {
		return
	}
	if by := y.report.origins[f.path]; strings.HasPrefix(by.Source, "-") { // from a flag
		text := fmt.Sprintf("%s is locked by %s", f.path, y.originAt(v.StartOffset))
		y.report.Warnings = append(y.report.Warnings, Warning{Origin: by, Key: f.path, Text: text})
	}
	y.recordOrigin(v.StartOffset, f.path)
}

// readLimits reads the block managed.
func (y *layer) readLimits(v hujson.Value) {
	limits := ManagedLimits{Origin: y.originAt(v.StartOffset)}
	plain := v.Clone()
	plain.Standardize()
	d := json.NewDecoder(strings.NewReader(string(plain.Pack())))
	d.DisallowUnknownFields()
	err := d.Decode(&limits)
	if err != nil {
		err = jsonx.ExplainMismatch(err, limits)
	}
	for x := range v.All() {
		if lit, ok := x.Value.(hujson.Literal); ok && lit.Kind() == 'n' && err == nil {
			err = errors.New("null is no limit")
		}
	}
	modes := y.root.childByName["agents"].childByName["default"].enum()
	for _, name := range limits.Modes {
		if !slices.Contains(modes, name) && err == nil {
			err = message.Errorf("modes: expected %s, found %q", listValues(modes), shorten(name))
		}
	}
	if err == nil && (limits.KeepDays < 0 || limits.DayUSD < 0 || limits.DayTokens < 0) {
		err = errors.New("a number is below zero")
	}
	if err == nil {
		err = checkHosts(limits.Endpoints)
	}
	if err != nil {
		y.addValueError(v, "managed", err)
		return
	}
	y.report.Limits = append(y.report.Limits, limits)
}

// tightenOrder returns how managed settings limit f, or "" if they cannot: in
// the way that an untrusted project may change f, unless f has its own.
func (f *field) tightenOrder() string {
	if own, ok := f.tag.Lookup("managed"); ok {
		return own
	}
	if how := f.projectRule(); how != "free" && how != "never" && f.kind != kindRules {
		return how
	}
	return ""
}

// applyLimit returns f's value under a limit, and whether the limit changes it.
func (f *field) applyLimit(value, limit reflect.Value) (now reflect.Value, changed bool) {
	now = value
	switch f.tightenOrder() {
	case "stricter":
		if f.enumRank(limit.String()) < f.enumRank(value.String()) {
			now = limit
		}
	case "off":
		now = reflect.ValueOf(value.Bool() && limit.Bool())
	case "lower", "least":
		unlimited := f.tightenOrder() == "least" && value.IsZero()
		if f.kind == kindFloat && (unlimited || limit.Float() < value.Float()) ||
			f.kind == kindInt && (unlimited || limit.Int() < value.Int()) {
			now = limit
		}
	case "adds":
		all := slices.Clone(value.Interface().([]string))
		for _, s := range limit.Interface().([]string) {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		now = reflect.ValueOf(all)
	case "fewer":
		may := limit.Interface().([]string)
		list := slices.Clone(value.Interface().([]string))
		now = reflect.ValueOf(slices.DeleteFunc(list, func(s string) bool { return !slices.Contains(may, s) }))
	case "narrower":
		if value.Interface().(Network).IsUnlimited() {
			now = limit
		} else {
			now, _ = intersectNetworks(limit, value)
		}
	}
	return now, !reflect.DeepEqual(now.Interface(), value.Interface())
}

// CheckLocked returns an error if managed settings would override a setting's value.
func (r Report) CheckLocked(key string, value any) error {
	held, ok := r.locks[key]
	if !ok || held.field.tightenOrder() == "adds" {
		return nil
	}
	v, err := toLiteral(held.field, nil, value)
	if err != nil {
		return err
	}
	y := layer{loader: newLoader(Options{}), name: "value"}
	given, err := y.decodeValue(held.field, v)
	if err != nil {
		return err
	}
	if _, changed := held.field.applyLimit(given, held.limit); changed {
		return message.Errorf("%s is locked by %s: %s", key, held.origin, jsonx.MustMarshal(held.limit.Interface()))
	}
	return nil
}

// managedRows returns the rows of limits that are no settings.
func (r Report) managedRows() (rows []Row) {
	for _, l := range r.Limits {
		var all map[string]json.RawMessage
		if json.Unmarshal(jsonx.MustMarshal(l), &all) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if text := string(all[name]); text != "null" && text != "0" {
				rows = append(rows, Row{Key: EntryKey("managed", name), Value: text, Origin: l.Origin, Lock: l.Origin})
			}
		}
	}
	return rows
}

// ManagedKey is a key in managed settings, and how it tightens.
type ManagedKey struct{ Key, Order, Doc string }

// ManagedKeys returns all possible keys in managed settings.
func ManagedKeys() (keys []ManagedKey) {
	words := map[string]string{
		"off": "false before true", "lower": "less", "least": "less; 0 is no limit",
		"adds": "more", "fewer": "fewer entries", "narrower": "fewer hosts",
	}
	rootField().walk(func(f *field) {
		order := f.tightenOrder()
		if order == "" {
			return
		}
		if order == "stricter" {
			words[order] = strings.Join(f.enum(), " before ")
		}
		keys = append(keys, ManagedKey{f.path, words[order], f.doc()})
	})
	for f := range reflect.TypeFor[ManagedLimits]().Fields() {
		if name := f.Tag.Get("json"); name != "-" {
			keys = append(keys, ManagedKey{EntryKey("managed", name), f.Tag.Get("order"), f.Tag.Get("doc")})
		}
	}
	return keys
}
