package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/core/nearest"
)

// kind is the shape of a setting.
type kind uint8

const (
	kindObject kind = iota // a struct of settings
	kindBool
	kindInt
	kindFloat
	kindText
	kindTextList // a list of text
	kindTextMap  // text by name
	kindJSONMap  // JSON by name, not parsed
	kindRules    // verdicts by tool and pattern
	kindCommand  // words, or a line for the shell
	kindNetwork  // true, false, or a list of hosts
)

// field is one setting, or a block of settings. Its tags are parsed on use: most never are.
type field struct {
	path  string // from the root, with dots; "" is the root itself
	kind  kind
	tag   reflect.StructTag
	index []int // index of the Go field, from the root

	children    []*field
	childByName map[string]*field
	catchAll    *field // for keys that no kid has; nil if others are invalid
}

func (f *field) doc() string         { return f.tag.Get("doc") }
func (f *field) projectRule() string { return f.tag.Get("project") }
func (f *field) isShell() bool       { return f.tag.Get("shell") == "yes" }
func (f *field) joinsLayers() bool   { return f.tag.Get("layers") == "join" }
func (f *field) isAddress() bool     { return f.tag.Get("form") == "address" }
func (f *field) isSecret() bool      { return f.tag.Get("secret") == "yes" }

// enum returns f's valid values, or nil if all are valid.
func (f *field) enum() []string {
	if e, ok := f.tag.Lookup("enum"); ok {
		return strings.Split(e, "|")
	}
	return nil
}

// valueRange returns the smallest and the largest value of a number, if it has limits.
func (f *field) valueRange() (least, most float64, ok bool) {
	lo, hi, ok := strings.Cut(f.tag.Get("range"), "..")
	if !ok {
		return 0, 0, false
	}
	least, errLeast := strconv.ParseFloat(lo, 64)
	most, errMost := strconv.ParseFloat(hi, 64)
	if errLeast != nil || errMost != nil {
		panic("config: bad range of " + f.path)
	}
	return least, most, true
}

// rootField returns the settings in Config, read from its tags. Nobody changes them.
var rootField = sync.OnceValue(func() *field {
	return addFields(&field{kind: kindObject}, reflect.TypeFor[Config]())
})

// addFields adds the settings in t to f.
func addFields(f *field, t reflect.Type) *field {
	f.childByName = make(map[string]*field, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		name, inline, _ := strings.Cut(sf.Tag.Get("json"), ",")
		kid := &field{path: EntryKey(f.path, name), kind: kindOf(sf.Type), tag: sf.Tag}
		kid.index = append(slices.Clone(f.index), i)
		if inline == "inline" {
			kid.path = f.path
			f.catchAll = kid
			continue
		}
		if kid.kind == kindObject {
			addFields(kid, sf.Type)
		}
		f.children = append(f.children, kid)
		f.childByName[name] = kid
	}
	return f
}

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Struct:
		return kindObject
	case reflect.Bool:
		return kindBool
	case reflect.Int:
		return kindInt
	case reflect.Float64:
		return kindFloat
	case reflect.String:
		return kindText
	case reflect.Slice:
		if t == reflect.TypeFor[Command]() {
			return kindCommand
		}
		if t == reflect.TypeFor[Network]() {
			return kindNetwork
		}
		return kindTextList
	}
	switch t {
	case reflect.TypeFor[map[string]string]():
		return kindTextMap
	case reflect.TypeFor[map[string]json.RawMessage]():
		return kindJSONMap
	case reflect.TypeFor[map[string]Rules]():
		return kindRules
	}
	panic("config: no kind of setting is a " + t.String())
}

// valueIn returns f's value in c.
func (f *field) valueIn(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(f.index)
}

// name returns the last word of f's path.
func (f *field) name() string {
	words := splitKey(f.path)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// walk yields f's settings without blocks, in the order of their declaration.
func (f *field) walk(yield func(*field)) {
	for _, k := range f.children {
		if k.kind == kindObject {
			k.walk(yield)
			continue
		}
		yield(k)
	}
	if f.catchAll != nil {
		yield(f.catchAll)
	}
}

// find follows path down from f. It returns the setting and the
// remaining words, which name an entry in a setting with free names.
func (f *field) find(path string) (*field, []string, bool) {
	words := splitKey(path)
	for i, w := range words {
		kid := f.childByName[w]
		switch {
		case kid != nil && kid.kind == kindObject:
			f = kid
			continue
		case kid != nil:
			return kid, words[i+1:], i+1 == len(words) || kid.kind == kindTextMap || kid.kind == kindJSONMap
		case f.catchAll != nil:
			return f.catchAll, words[i:], len(words[i:]) <= 2
		}
		return f, words[i:], false
	}
	return f, nil, false
}

// EntryKey returns the key for name in the block path. It quotes words that could be misread.
func EntryKey(path, name string) string {
	odd := func(c rune) bool {
		return c != '_' && c != '-' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// splitKey undoes Entry.
func splitKey(path string) []string {
	var words []string
	for path != "" {
		var word string
		if q, err := strconv.QuotedPrefix(path); err == nil && path[0] == '"' {
			word, _ = strconv.Unquote(q)
			path = strings.TrimPrefix(path[len(q):], ".")
		} else {
			word, path, _ = strings.Cut(path, ".")
		}
		words = append(words, word)
	}
	return words
}

// suggestKey returns the key in block f that name probably means, as "; did you mean …?", or "".
func (root *field) suggestKey(f *field, name string) string {
	var siblings []string
	for _, k := range f.children {
		siblings = append(siblings, k.name())
	}
	if n := nearest.Find(name, siblings); n != "" {
		return didYouMean(EntryKey(f.path, n))
	}
	meant := ""
	root.walk(func(k *field) {
		if meant == "" && k.name() == name && k.kind != kindRules {
			meant = k.path
		}
	})
	if meant == "" {
		return ""
	}
	return didYouMean(meant)
}

func didYouMean(s string) string { return `; did you mean "` + s + `"?` }
