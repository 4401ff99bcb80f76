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
	"coder/internal/host/repofile"

	"github.com/tailscale/hujson"
)

// ManagedDir is the folder for an administrator's settings of
// a machine: managed.json, and files in managed.d.
const ManagedDir = "/etc/coder"

// Limits are the limits that only managed settings can set, in one file. All files apply: a file
// can only tighten the others' limits. A nil list means no limit; an empty one allows nothing.
type Limits struct {
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

// lock is a limit on a setting from managed settings.
type lock struct {
	field *field
	limit reflect.Value
	from  Origin
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
		err = cmp.Or(err, ownedBy(real, owner, top), ownedBy(filepath.Dir(name), owner, top))
		if err != nil {
			return nil, err
		}
	}
	return look, nil
}

// ownedBy returns an error unless path, and the folders on its
// path from top, belong to owner and are writable by nobody else.
func ownedBy(path string, owner int, top string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != owner {
			return fmt.Errorf("%s does not belong to root", at)
		}
		if info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s can be written by others than root", at)
		}
		if at == top || at == filepath.Dir(at) {
			return nil
		}
	}
}

// manage tightens the settings to the managed files' limits. An
// unusable file is an error: an unreadable policy allows nothing.
func (l *loader) manage(dir string) {
	names, err := managedFiles(dir)
	if err != nil {
		l.fail(fmt.Errorf("managed settings: %w", err))
	}
	for _, name := range names {
		data, err := repofile.Own(name, maxFileBytes)
		if err != nil {
			l.fail(fmt.Errorf("managed settings: %w", err))
			continue
		}
		src, err := parse(name, data)
		if err == nil {
			err = src.readable()
		}
		if err != nil {
			l.fail(err)
			continue
		}
		l.report.Files = append(l.report.Files, name)
		y := layer{loader: l, name: name, src: src, untrusted: true} // no variables: users set them
		y.tightenTo(l.root, src.root)
	}
}

// tightenTo tightens the settings in a block.
func (y *layer) tightenTo(f *field, v hujson.Value) {
	y.members(f.path, v, func(name string, m hujson.ObjectMember) {
		path, kid := Entry(f.path, name), f.byName[name]
		switch {
		case f.path == "" && name == "managed":
			y.limits(m.Value)
		case f.path == "" && (name == "$schema" || name == formatKey || name == writerKey):
		case kid == nil && f.rest == nil:
			y.failAt(m.Name.StartOffset, path, fmt.Sprintf("unknown key %q%s", brief(path), y.root.suggest(f, name)))
		case kid != nil && kid.kind == object:
			y.tightenTo(kid, m.Value)
		case kid == nil || kid.order() == "":
			err := errors.New("managed settings can only tighten, and this setting has no order")
			if kid == nil {
				err = fmt.Errorf("%w; managed.deny denies calls", err)
			}
			y.mistake(m.Value, path, err)
		default:
			y.lock(kid, m.Value)
		}
	})
}

// lock limits one setting.
func (y *layer) lock(f *field, v hujson.Value) {
	limit, err := y.value(f, v)
	if err == nil && f.order() == "least" && limit.IsZero() {
		err = errors.New("0 is no limit")
	}
	if err != nil {
		y.mistake(v, f.path, err)
		return
	}
	if old, twice := y.report.locks[f.path]; twice {
		limit, _ = f.bound(old.limit, limit)
	}
	y.report.locks[f.path] = lock{f, limit, y.origin(v.StartOffset)}
	place := f.in(&y.cfg)
	now, changed := f.bound(place, limit)
	place.Set(now)
	if !changed {
		return
	}
	if by := y.report.origins[f.path]; strings.HasPrefix(by.Source, "-") { // from a flag
		text := fmt.Sprintf("%s is locked by %s", f.path, y.origin(v.StartOffset))
		y.report.Warnings = append(y.report.Warnings, Warning{Origin: by, Key: f.path, Text: text})
	}
	y.took(v.StartOffset, f.path)
}

// limits reads the block managed.
func (y *layer) limits(v hujson.Value) {
	limits := Limits{Origin: y.origin(v.StartOffset)}
	plain := v.Clone()
	plain.Standardize()
	d := json.NewDecoder(strings.NewReader(string(plain.Pack())))
	d.DisallowUnknownFields()
	err := d.Decode(&limits)
	if err != nil {
		err = jsonx.Misfit(err, limits)
	}
	for x := range v.All() {
		if lit, ok := x.Value.(hujson.Literal); ok && lit.Kind() == 'n' && err == nil {
			err = errors.New("null is no limit")
		}
	}
	modes := y.root.byName["agents"].byName["default"].enum()
	for _, name := range limits.Modes {
		if !slices.Contains(modes, name) && err == nil {
			err = fmt.Errorf("modes: expected %s, found %q", oneOf(modes), brief(name))
		}
	}
	if err == nil && (limits.KeepDays < 0 || limits.DayUSD < 0 || limits.DayTokens < 0) {
		err = errors.New("a number is below zero")
	}
	if err == nil {
		err = checkHosts(limits.Endpoints)
	}
	if err != nil {
		y.mistake(v, "managed", err)
		return
	}
	y.report.Limits = append(y.report.Limits, limits)
}

// order returns how managed settings limit f, or "" if they cannot: in
// the way that an untrusted project may change f, unless f has its own.
func (f *field) order() string {
	if own, ok := f.tag.Lookup("managed"); ok {
		return own
	}
	if how := f.project(); how != "free" && how != "never" && f.kind != rules {
		return how
	}
	return ""
}

// bound returns f's value under a limit, and whether the limit changes it.
func (f *field) bound(value, limit reflect.Value) (now reflect.Value, changed bool) {
	now = value
	switch f.order() {
	case "stricter":
		if f.rank(limit.String()) < f.rank(value.String()) {
			now = limit
		}
	case "off":
		now = reflect.ValueOf(value.Bool() && limit.Bool())
	case "lower", "least":
		unlimited := f.order() == "least" && value.IsZero()
		if f.kind == decimal && (unlimited || limit.Float() < value.Float()) ||
			f.kind == whole && (unlimited || limit.Int() < value.Int()) {
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
		if value.Interface().(Network).All() {
			now = limit
		} else {
			now, _ = narrower(limit, value)
		}
	}
	return now, !reflect.DeepEqual(now.Interface(), value.Interface())
}

// Locked returns an error if managed settings would override a setting's value.
func (r Report) Locked(key string, value any) error {
	held, ok := r.locks[key]
	if !ok || held.field.order() == "adds" {
		return nil
	}
	v, err := literal(held.field, nil, value)
	if err != nil {
		return err
	}
	y := layer{loader: newLoader(Options{}), name: "value"}
	given, err := y.value(held.field, v)
	if err != nil {
		return err
	}
	if _, changed := held.field.bound(given, held.limit); changed {
		return fmt.Errorf("%s is locked by %s: %s", key, held.from, jsonx.Must(held.limit.Interface()))
	}
	return nil
}

// managedRows returns the rows of limits that are no settings.
func (r Report) managedRows() (rows []Row) {
	for _, l := range r.Limits {
		var all map[string]json.RawMessage
		if json.Unmarshal(jsonx.Must(l), &all) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if text := string(all[name]); text != "null" && text != "0" {
				rows = append(rows, Row{Key: Entry("managed", name), Value: text, Origin: l.Origin, Lock: l.Origin})
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
	fields().all(func(f *field) {
		order := f.order()
		if order == "" {
			return
		}
		if order == "stricter" {
			words[order] = strings.Join(f.enum(), " before ")
		}
		keys = append(keys, ManagedKey{f.path, words[order], f.doc()})
	})
	for f := range reflect.TypeFor[Limits]().Fields() {
		if name := f.Tag.Get("json"); name != "-" {
			keys = append(keys, ManagedKey{Entry("managed", name), f.Tag.Get("order"), f.Tag.Get("doc")})
		}
	}
	return keys
}
