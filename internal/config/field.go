package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/nearest"
)

// kind is the shape of a setting.
type kind uint8

const (
	object kind = iota // a struct of settings
	boolean
	whole
	decimal
	text
	texts   // a list of text
	named   // text by name
	foreign // JSON by name, not parsed
	rules   // verdicts by tool and pattern
	command // words, or a line for the shell
	reach   // true, false, or a list of hosts
)

// field is one setting, or a block of settings. Its tags are parsed on use: most never are.
type field struct {
	path  string // from the root, with dots; "" is the root itself
	kind  kind
	tag   reflect.StructTag
	index []int // index of the Go field, from the root

	kids   []*field
	byName map[string]*field
	rest   *field // for keys that no kid has; nil if others are invalid
}

func (f *field) doc() string     { return f.tag.Get("doc") }
func (f *field) project() string { return f.tag.Get("project") }
func (f *field) shell() bool     { return f.tag.Get("shell") == "yes" }
func (f *field) joins() bool     { return f.tag.Get("layers") == "join" }
func (f *field) address() bool   { return f.tag.Get("form") == "address" }
func (f *field) secret() bool    { return f.tag.Get("secret") == "yes" }

// enum returns f's valid values, or nil if all are valid.
func (f *field) enum() []string {
	if e, ok := f.tag.Lookup("enum"); ok {
		return strings.Split(e, "|")
	}
	return nil
}

// limits returns the smallest and the largest value of a number, if it has limits.
func (f *field) limits() (least, most float64, ok bool) {
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

// fields returns the settings in Config, read from its tags.
func fields() *field {
	return describe(&field{kind: object}, reflect.TypeFor[Config]())
}

// describe adds the settings in t to f.
func describe(f *field, t reflect.Type) *field {
	f.byName = make(map[string]*field, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		name, inline, _ := strings.Cut(sf.Tag.Get("json"), ",")
		kid := &field{path: Entry(f.path, name), kind: kindOf(sf.Type), tag: sf.Tag}
		kid.index = append(slices.Clone(f.index), i)
		if inline == "inline" {
			kid.path = f.path
			f.rest = kid
			continue
		}
		if kid.kind == object {
			describe(kid, sf.Type)
		}
		f.kids = append(f.kids, kid)
		f.byName[name] = kid
	}
	return f
}

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Struct:
		return object
	case reflect.Bool:
		return boolean
	case reflect.Int:
		return whole
	case reflect.Float64:
		return decimal
	case reflect.String:
		return text
	case reflect.Slice:
		if t == reflect.TypeFor[Command]() {
			return command
		}
		if t == reflect.TypeFor[Network]() {
			return reach
		}
		return texts
	}
	switch t {
	case reflect.TypeFor[map[string]string]():
		return named
	case reflect.TypeFor[map[string]json.RawMessage]():
		return foreign
	case reflect.TypeFor[map[string]Rules]():
		return rules
	}
	panic("config: no kind of setting is a " + t.String())
}

// in returns f's value in c.
func (f *field) in(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(f.index)
}

// name returns the last word of f's path.
func (f *field) name() string {
	words := split(f.path)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// all yields f's settings without blocks, in the order of their declaration.
func (f *field) all(yield func(*field)) {
	for _, k := range f.kids {
		if k.kind == object {
			k.all(yield)
			continue
		}
		yield(k)
	}
	if f.rest != nil {
		yield(f.rest)
	}
}

// find follows path down from f. It returns the setting and the
// remaining words, which name an entry in a setting with free names.
func (f *field) find(path string) (*field, []string, bool) {
	words := split(path)
	for i, w := range words {
		kid := f.byName[w]
		switch {
		case kid != nil && kid.kind == object:
			f = kid
			continue
		case kid != nil:
			return kid, words[i+1:], i+1 == len(words) || kid.kind == named || kid.kind == foreign
		case f.rest != nil:
			return f.rest, words[i:], len(words[i:]) <= 2
		}
		return f, words[i:], false
	}
	return f, nil, false
}

// Entry returns the key for name in the block path. It quotes words that could be misread.
func Entry(path, name string) string {
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

// split undoes Entry.
func split(path string) []string {
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

// suggest returns the key in block f that name probably means, as "; did you mean …?", or "".
func (root *field) suggest(f *field, name string) string {
	var siblings []string
	for _, k := range f.kids {
		siblings = append(siblings, k.name())
	}
	if n := nearest.Of(name, siblings); n != "" {
		return didYouMean(Entry(f.path, n))
	}
	meant := ""
	root.all(func(k *field) {
		if meant == "" && k.name() == name && k.kind != rules {
			meant = k.path
		}
	})
	if meant == "" {
		return ""
	}
	return didYouMean(meant)
}

func didYouMean(s string) string { return `; did you mean "` + s + `"?` }
